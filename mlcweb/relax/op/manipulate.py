"""Operators that give a tensor another shape, or its elements another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import dims
from mlcweb.relax.expr import Call, ShapeExpr, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import as_shape, call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, extent, extents
from mlcweb.tir.expr import PrimExpr


def _infer_permute_dims(call: Call, context: Any) -> StructInfo:
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
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=len(axes))
    return TensorStructInfo([info.values[axis] for axis in order], info.dtype)


_PERMUTE_DIMS = register("relax.permute_dims", ("x",), _infer_permute_dims)


def permute_dims(x: Any, axes: Sequence[int] | None = None) -> Call:
    """The axes of a tensor in another order; without `axes`, in the opposite one."""
    return call(_PERMUTE_DIMS, x, axes=None if axes is None else [int(axis) for axis in axes])


def _infer_reshape(call: Call, context: Any) -> StructInfo:
    info, wanted = infer.tensor(call, 0, context), infer.shape(call, 1, context)
    if info.values is not None and wanted.values is not None:
        old, new = dims.product(info.values), dims.product(wanted.values)
        if dims.differ(old, new):
            raise infer.shape_error(
                call,
                f"{infer.described(call, 0, info)} has {infer.text(old)} elements, "
                f"the shape {dims.shape_text(wanted.values)} has {infer.text(new)}",
            )
    shape = call.args[1] if wanted.values is not None else None
    return TensorStructInfo(shape, info.dtype, ndim=wanted.ndim)


_RESHAPE = register("relax.reshape", ("x", "shape"), _infer_reshape)


def reshape(x: Any, shape: Any) -> Call:
    """The same elements in row-major order in another shape.

    In a tuple one extent may be -1, and follows from the others; 0 takes the extent of `x`.
    """
    if isinstance(shape, (tuple, list)):
        shape = _completed(x, extents(shape))
    return call(_RESHAPE, x, as_shape(shape))


def _completed(x: Any, shape: Sequence[PrimExpr]) -> ShapeExpr:
    numbers = [constant_int(value) for value in shape]
    if 0 not in numbers and -1 not in numbers:
        return ShapeExpr(shape)
    info = x.struct_info
    old = getattr(info, "values", None)
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
        known = dims.product([*whole[:place], *whole[place + 1 :]])
        if constant_int(known) == 0:
            raise DiagnosticError(f"relax.reshape: -1 in {text} may be anything: 0 is an extent")
        whole[place] = dims.simplify(dims.product(old) // known)
    return ShapeExpr(whole)


def _infer_flatten(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=1)
    return TensorStructInfo([dims.product(info.values)], info.dtype)


_FLATTEN = register("relax.flatten", ("x",), _infer_flatten)


def flatten(x: Any) -> Call:
    """All elements in one dimension, in row-major order."""
    return call(_FLATTEN, x)


def _infer_expand_dims(call: Call, context: Any) -> StructInfo:
    info, axes = infer.tensor(call, 0, context), infer.attribute(call, "axis")
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    ndim = info.ndim + len(axes)
    new = infer.normalized_axes(call, axes, ndim)
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=ndim)
    rest = iter(info.values)
    return TensorStructInfo([1 if i in new else next(rest) for i in range(ndim)], info.dtype)


_EXPAND_DIMS = register("relax.expand_dims", ("x",), _infer_expand_dims)


def expand_dims(x: Any, axis: int | Sequence[int]) -> Call:
    """New axes of extent 1, which are the axes `axis` of the result."""
    return call(_EXPAND_DIMS, x, axis=[axis] if isinstance(axis, int) else [int(a) for a in axis])


def _infer_squeeze(call: Call, context: Any) -> StructInfo:
    info, axes = infer.tensor(call, 0, context), infer.attribute(call, "axis")
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
            return TensorStructInfo(None, info.dtype)
        gone = [i for i in gone if constant_int(info.values[i]) in (1, None)]
    return TensorStructInfo([n for i, n in enumerate(info.values) if i not in gone], info.dtype)


_SQUEEZE = register("relax.squeeze", ("x",), _infer_squeeze)


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Call:
    """Axes of extent 1 taken out: those of them in `axis`, or all."""
    axes = [axis] if isinstance(axis, int) else axis
    return call(_SQUEEZE, x, axis=None if axes is None else [int(a) for a in axes])


def _infer_broadcast_to(call: Call, context: Any) -> StructInfo:
    info, wanted = infer.tensor(call, 0, context), infer.shape(call, 1, context)
    if info.values is not None and wanted.values is not None:
        target = wanted.values
        text = f"{infer.described(call, 0, info)} to {dims.shape_text(target)}"
        result = infer.broadcast_shapes(call, info.values, target, text)
        too_long = len(info.values) > len(target)
        if too_long or (result is not None and any(map(dims.differ, result, target))):
            raise infer.shape_error(call, f"{text} cannot be broadcast")
    shape = call.args[1] if wanted.values is not None else None
    return TensorStructInfo(shape, info.dtype, ndim=wanted.ndim)


_BROADCAST_TO = register("relax.broadcast_to", ("x", "shape"), _infer_broadcast_to)


def broadcast_to(x: Any, shape: Any) -> Call:
    """A tensor repeated to a shape, by NumPy's rules."""
    return call(_BROADCAST_TO, x, as_shape(shape))


