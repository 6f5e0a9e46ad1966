"""Operators that give a tensor another shape, or its elements another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, ShapeExpr, constant_int
from mlcweb.relax.op import infer, layout
from mlcweb.relax.op.layout import Decision, Layout, axes_of, data_axes, data_order, renumbered
from mlcweb.relax.op.legalize import attribute, by, shape_of, te, to_result_shape, topi
from mlcweb.relax.op.registry import FOLLOW, as_shape, call, operator, whole
from mlcweb.relax.struct_info import ShapeLike, StructInfo, TensorStructInfo, extent, extents
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.tir.expr import PrimExpr


def _infer_permute_dims(call: Call, context: Context) -> StructInfo:
    info, axes = infer.tensor(call, 0, context), infer.attribute(call, "axes")
    if axes is None:
        if info.values is None:
            return TensorStructInfo(None, info.dtype, ndim=info.ndim)
        return TensorStructInfo(info.values[::-1], info.dtype)
    if info.ndim not in (-1, len(axes)):
        raise infer.shape_error(
            call, f"axes {list(axes)} are not those of {infer.described(call, 0, info)}"
        )
    order = infer.normalized_axes(call, axes, len(axes), "axes")
    if order == sorted(order) and info.ndim != -1:
        return info
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=len(axes))
    return TensorStructInfo([info.values[axis] for axis in order], info.dtype)


def _layout_permute_dims(call: Call, layouts: Sequence[Layout]) -> Decision:
    order = data_order(layouts)
    axes = axes_of(call, "axes", len(order)) or list(reversed(range(len(order))))
    places = [order.index(axis) for axis in axes]
    return Decision([order], tuple(range(len(order))), {"axes": places})


@operator(
    "relax.permute_dims", "x",
    infer=_infer_permute_dims, legalize=by("transpose", "axes"), layout=_layout_permute_dims,
    precision=FOLLOW,
)  # fmt: skip
def permute_dims(x: ExprLike, axes: Sequence[int] | None = None) -> Call:
    """The axes of a tensor in another order; without `axes`, in the opposite one."""
    return call(permute_dims, x, axes=None if axes is None else [whole(axis) for axis in axes])


def _infer_reshape(call: Call, context: Context) -> StructInfo:
    info, target = infer.tensor(call, 0, context), infer.shape(call, 1, context)
    _refuse_negative(target.values or ())
    if info.known_values is not None and target.values is not None:
        old, new = dims.product(info.known_values), dims.product(target.values)
        if dims.differ(old, new):
            raise infer.shape_error(
                call,
                f"{infer.described(call, 0, info)} has {infer.text(old)} elements, "
                f"the shape {dims.shape_text(target.values)} has {infer.text(new)}",
            )
    return infer.of_shape(call, 1, context, info.dtype)


@operator("relax.reshape", infer=_infer_reshape, legalize=to_result_shape, precision=FOLLOW)
def reshape(x: ExprLike, shape: ShapeLike) -> Call:
    """The same elements in row-major order in another shape.

    In a tuple one extent may be -1, and follows from the others; 0 takes the extent of `x`.
    """
    if isinstance(shape, (tuple, list)):
        shape = _completed(x, extents(shape))
    return call(reshape, x, as_shape(shape))


def _refuse_negative(shape: Sequence[PrimExpr]) -> None:
    negative = [number for value in shape if (number := constant_int(value) or 0) < 0]
    if negative:
        raise DiagnosticError(
            f"relax.reshape: {dims.shape_text(shape)} has the extent {negative[0]}; only -1 stands "
            "for another, which follows from the rest, where the call itself has the tuple"
        )


def _completed(x: ExprLike, shape: Sequence[PrimExpr]) -> ShapeExpr:
    numbers = [constant_int(value) for value in shape]
    if 0 not in numbers and -1 not in numbers:
        return ShapeExpr(shape)
    info = x.struct_info if isinstance(x, Expr) else None
    old = info.known_values if isinstance(info, TensorStructInfo) else None
    text = dims.shape_text(shape)
    if old is None:
        raise DiagnosticError(
            f"relax.reshape: -1 and 0 in {text} need the shape of x, but it is only known to be "
            f"{info}"
        )
    copies = [i for i, number in enumerate(numbers) if number == 0]
    if any(constant_int(value) == 0 for value in old):
        copies = []  # of a tensor without elements 0 is an extent like any other
    if numbers.count(-1) > 1 or any(i >= len(old) for i in copies):
        raise DiagnosticError(
            f"relax.reshape: {text} does not say how to reshape x of {dims.shape_text(old)}: -1 "
            "may stand once, 0 only for an axis that x has"
        )
    whole = [old[i] if i in copies else value for i, value in enumerate(shape)]
    if -1 in numbers:
        place = numbers.index(-1)
        rest = dims.product([*whole[:place], *whole[place + 1 :]])
        if constant_int(rest) == 0:
            raise DiagnosticError(f"relax.reshape: -1 in {text} may be anything: 0 is an extent")
        whole[place] = dims.simplify(dims.product(old) // rest)
    return ShapeExpr(whole)


def _infer_flatten(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.ndim == 1:
        return info
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=1)
    return TensorStructInfo([dims.product(info.values)], info.dtype)


@operator("relax.flatten", infer=_infer_flatten, legalize=to_result_shape, precision=FOLLOW)
def flatten(x: ExprLike) -> Call:
    """All elements in one dimension, in row-major order."""
    return call(flatten, x)


def _infer_expand_dims(call: Call, context: Context) -> StructInfo:
    info, axes = infer.tensor(call, 0, context), infer.attribute(call, "axis")
    if not axes:
        return info
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    ndim = info.ndim + len(axes)
    new = infer.normalized_axes(call, axes, ndim)
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=ndim)
    rest = iter(info.values)
    return TensorStructInfo([1 if i in new else next(rest) for i in range(ndim)], info.dtype)


def _legalize_expand_dims(builder: BlockBuilder, call: Call) -> Expr:
    axes = {a % len(shape_of(builder, call)) for a in attribute(call, "axis")}

    def expand_dims(x: te.Tensor) -> te.Tensor:
        rest = iter(x.shape)
        one = arithmetic.const(1, "int64")
        shape = [one if i in axes else next(rest) for i in range(x.ndim + len(axes))]

        def element(*index: PrimExpr) -> PrimExpr:
            return x(*(i for place, i in enumerate(index) if place not in axes))

        return te.compute(shape, element, "expand_dims")

    return builder.call_te(expand_dims, call.args[0])


def _layout_expand_dims(call: Call, layouts: Sequence[Layout]) -> Decision:
    """New axes stay at their positions, and those there were around them."""
    order = data_axes(layouts)
    axes = infer.attribute(call, "axis")
    rank = len(order) + len(axes)
    new = {axis % rank for axis in axes}
    old = [axis for axis in range(rank) if axis not in new]
    rest = iter(order)
    return Decision([order], tuple(i if i in new else old[next(rest)] for i in range(rank)))


@operator(
    "relax.expand_dims", "x",
    infer=_infer_expand_dims, legalize=_legalize_expand_dims, layout=_layout_expand_dims,
    precision=FOLLOW,
)  # fmt: skip
def expand_dims(x: ExprLike, axis: int | Sequence[int]) -> Call:
    """New axes of extent 1, which are the axes `axis` of the result."""
    return call(expand_dims, x, axis=[axis] if isinstance(axis, int) else [whole(a) for a in axis])


def _infer_squeeze(call: Call, context: Context) -> StructInfo:
    info, axes = infer.tensor(call, 0, context), infer.attribute(call, "axis")
    if axes is None and info.values is None and info.known_values is not None:
        if not any(constant_int(value) in (1, None) for value in info.known_values):
            return info
    if info.ndim == -1 or (axes is None and info.values is None):
        return TensorStructInfo(None, info.dtype)
    if axes is None:
        assert info.values is not None
        numbers = [constant_int(value) for value in info.values]
        if None in numbers:
            return TensorStructInfo(None, info.dtype)
        gone = [i for i, number in enumerate(numbers) if number == 1]
    else:
        gone = infer.normalized_axes(call, axes, info.ndim)
        if info.values is None:
            return TensorStructInfo(None, info.dtype, ndim=info.ndim - len(gone))
        gone = [i for i in gone if constant_int(info.values[i]) in (1, None)]
    return TensorStructInfo([n for i, n in enumerate(info.values) if i not in gone], info.dtype)


def _legalize_squeeze(builder: BlockBuilder, call: Call) -> Expr:
    values, axis = shape_of(builder, call.args[0]), attribute(call, "axis")
    if axis is not None:
        places = [a % len(values) for a in axis]
        axis = [a for a in places if constant_int(values[a]) in (1, None)]
    return builder.call_te(topi.squeeze, call.args[0], axis)


def _layout_squeeze(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    order = data_axes(layouts)
    axes = axes_of(call, "axis", len(order))
    if axes is None:
        data = call.args[0]
        info = data.struct_info if isinstance(data, Expr) else None
        values = info.values if isinstance(info, TensorStructInfo) else None
        if values is None:
            return None
        axes = [axis for axis, extent in enumerate(values) if constant_int(extent) == 1]
    kept = [axis for axis in order if axis not in axes]
    places = sorted(order.index(axis) for axis in axes)
    return Decision([order], renumbered(order, kept), {"axis": places})


@operator(
    "relax.squeeze", "x",
    infer=_infer_squeeze, legalize=_legalize_squeeze, layout=_layout_squeeze, precision=FOLLOW,
)  # fmt: skip
def squeeze(x: ExprLike, axis: int | Sequence[int] | None = None) -> Call:
    """Axes of extent 1 taken out: those of them in `axis`, or all."""
    axes = [axis] if isinstance(axis, int) else axis
    return call(squeeze, x, axis=None if axes is None else [whole(a) for a in axes])


def _infer_broadcast_to(call: Call, context: Context) -> StructInfo:
    info, shape = infer.tensor(call, 0, context), infer.shape(call, 1, context)
    if shape.ndim != -1 and info.ndim > shape.ndim:
        raise infer.shape_error(
            call,
            f"{infer.described(call, 0, info)} to {dims.shape_text(shape.values, shape.ndim)} "
            "cannot be broadcast: it has more dimensions",
        )
    if info.known_values is not None and shape.values is not None:
        target = shape.values
        text = f"{infer.described(call, 0, info)} to {dims.shape_text(target)}"
        result = infer.broadcast_shapes(call, info.known_values, target, text)
        if result is not None and any(map(dims.differ, result, target)):
            raise infer.shape_error(call, f"{text} cannot be broadcast")
    return infer.of_shape(call, 1, context, info.dtype)


@operator(
    "relax.broadcast_to", infer=_infer_broadcast_to, legalize=by("broadcast_to"), precision=FOLLOW
)
def broadcast_to(x: ExprLike, shape: ShapeLike) -> Call:
    """A tensor repeated to a shape, by NumPy's rules."""
    return call(broadcast_to, x, as_shape(shape))


