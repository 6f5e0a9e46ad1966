"""Memory of the graph level, `R.memory.…`: storage, tensors in it, and where both end.

What TVM's memory planning writes. Such functions are read, printed and checked; our own planning
(`mlcweb/relax_vm`) works on instructions of the virtual machine instead.
"""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.node import replace
from mlcweb.relax import dims
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, DataTypeImm, ExprLike, PrimValue, RelaxExpr, Tuple
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import keep
from mlcweb.relax.op.registry import as_dtype, as_shape, call, operator
from mlcweb.relax.struct_info import ShapeLike, StructInfo, TensorStructInfo
from mlcweb.tir.dtype import size_in_bytes
from mlcweb.tir.expr import IntImm, PrimExpr


def tensor_in_storage(name: str) -> Callable[..., Call]:
    """What calls the operator `name`, which makes a tensor in a storage."""

    @operator(name, infer=infer.allocated, legalize=keep, allocates=True)
    def alloc_tensor(
        storage: ExprLike,
        offset: ExprLike,
        shape: ShapeLike,
        dtype: ExprLike,
        runtime_device_ind: ExprLike = 0,
    ) -> Call:
        """A tensor that starts at a byte of a storage."""
        return call(
            alloc_tensor, storage, offset, as_shape(shape), as_dtype(dtype), runtime_device_ind
        )

    return alloc_tensor


def _infer_view(call: Call, context: Context) -> StructInfo:
    """What does not fit surely into the memory is refused; the rest is checked at run time."""
    _, shape, dtype, offset = (None if _is_left_out(arg) else arg for arg in call.args)
    info = infer.tensor(call, 0, context)
    view = info if shape is None else infer.of_shape(call, 1, context, info.dtype)
    if dtype is not None:
        named = context.value(dtype)
        view = replace(view, dtype=named.value if isinstance(named, DataTypeImm) else "")
        if isinstance(named, DataTypeImm) and view.dtype in ("", "void"):
            raise infer.dtype_error(call, "the dtype of a view is a type of elements, not void")
    start: PrimExpr | None = IntImm("int64", 0)
    if offset is not None:
        infer.scalar(call, 3, context)
        number = context.value(offset)
        start = number.value if isinstance(number, PrimValue) else None
    if start is not None and _is_beyond(info, view, start, same=(shape is None, dtype is None)):
        part = dims.shape_text(view.values, view.ndim)
        raise infer.shape_error(
            call,
            f"a view {part}, dtype {view.dtype or 'unknown'}, from byte {infer.text(start)} on "
            f"does not fit into {infer.described(call, 0, info)}, dtype {info.dtype or 'unknown'}",
        )
    return view


def _is_left_out(argument: RelaxExpr) -> bool:
    return isinstance(argument, Tuple) and not argument.fields


def _is_beyond(
    info: TensorStructInfo, view: TensorStructInfo, start: PrimExpr, same: tuple[bool, bool]
) -> bool:
    """Whether a view surely ends behind the tensor. `same` says whether it has as many elements,
    and elements as large; of what is the same, one stands for as many as there are."""
    analyzer = Analyzer()
    same_count, same_size = same
    if info.dtype and view.dtype:
        size, view_size = size_in_bytes(info.dtype), size_in_bytes(view.dtype)
    elif same_size:
        size = view_size = 1
        start = IntImm("int64", int(analyzer.can_prove(start > 0)))
    else:
        return False
    if info.values is not None and view.values is not None:
        count, view_count = dims.product(info.values), dims.product(view.values)
    elif same_count and view_size >= size:
        count = view_count = IntImm("int64", 1)
    else:
        return False
    return analyzer.can_prove(view_count * view_size + start > count * size)


@operator(
    "relax.memory.alloc_storage", "total_space", "virtual_device_index", "storage_scope", "dtype",
    infer=infer.object_info, legalize=keep, allocates=True,
)  # fmt: skip
def alloc_storage(
    size: ShapeLike, virtual_device_index: ExprLike, storage_scope: ExprLike, dtype: ExprLike
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
    shape: ShapeLike | None = None,
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
