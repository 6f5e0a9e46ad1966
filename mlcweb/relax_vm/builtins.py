"""Operations of the virtual machine itself, which need no compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcweb.ir.op import register_op_attr
from mlcweb.relax_vm.sizes import ShapeTuple
from mlcweb.runtime.ndarray import NDArray, array

if TYPE_CHECKING:
    import numpy as np


BUILTIN = "FVMBuiltin"
"""The attribute of an operator that holds the function which is a call of it."""


@register_op_attr("relax.null_value", BUILTIN)
def null_value() -> None:
    return None


@register_op_attr("relax.shape_of", BUILTIN)
def shape_of(tensor: NDArray) -> ShapeTuple:
    return ShapeTuple(tensor.shape)


@register_op_attr("relax.inspect.tensor_shape_i", BUILTIN)
def _tensor_shape_i(tensor: NDArray, axis: int) -> int:
    return tensor.shape[axis]


@register_op_attr("relax.tensor_to_shape", BUILTIN)
def tensor_to_shape(tensor: NDArray) -> ShapeTuple:
    return ShapeTuple(map(int, tensor.numpy()))


@register_op_attr("relax.print", BUILTIN)
def _print(form: str, *values: object) -> tuple[()]:
    print(form.format(*values) if form else " ".join(map(str, values)))
    return ()


@register_op_attr("relax.assert_op", BUILTIN)
def _assert(condition: object, form: str, *values: object) -> tuple[()]:
    if not truth(condition):
        from mlcweb.codegen.errors import AssertionFailed

        message = form.format(*values) if form else ", ".join(map(str, values))
        raise AssertionFailed(f"Assertion Failed{f': {message}' if message else ''}")
    return ()


def truth(value: object) -> bool:
    """Whether a condition holds: a number, or a tensor of one element."""
    return bool(value.numpy().item() if isinstance(value, NDArray) else value)


@register_op_attr("relax.nonzero", BUILTIN)
def _nonzero(tensor: NDArray) -> NDArray:
    import numpy as np

    places = np.stack(np.nonzero(np.atleast_1d(tensor.numpy())))
    return _on_device_of(tensor, places.astype("int64"))


@register_op_attr("relax.unique", BUILTIN)
def _unique(tensor: NDArray, ordered: bool, *options: int | None) -> NDArray | tuple[NDArray, ...]:
    import numpy as np

    flags, axis = options[:3], options[3] if len(options) > 3 else None
    values, first, inverse, counts = np.unique(
        tensor.numpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(first)
        values = values[order] if axis is None else np.take(values, order, axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    more = [item for item, asked in zip((first, inverse, counts), flags, strict=True) if asked]
    outputs = [values, *(item.astype("int64") for item in more)]
    results = [_on_device_of(tensor, item) for item in outputs]
    return tuple(results) if more else results[0]


def _on_device_of(tensor: NDArray, values: np.ndarray) -> NDArray:
    return array(values, tensor.device)