def _infer_tile(call: Call, context: Context) -> StructInfo:
    info, repeats = infer.tensor(call, 0, context), list(infer.attribute(call, "repeats"))
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    ndim = max(info.ndim, len(repeats))
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=ndim)
    counts = [1] * (ndim - len(repeats)) + repeats
    shape = extents([*[1] * (ndim - info.ndim), *info.values])
    return TensorStructInfo(
        [dims.simplify(n * count) for n, count in zip(shape, counts, strict=True)], info.dtype
    )


def _layout_tile(call: Call, layouts: Sequence[Layout]) -> Decision:
    """Axes that are new stand before all others."""
    order, repeats = data_axes(layouts), infer.attribute(call, "repeats")
    whole = [1] * (len(order) - len(repeats)) + repeats
    new = len(whole) - len(order)
    result = (*range(new), *(axis + new for axis in order))
    return Decision([order], result, {"repeats": [whole[axis] for axis in result]})


@operator(
    "relax.tile", "data", infer=_infer_tile, legalize=by("tile", "repeats"), layout=_layout_tile
)
def tile(data: ExprLike, repeats: int | Sequence[int]) -> Call:
    """A tensor repeated as a whole, so many times along each of the last axes."""
    counts = [repeats] if isinstance(repeats, int) else [whole(count) for count in repeats]
    return call(tile, data, repeats=counts)


