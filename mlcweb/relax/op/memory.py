"""Memory of the graph level, `R.memory.…`: storage, tensors in it, and where both end.

What TVM's memory planning writes. Such functions are read, printed and checked; our own planning
(`mlcweb/relax_vm`) works on instructions of the virtual machine instead.
"""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, DataTypeImm, ExprLike, ShapeExpr
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.op.registry import ShapeArgument, as_dtype, as_shape, call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def tensor_in_storage(name: str) -> Callable[..., Call]:
    """What calls the operator `name`, which makes a tensor in a storage."""

    @operator(name, infer=infer.allocated, legalize=keep, allocates=True)
    def alloc_tensor(
        storage: ExprLike,
        offset: ExprLike,
        shape: ShapeArgument,
        dtype: ExprLike,
        runtime_device_ind: ExprLike = 0,
    ) -> Call:
        """A tensor that starts at a byte of a storage."""
        return call(
            alloc_tensor, storage, offset, as_shape(shape), as_dtype(dtype), runtime_device_ind
        )

    return alloc_tensor


def _infer_view(call: Call, context: Context) -> StructInfo:
    _, shape, dtype, _ = call.args
    info = infer.tensor(call, 0, context)
    return TensorStructInfo(
        shape if isinstance(shape, ShapeExpr) else info.shape,
        dtype.value if isinstance(dtype, DataTypeImm) else info.dtype,
    )


@operator(
    "relax.memory.alloc_storage", "total_space", "virtual_device_index", "storage_scope", "dtype",
    infer=infer.object_info, legalize=keep, allocates=True,
)  # fmt: skip
def alloc_storage(
    size: ShapeArgument, virtual_device_index: ExprLike, storage_scope: ExprLike, dtype: ExprLike
) -> Call:
    """Memory of `size` bytes."""
    return call(alloc_storage, as_shape(size), virtual_device_index, storage_scope, as_dtype(dtype))


alloc_tensor = tensor_in_storage("relax.memory.alloc_tensor")


@operator("relax.memory.kill_storage", infer=infer.nothing, legalize=keep, pure=False)
def kill_storage(storage: ExprLike) -> Call:
    """The end of a storage."""
    return call(kill_storage, storage)


@operator("relax.memory.kill_tensor", infer=infer.nothing, legalize=keep, pure=False)
def kill_tensor(tensor: ExprLike) -> Call:
    """The end of a tensor."""
    return call(kill_tensor, tensor)


@operator("relax.memory.view", infer=_infer_view, legalize=keep)
def view(
    data: ExprLike,
    shape: ShapeArgument | None = None,
    dtype: ExprLike | None = None,
    relative_byte_offset: ExprLike | None = None,
) -> Call:
    """The memory of a tensor as another tensor; None (or an empty tuple) leaves a part as it is."""
    new_shape = () if shape is None or shape == () else as_shape(shape)
    offset = () if relative_byte_offset is None else relative_byte_offset
    return call(view, data, new_shape, as_dtype(() if dtype is None else dtype), offset)


@operator("relax.memory.ensure_zero_offset", infer=infer.same, legalize=keep)
def ensure_zero_offset(data: ExprLike) -> Call:
    """A tensor that starts where its memory starts, copied if need be."""
    return call(ensure_zero_offset, data)