def _infer_tile(call: Call, context: Any) -> StructInfo:
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


_TILE = register("relax.tile", ("data",), _infer_tile)


def tile(data: Any, repeats: int | Sequence[int]) -> Call:
    """A tensor repeated as a whole, so many times along each of the last axes."""
    counts = [repeats] if isinstance(repeats, int) else [int(count) for count in repeats]
    return call(_TILE, data, repeats=counts)


def _infer_repeat(call: Call, context: Any) -> StructInfo:
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


_REPEAT = register("relax.repeat", ("data",), _infer_repeat)


def repeat(data: Any, repeats: int, axis: int | None = None) -> Call:
    """Each element along an axis (of the flat tensor without one) repeated in its place."""
    return call(_REPEAT, data, repeats=int(repeats), axis=axis)


def _infer_flip(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.ndim != -1:
        infer.normalized_axis(call, infer.attribute(call, "axis"), info.ndim)
    return info


_FLIP = register("relax.flip", ("data",), _infer_flip)


def flip(data: Any, axis: int) -> Call:
    """The opposite order along an axis."""
    return call(_FLIP, data, axis=int(axis))


def _infer_layout_transform(call: Call, context: Any) -> StructInfo:
    info, index_map = infer.tensor(call, 0, context), infer.attribute(call, "index_map")
    rank = len(index_map.initial_indices)
    infer.need_rank(call, 0, info, rank, "the index map")
    if info.values is None:
        return TensorStructInfo(None, info.dtype, ndim=len(index_map.final_indices))
    return TensorStructInfo([extent(n) for n in index_map.map_shape(info.values)], info.dtype)


_LAYOUT_TRANSFORM = register("relax.layout_transform", ("x",), _infer_layout_transform)


def layout_transform(
    x: Any, index_map: IndexMap | Callable[..., Any], pad_value: int | float | None = None
) -> Call:
    """Each element at the indices that `index_map` gives for its own.

    `pad_value` fills what the map leaves empty where extents do not divide evenly.
    """
    if not isinstance(index_map, IndexMap):
        index_map = IndexMap.from_func(index_map, getattr(x.struct_info, "ndim", None))
    return call(_LAYOUT_TRANSFORM, x, index_map=index_map, pad_value=pad_value)


def _infer_collapse(call: Call, info: TensorStructInfo, wanted: Any, ndim: int) -> StructInfo:
    if info.values is not None and wanted is not None:
        rest = info.values[len(info.values) - len(wanted) :] if wanted else ()
        fits = len(wanted) <= len(info.values) and not any(
            dims.differ(target, there) and getattr(target, "value", 0) != 1
            for target, there in zip(wanted, rest, strict=True)
        )
        if not fits:
            raise infer.shape_error(
                call,
                f"{infer.described(call, 0, info)} is no broadcast of "
                f"{dims.shape_text(wanted, ndim)}",
            )
    return TensorStructInfo(wanted, info.dtype, ndim=ndim)


def _infer_collapse_to(call: Call, context: Any) -> StructInfo:
    shape = infer.shape(call, 1, context)
    return _infer_collapse(call, infer.tensor(call, 0, context), shape.values, shape.ndim)


def _infer_collapse_like(call: Call, context: Any) -> StructInfo:
    info, like = infer.tensors(call, context)
    return _infer_collapse(call, info, like.values, like.ndim)


_COLLAPSE_TO = register("relax.collapse_sum_to", ("data", "shape"), _infer_collapse_to)
_COLLAPSE_LIKE = register(
    "relax.collapse_sum_like", ("data", "collapse_target"), _infer_collapse_like
)


def collapse_sum_to(data: Any, shape: Any) -> Call:
    """The sums over the axes along which a tensor of `shape` is broadcast to that of `data`."""
    return call(_COLLAPSE_TO, data, as_shape(shape))


def collapse_sum_like(data: Any, collapse_target: Any) -> Call:
    """`collapse_sum_to` the shape of another tensor."""
    return call(_COLLAPSE_LIKE, data, collapse_target)


def _infer_reverse_sequence(call: Call, context: Any) -> StructInfo:
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


_REVERSE_SEQUENCE = register(
    "relax.reverse_sequence", ("data", "seq_lengths"), _infer_reverse_sequence
)


def reverse_sequence(data: Any, seq_lengths: Any, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    """The first `seq_lengths[b]` slices along `seq_axis` in reverse order, for each position b on
    `batch_axis`; what is behind them stays."""
    return call(
        _REVERSE_SEQUENCE, data, seq_lengths, seq_axis=int(seq_axis), batch_axis=int(batch_axis)
    )