def _infer_repeat(call: Call, context: Context) -> StructInfo:
    info, axis = infer.tensor(call, 0, context), infer.attribute(call, "axis")
    count = infer.attribute(call, "repeats")
    place = None if axis is None or info.ndim == -1 else (
        infer.normalized_axis(call, axis, info.ndim))  # fmt: skip
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=1 if axis is None else info.ndim)
    if place is None:
        return TensorStructInfo([dims.simplify(dims.product(info.values) * count)], info.dtype)
    shape = list(info.values)
    shape[place] = dims.simplify(shape[place] * count)
    return TensorStructInfo(shape, info.dtype)


def _repeat(x: te.Tensor, repeats: int, axis: int | None) -> te.Tensor:
    if axis is None:
        x, axis = topi.reshape(x, (dims.product(x.shape),)), 0
    return topi.repeat(x, repeats, axis)


@operator(
    "relax.repeat", "data",
    infer=_infer_repeat, legalize=by(_repeat, "repeats", "axis", hint="repeat"),
    layout=layout.along_axis,
)  # fmt: skip
def repeat(data: ExprLike, repeats: int, axis: int | None = None) -> Call:
    """Each element along an axis (of the flat tensor without one) repeated in its place."""
    return call(repeat, data, repeats=whole(repeats), axis=axis)


