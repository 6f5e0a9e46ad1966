"""Memory of the graph level, `R.memory.…`: storage, tensors in it, and where both end.

What TVM's memory planning writes. Such functions are read, printed and checked; our own planning
(`mlcweb/relax_vm`) works on instructions of the virtual machine instead.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from mlcweb.relax.expr import Call, DataTypeImm, ShapeExpr
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import as_shape, call, register
from mlcweb.relax.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)  # fmt: skip


def object_info(call: Call, context: Any) -> StructInfo:
    """That of what is known to the virtual machine only."""
    return ObjectStructInfo()


def nothing(call: Call, context: Any) -> StructInfo:
    """That of a call which is made for its effect."""
    return TupleStructInfo(())


def allocated(call: Call, context: Any) -> StructInfo:
    """The tensor that a call makes, by its shape and, after it, its type among the arguments."""
    for shape, dtype in pairwise(call.args):
        if isinstance(dtype, DataTypeImm):
            if isinstance(shape, ShapeExpr):
                return TensorStructInfo(shape, dtype.value)
            info = context.struct_info(shape)
            ndim = info.ndim if isinstance(info, ShapeStructInfo) else -1
            return TensorStructInfo(None, dtype.value, ndim=ndim)
    raise infer.dtype_error(call, "it needs the type of the tensor, such as R.dtype('float32')")


def tensor_in_storage(name: str) -> Callable[..., Call]:
    """What calls the operator `name`, which makes a tensor in a storage."""
    parameters = ("storage", "offset", "shape", "dtype", "runtime_device_ind")
    op = register(name, parameters, allocated, pure=False)

    def alloc_tensor(
        storage: Any, offset: Any, shape: Any, dtype: Any, runtime_device_ind: Any = 0
    ) -> Call:
        """A tensor that starts at a byte of a storage."""
        return call(op, storage, offset, as_shape(shape), dtype, runtime_device_ind)

    return alloc_tensor


def _infer_view(call: Call, context: Any) -> StructInfo:
    _, shape, dtype, _ = call.args
    info = infer.tensor(call, 0, context)
    return TensorStructInfo(
        shape if isinstance(shape, ShapeExpr) else info.shape,
        dtype.value if isinstance(dtype, DataTypeImm) else info.dtype,
    )


_STORAGE = register(
    "relax.memory.alloc_storage",
    ("total_space", "virtual_device_index", "storage_scope", "dtype"),
    object_info,
    pure=False,
)
_KILL_STORAGE = register("relax.memory.kill_storage", ("storage",), nothing, pure=False)
_KILL_TENSOR = register("relax.memory.kill_tensor", ("tensor",), nothing, pure=False)
_VIEW = register(
    "relax.memory.view", ("data", "shape", "dtype", "relative_byte_offset"), _infer_view
)
_ENSURE = register(
    "relax.memory.ensure_zero_offset",
    ("data",),
    lambda call, context: infer.tensor(call, 0, context),
)


def alloc_storage(size: Any, virtual_device_index: Any, storage_scope: Any, dtype: Any) -> Call:
    """Memory of `size` bytes."""
    return call(_STORAGE, as_shape(size), virtual_device_index, storage_scope, dtype)


alloc_tensor = tensor_in_storage("relax.memory.alloc_tensor")


def kill_storage(storage: Any) -> Call:
    """The end of a storage."""
    return call(_KILL_STORAGE, storage)


def kill_tensor(tensor: Any) -> Call:
    """The end of a tensor."""
    return call(_KILL_TENSOR, tensor)


def view(data: Any, shape: Any = (), dtype: Any = (), relative_byte_offset: Any = ()) -> Call:
    """The memory of a tensor as another tensor; an empty tuple leaves a part as it is."""
    new_shape = as_shape(shape) if shape != () else shape
    return call(_VIEW, data, new_shape, dtype, relative_byte_offset)


def ensure_zero_offset(data: Any) -> Call:
    """A tensor that starts where its memory starts, copied if need be."""
    return call(_ENSURE, data)
