"""What the virtual machine of TVM does for a graph, `R.vm.…`."""

from __future__ import annotations

from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.op.memory import tensor_in_storage
from mlcweb.relax.op.registry import as_dtype, as_shape, call, operator
from mlcweb.relax.struct_info import ShapeLike


@operator("relax.vm.alloc_storage", infer=infer.object_info, legalize=keep, allocates=True)
def alloc_storage(
    shape: ShapeLike,
    runtime_device_index: ExprLike,
    dtype: ExprLike,
    storage_scope: ExprLike = "global",
) -> Call:
    """Memory for a tensor."""
    return call(
        alloc_storage, as_shape(shape), runtime_device_index, as_dtype(dtype), storage_scope
    )


alloc_tensor = tensor_in_storage("relax.vm.alloc_tensor")


@operator("relax.vm.call_tir_dyn", infer=infer.nothing, legalize=keep, pure=False)
def call_tir_dyn(func: ExprLike, args: ExprLike) -> Call:
    """A call of a function of TensorIR: `args` is a tuple of tensors, those that it writes among
    them, and of a shape, whose extents it takes last."""
    return call(call_tir_dyn, func, args)


@operator("relax.vm.kill_object", infer=infer.nothing, legalize=keep, pure=False)
def kill_object(obj: ExprLike) -> Call:
    """The end of a storage or tensor."""
    return call(kill_object, obj)