def _infer_flip(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)
    return info


@operator(
    "relax.flip", "data", infer=_infer_flip, legalize=by("flip", "axis"), layout=layout.along_axis
)
def flip(data: ExprLike, axis: int) -> Call:
    """The opposite order along an axis."""
    return call(flip, data, axis=whole(axis))


def _infer_layout_transform(call: Call, context: Context) -> StructInfo:
    info, index_map = infer.tensor(call, 0, context), infer.attribute(call, "index_map")
    rank = len(index_map.initial_indices)
    infer.need_rank(call, 0, info, rank, "the index map")
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=len(index_map.final_indices))
    return TensorStructInfo([extent(n) for n in index_map.map_shape(info.values)], info.dtype)


def _legalize_layout_transform(builder: BlockBuilder, call: Call) -> Expr:
    index_map: IndexMap = attribute(call, "index_map")
    pad_value = attribute(call, "pad_value")

    def te_layout_transform(x: te.Tensor) -> te.Tensor:
        inverse, padding = index_map.non_surjective_inverse(x.shape)

        def element(*index: PrimExpr) -> PrimExpr:
            value = x(*inverse.map_indices(index))
            outside = _substituted(padding, inverse, index)
            if arithmetic.constant_value(outside) == 0:
                return value
            fill = arithmetic.const(pad_value or 0, x.dtype)
            return intrinsics.if_then_else(logic.all(arithmetic.logical_not(outside)), value, fill)

        return te.compute(index_map.map_shape(x.shape), element, "te_layout_transform")

    return builder.call_te(te_layout_transform, call.args[0])


def _substituted(condition: PrimExpr, inverse: IndexMap, index: Sequence[PrimExpr]) -> PrimExpr:
    moved = IndexMap(inverse.initial_indices, (condition,)).map_indices(index)
    return moved[0]


