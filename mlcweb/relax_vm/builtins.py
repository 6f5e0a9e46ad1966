"""Operations of the virtual machine itself, which need no compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.relax_vm.sizes import ShapeTuple


def _shape_of(tensor: Any) -> ShapeTuple:
    return ShapeTuple(tensor.shape)


def _print(form: str, *values: Any) -> tuple[()]:
    print(form.format(*values) if form else " ".join(map(str, values)))
    return ()


BUILTINS: dict[str, Callable[..., Any]] = {
    "relax.null_value": lambda: None,
    "relax.print": _print,
    "relax.shape_of": _shape_of,
    "relax.inspect.tensor_shape_i": lambda tensor, axis: tensor.shape[axis],
}
