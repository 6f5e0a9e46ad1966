"""Operators that pick elements by index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.ir.op import Op
from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import ArrayLike
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import (
    Call,
    Expr,
    ExprLike,
    PrimValue,
    Tuple,
    const,
    constant_int,
    convert_to_expr,
)  # fmt: skip
from mlcweb.relax.op import infer, layout
from mlcweb.relax.op.layout import Decision, Layout, data_order
from mlcweb.relax.op.legalize import attribute, by, dtype_of, fields_of, number, te, topi
from mlcweb.relax.op.registry import FOLLOW, call, operator, whole
from mlcweb.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    extent,
)  # fmt: skip
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


def _infer_take(call: Call, context: Context) -> StructInfo:
    info, axis = infer.tensor(call, 0, context), infer.attribute(call, "axis")
    where = context.struct_info(call.args[1])
    indices = TensorStructInfo((), where.dtype) if isinstance(where, PrimStructInfo) else (
        infer.tensor(call, 1, context))  # fmt: skip
    infer.need_integer(call, 1, indices)
    if axis is None:
        if info.ndim != 1:
            raise infer.shape_error(
                call, f"without axis, {infer.described(call, 0, info)} must be a vector"
            )
        return TensorStructInfo(indices.shape, info.dtype, ndim=indices.ndim)
    if info.ndim == -1 or indices.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    place = infer.normalized_axis(call, axis, info.ndim)
    if info.values is None or indices.values is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim + indices.ndim - 1)
    shape = [*info.values[:place], *indices.values, *info.values[place + 1 :]]
    return TensorStructInfo(shape, info.dtype)


def _legalize_take(builder: BlockBuilder, call: Call) -> Expr:
    axis, mode = attribute(call, "axis"), attribute(call, "mode")
    return builder.call_te(topi.take, *call.args, 0 if axis is None else axis, mode=mode)


@operator("relax.take", "x", "indices", infer=_infer_take, legalize=_legalize_take)
def take(x: ExprLike, indices: ExprLike, axis: int | None = None, mode: str = "fast") -> Call:
    """The slices of `x` along an axis that the integers `indices` name.

    `mode` is for indices out of range: "fast" trusts them, "clip" keeps them in range, "wrap" takes
    them modulo the extent, "nan" gives NaN.
    """
    return call(take, x, indices, axis=axis, mode=mode)


def _numbers(call: Call, index: int) -> list[PrimExpr]:
    """The scalars of a tuple argument."""
    argument = call.args[index]
    fields = argument.fields if isinstance(argument, Tuple) else ()
    numbers = [field.value for field in fields if isinstance(field, PrimValue)]
    if not isinstance(argument, Tuple) or len(numbers) != len(fields):
        name = infer.argument_name(call, index)
        raise infer.dtype_error(call, f"{name} must be a tuple of numbers, but it is {argument}")
    return numbers


def slice_arguments(call: Call) -> tuple[list[int], list[PrimExpr], list[PrimExpr], list[PrimExpr]]:
    """Axes, begins, ends and strides of a call of `strided_slice`."""
    axes, begin, end = (_numbers(call, index) for index in (1, 2, 3))
    strides = _numbers(call, 4) if len(call.args) > 4 else [extent(1)] * len(axes)
    if not len(axes) == len(begin) == len(end) == len(strides):
        raise infer.shape_error(
            call,
            f"axes, begin, end and strides name {len(axes)}, {len(begin)}, {len(end)} and "
            f"{len(strides)} numbers; they must be equally many",
        )
    places = []
    for axis in axes:
        number = getattr(axis, "value", None)
        if number is None:
            raise infer.shape_error(call, f"the axis {axis} must be a constant")
        places.append(int(number))
    return places, begin, end, strides


def _infer_strided_slice(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    axes, begin, end, strides = slice_arguments(call)
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype) if axes else info
    places = infer.normalized_axes(call, axes, info.ndim, "axes")
    if info.known_values is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim) if axes else info
    # Loaded with its first use: all of TOPI comes with it.
    from mlcweb.topi.shapes import slice_range

    shape, inbound = list(info.known_values), infer.attribute(call, "assume_inbound")
    for place, low, high, step in zip(places, begin, end, strides, strict=True):
        if getattr(step, "value", 1) == 0:
            raise infer.shape_error(call, f"the stride of axis {place} is 0")
        shape[place] = dims.simplify(slice_range(shape[place], low, high, step, inbound)[1])
    return TensorStructInfo(shape, info.dtype)


def _legalize_strided_slice(builder: BlockBuilder, call: Call) -> Expr:
    axes, *bounds = slice_arguments(call)
    return builder.call_te(
        topi.strided_slice,
        call.args[0],
        *bounds,
        axes,
        "end",
        attribute(call, "assume_inbound"),
        primfunc_name_hint="strided_slice",
    )


def _layout_strided_slice(call: Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    places = [order.index(axis % len(order)) for axis in slice_arguments(call)[0]]
    decision = layout.as_data(call, layouts)
    decision.replaced[1] = Tuple([PrimValue(place) for place in places])
    return decision


@operator(
    "relax.strided_slice", "x", "axes", "begin", "end", "strides",
    infer=_infer_strided_slice, legalize=_legalize_strided_slice, layout=_layout_strided_slice,
    precision=FOLLOW,
)  # fmt: skip
def strided_slice(
    x: ExprLike,
    axes: Expr | Sequence[ExprLike],
    begin: Expr | Sequence[ExprLike],
    end: Expr | Sequence[ExprLike],
    strides: Expr | Sequence[ExprLike] | None = None,
    assume_inbound: bool = False,
) -> Call:
    """Elements begin, begin + stride, … before end, along `axes`.

    Positions count and are cut as in a slice of Python, unless `assume_inbound`.
    """
    tuples = [_number_tuple(values) for values in (axes, begin, end)]
    if strides is not None:
        tuples.append(_number_tuple(strides))
    return call(strided_slice, x, *tuples, assume_inbound=assume_inbound)


def _infer_dynamic_slice(call: Call, context: Context) -> StructInfo:
    info, *positions = infer.tensors(call, context)
    for index, tensor in enumerate(positions, 1):
        infer.need_rank(call, index, tensor, 1, "a vector of positions")
        if tensor.dtype not in ("", "int64"):
            name = infer.argument_name(call, index)
            raise infer.dtype_error(call, f"{name} must be of int64, not {tensor.dtype}")
        length = None if tensor.values is None else constant_int(tensor.values[0])
        if info.ndim != -1 and length != info.ndim:
            raise infer.shape_error(
                call, f"{infer.described(call, index, tensor)} must have {info.ndim} element(s), "
                f"one for each axis of {infer.described(call, 0, info)}"
            )  # fmt: skip
    return TensorStructInfo(None, info.dtype, ndim=info.ndim)


def _legalize_dynamic_slice(builder: BlockBuilder, call: Call) -> Expr:
    lengths = builder.emit(
        builder.call_te(topi.dynamic_slice_shape, *call.args, primfunc_name_hint="shape_func")
    )
    shape = builder.emit(Call(Op.get("relax.tensor_to_shape"), [lengths]))
    ndim = infer.tensor(call, 0, builder.context).ndim
    extents = [PrimVar("s", "int64") for _ in range(ndim)]
    builder.match_cast(shape, ShapeStructInfo(extents))
    return builder.call_te(topi.dynamic_strided_slice, *call.args, output_shape=extents)


@operator(
    "relax.dynamic_strided_slice", "x", "begin", "end", "strides",
    infer=_infer_dynamic_slice, legalize=_legalize_dynamic_slice, data_dependent=True,
)  # fmt: skip
def dynamic_strided_slice(x: ExprLike, begin: ExprLike, end: ExprLike, strides: ExprLike) -> Call:
    """The elements at begin, begin + stride, … before end, along all axes.

    Args:
        begin, end, strides: vectors of int64, an element for each axis of `x`. Negative positions
            count from the end, positions outside are kept to the tensor, and negative strides go
            back, as in NumPy.
    """
    return call(dynamic_strided_slice, x, begin, end, strides)


def _number_tuple(values: Expr | Sequence[ExprLike]) -> Expr:
    return values if isinstance(values, Expr) else Tuple([convert_to_expr(v) for v in values])


def _infer_gather_elements(call: Call, context: Context) -> StructInfo:
    info, indices = infer.tensors(call, context)
    infer.need_integer(call, 1, indices)
    if -1 not in (info.ndim, indices.ndim) and info.ndim != indices.ndim:
        both = f"{infer.described(call, 0, info)} and {infer.described(call, 1, indices)}"
        raise infer.shape_error(call, f"{both} must have the same rank")
    if info.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)
    ndim = max(info.ndim, indices.ndim)
    return TensorStructInfo(indices.shape, info.dtype, ndim=ndim)


def _legalize_gather_elements(builder: BlockBuilder, call: Call) -> Expr:
    data, indices = call.args
    return builder.call_te(topi.gather, data, attribute(call, "axis"), indices)


@operator(
    "relax.gather_elements", "data", "indices",
    infer=_infer_gather_elements, legalize=_legalize_gather_elements, layout=layout.together,
)  # fmt: skip
def gather_elements(data: ExprLike, indices: ExprLike, axis: int = 0) -> Call:
    """out[i][j] = data[indices[i][j]][j] for axis 0, and so on."""
    return call(gather_elements, data, indices, axis=whole(axis))


def _infer_gather_nd(call: Call, context: Context) -> StructInfo:
    info, indices = infer.tensors(call, context)
    infer.need_integer(call, 1, indices)
    batch = infer.attribute(call, "batch_dims")
    if info.ndim == -1 or indices.values is None:
        return TensorStructInfo(None, info.dtype)
    count = getattr(indices.values[-1], "value", None) if indices.values else 0
    if count is None:
        return TensorStructInfo(None, info.dtype)
    if not indices.values or batch + count > info.ndim or batch >= indices.ndim:
        raise infer.shape_error(
            call,
            f"{infer.described(call, 1, indices)} names {count} axes of "
            f"{infer.described(call, 0, info)} after {batch} batch dimension(s)",
        )
    ndim = indices.ndim - 1 + info.ndim - batch - count
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=ndim)
    return TensorStructInfo([*indices.values[:-1], *info.values[batch + count :]], info.dtype)


def last_axis_first(indices: te.Tensor) -> te.Tensor:
    """The layout of indices in TOPI."""
    return topi.transpose(indices, [indices.ndim - 1, *range(indices.ndim - 1)])


def _gather_nd(data: te.Tensor, indices: te.Tensor, batch_dims: int) -> te.Tensor:
    return topi.gather_nd(data, last_axis_first(indices), batch_dims)


@operator(
    "relax.gather_nd", "data", "indices",
    infer=_infer_gather_nd, legalize=by(_gather_nd, "batch_dims", hint="te_gather_nd"),
)  # fmt: skip
def gather_nd(data: ExprLike, indices: ExprLike, batch_dims: int = 0) -> Call:
    """The slices of `data` at the positions that the last axis of `indices` holds."""
    return call(gather_nd, data, indices, batch_dims=whole(batch_dims))


def _infer_one_hot(call: Call, context: Context) -> StructInfo:
    indices = infer.tensor(call, 0, context)
    infer.need_integer(call, 0, indices)
    on, off = infer.scalar(call, 1, context), infer.scalar(call, 2, context)
    if on.dtype != off.dtype:
        raise infer.dtype_error(
            call, f"on_value is {on.dtype}, off_value is {off.dtype}; they must have one type"
        )
    if indices.ndim == -1:
        return TensorStructInfo(None, on.dtype)
    place = infer.normalized_axis(call, infer.attribute(call, "axis"), indices.ndim + 1)
    if indices.values is None:
        return TensorStructInfo(None, on.dtype, ndim=indices.ndim + 1)
    depth = extent(infer.attribute(call, "depth"))
    shape = indices.values
    return TensorStructInfo([*shape[:place], depth, *shape[place:]], on.dtype)


def _legalize_one_hot(builder: BlockBuilder, call: Call) -> Expr:
    indices, on, off = call.args
    dtype = dtype_of(builder, call)
    depth, axis = attribute(call, "depth"), attribute(call, "axis")
    return builder.call_te(topi.one_hot, indices, number(on), number(off), depth, axis, dtype)


@operator(
    "relax.one_hot", "indices", "on_value", "off_value",
    infer=_infer_one_hot, legalize=_legalize_one_hot,
)  # fmt: skip
def one_hot(
    indices: ExprLike, on_value: ExprLike, off_value: ExprLike, depth: int, axis: int = -1
) -> Call:
    """`on_value` where the position along a new axis of extent `depth` is the index."""
    return call(one_hot, indices, on_value, off_value, depth=whole(depth), axis=whole(axis))


def _infer_index_tensor(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    indices = infer.tensors_of_tuple(call, 1, context)
    if info.ndim != -1 and len(indices) > info.ndim:
        raise infer.shape_error(
            call, f"{len(indices)} indices for {infer.described(call, 0, info)}"
        )
    where = infer.broadcast(call, indices, "int64")
    if info.values is None or where.values is None:
        has_ranks = info.ndim != -1 and where.ndim != -1
        ndim = where.ndim + info.ndim - len(indices) if has_ranks else -1
        return TensorStructInfo(None, info.dtype, ndim=ndim)
    return TensorStructInfo([*where.values, *info.values[len(indices) :]], info.dtype)


def _legalize_index_tensor(builder: BlockBuilder, call: Call) -> Expr:
    indices = fields_of(builder, call.args[1])
    return builder.call_te(topi.index_tensor, call.args[0], indices)


@operator("relax.index_tensor", infer=_infer_index_tensor, legalize=_legalize_index_tensor)
def index_tensor(data: ExprLike, indices: Iterable[Expr | ArrayLike]) -> Call:
    """`data[indices]` with tensors of integers for the first axes, broadcast."""
    return call(index_tensor, data, [i if isinstance(i, Expr) else const(i) for i in indices])