@operator(
    "relax.layout_transform", "x",
    infer=_infer_layout_transform, legalize=_legalize_layout_transform, precision=FOLLOW,
)  # fmt: skip
def layout_transform(
    x: Expr, index_map: IndexMap | Callable[..., object], pad_value: int | float | None = None
) -> Call:
    """Each element at the indices that `index_map` gives for its own.

    `pad_value` fills what the map leaves empty where extents do not divide evenly.
    """
    if not isinstance(index_map, IndexMap):
        index_map = IndexMap.from_func(index_map, getattr(x.struct_info, "ndim", None))
    return call(layout_transform, x, index_map=index_map, pad_value=pad_value)


Shape = Sequence[PrimExpr] | None


def _check_collapse(call: Call, info: TensorStructInfo, target: Shape) -> None:
    """Refuse a shape of which a tensor is not surely a broadcast, if both are known."""
    data = info.known_values
    if data is None or target is None:
        return
    rest = data[len(data) - len(target) :] if target else ()
    fits = len(target) <= len(data) and all(
        constant_int(extent) == 1 or dims.equal(extent, there)
        for extent, there in zip(target, rest, strict=True)
    )
    if not fits:
        raise infer.shape_error(
            call, f"{infer.described(call, 0, info)} is no broadcast of {dims.shape_text(target)}"
        )


def _infer_collapse_to(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    _check_collapse(call, info, infer.shape(call, 1, context).values)
    return infer.of_shape(call, 1, context, info.dtype)


def _infer_collapse_like(call: Call, context: Context) -> StructInfo:
    info, like = infer.tensors(call, context)
    _check_collapse(call, info, like.known_values)
    return TensorStructInfo(like.shape, info.dtype, ndim=like.ndim)


def _legalize_collapse(builder: BlockBuilder, call: Call) -> Expr:
    data = call.args[0]
    shape, there = (shape_of(builder, value) for value in (call, data))
    if len(shape) == len(there) and all(map(dims.equal, shape, there)):
        assert isinstance(data, Expr)
        return data
    return builder.call_te(topi.collapse_sum, data, list(shape), primfunc_name_hint="collapse_sum")


@operator("relax.collapse_sum_to", infer=_infer_collapse_to, legalize=_legalize_collapse)
def collapse_sum_to(data: ExprLike, shape: ShapeLike) -> Call:
    """The sums over the axes along which a tensor of `shape` is broadcast to that of `data`."""
    return call(collapse_sum_to, data, as_shape(shape))


@operator("relax.collapse_sum_like", infer=_infer_collapse_like, legalize=_legalize_collapse)
def collapse_sum_like(data: ExprLike, collapse_target: ExprLike) -> Call:
    """`collapse_sum_to` the shape of another tensor."""
    return call(collapse_sum_like, data, collapse_target)


def _infer_reverse_sequence(call: Call, context: Context) -> StructInfo:
    info, lengths = infer.tensors(call, context)
    infer.need_integer(call, 1, lengths)
    infer.need_rank(call, 1, lengths, 1, "the batch")
    if info.ndim != -1:
        for name in ("seq_axis", "batch_axis"):
            infer.normalized_axis(call, infer.attribute(call, name), info.ndim, name)
    if info.values is not None and lengths.values is not None:
        there = info.values[infer.attribute(call, "batch_axis")]
        if dims.differ(lengths.values[0], there):
            raise infer.shape_error(
                call,
                f"{infer.described(call, 1, lengths)} must have an element for each of the "
                f"{infer.text(there)} positions on the batch axis",
            )
    return info


@operator(
    "relax.reverse_sequence", "data", "seq_lengths",
    infer=_infer_reverse_sequence, legalize=by("reverse_sequence", "seq_axis", "batch_axis"),
)  # fmt: skip
def reverse_sequence(
    data: ExprLike, seq_lengths: ExprLike, seq_axis: int = 1, batch_axis: int = 0
) -> Call:
    """The first `seq_lengths[b]` slices along `seq_axis` in reverse order, for each position b on
    `batch_axis`; what is behind them stays."""
    return call(
        reverse_sequence, data, seq_lengths, seq_axis=whole(seq_axis), batch_axis=whole(batch_axis)
    )
