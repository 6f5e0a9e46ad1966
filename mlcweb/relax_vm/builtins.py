"""Operations of the virtual machine itself, which need no compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlcweb.relax_vm.sizes import ShapeTuple
from mlcweb.runtime.ndarray import NDArray, array

if TYPE_CHECKING:
    import numpy as np


def _shape_of(tensor: NDArray) -> ShapeTuple:
    return ShapeTuple(tensor.shape)


def _print(form: str, *values: object) -> tuple[()]:
    print(form.format(*values) if form else " ".join(map(str, values)))
    return ()


def _assert(condition: object, form: str, *values: object) -> tuple[()]:
    if not truth(condition):
        from mlcweb.codegen.interpreter.support import AssertionFailed

        message = form.format(*values) if form else ", ".join(map(str, values))
        raise AssertionFailed(f"Assertion Failed{f': {message}' if message else ''}")
    return ()


def truth(value: object) -> bool:
    """Whether a condition holds: a number, or a tensor of one element."""
    return bool(value.numpy().item() if isinstance(value, NDArray) else value)


def _nonzero(tensor: NDArray) -> NDArray:
    import numpy as np

    places = np.stack(np.nonzero(np.atleast_1d(tensor.numpy())))
    return _on_device_of(tensor, places.astype("int64"))


def _unique(tensor: NDArray, ordered: bool, *options: int | None) -> NDArray | tuple[NDArray, ...]:
    import numpy as np

    wanted, axis = options[:3], options[3] if len(options) > 3 else None
    values, first, inverse, counts = np.unique(
        tensor.numpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(first)
        values = values[order] if axis is None else np.take(values, order, axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    more = [item for item, asked in zip((first, inverse, counts), wanted, strict=True) if asked]
    given = [values, *(item.astype("int64") for item in more)]
    results = [_on_device_of(tensor, item) for item in given]
    return tuple(results) if more else results[0]


def _on_device_of(tensor: NDArray, values: np.ndarray) -> NDArray:
    return array(values, tensor.device)


BUILTINS: dict[str, Callable[..., object]] = {
    "relax.null_value": lambda: None,
    "relax.print": _print,
    "relax.assert_op": _assert,
    "relax.nonzero": _nonzero,
    "relax.unique": _unique,
    "relax.tensor_to_shape": lambda tensor: ShapeTuple(map(int, tensor.numpy())),
    "relax.shape_of": _shape_of,
    "relax.inspect.tensor_shape_i": lambda tensor, axis: tensor.shape[axis],
}
