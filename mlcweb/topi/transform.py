"""Operators that move elements: shapes, order, joining and taking apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.data_layout import bijective_layout
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.shapes import Axes, Extent, Operand, Scalar, ShapeLike


def moved(shape: ShapeLike, element: Callable[..., PrimExpr], name: str) -> Tensor:
    """A tensor whose elements come one by one from others."""
    extents = shapes.as_shape(shape)
    axes = shapes.axis_names(len(extents))
    return compute(extents, element, name, tag=tags.INJECTIVE, varargs_names=axes)


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in another order; reversed without `axes`."""
    listed = list(range(a.ndim))[::-1] if axes is None else list(axes)
    order = [shapes.axis_of("transpose", axis, a.ndim) for axis in listed]
    if sorted(order) != list(range(a.ndim)):
        raise DiagnosticError(
            f"transpose: {listed} does not name each of the {a.ndim} dimension(s) once"
        )

    def element(*index: PrimExpr) -> PrimExpr:
        return a(*(index[order.index(place)] for place in range(a.ndim)))

    return moved([a.shape[place] for place in order], element, "T_transpose")


def reshape(a: Tensor, newshape: ShapeLike) -> Tensor:
    """The same elements in row-major order in another shape; one extent may be -1."""
    shape = _whole_shape(a, list(shapes.as_shape(newshape)))
    return moved(shape, lambda *index: a(*_source(a, index, shape)), "T_reshape")


def _whole_shape(a: Tensor, shape: list[PrimExpr]) -> list[PrimExpr]:
    unknown = [i for i, extent in enumerate(shape) if shapes.constant(extent) == -1]
    total = shapes.size([extent for i, extent in enumerate(shape) if i not in unknown])
    count = shapes.size(a.shape)
    if len(unknown) > 1:
        raise DiagnosticError(f"reshape: only one extent of {shapes.show(shape)} can be -1")
    if unknown:
        shape[unknown[0]] = count // total
        total = total * shape[unknown[0]]
    ours, theirs = shapes.constant(total), shapes.constant(count)
    if ours is not None and theirs is not None and ours != theirs:
        raise DiagnosticError(
            f"reshape: {shapes.show(a.shape)} has {theirs} elements, {shapes.show(shape)} has "
            f"{ours}"
        )
    return shape


def _source(a: Tensor, index: Sequence[PrimExpr], shape: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Where the element for `index` of a reshaped tensor is."""
    if not a.ndim:
        return []
    if not index or any(shapes.constant(extent) == 0 for extent in a.shape):
        return [arithmetic.const(0, extent.dtype) for extent in a.shape]
    return shapes.unravel_index(shapes.ravel_index(index, shape), a.shape)


def flatten(data: Tensor) -> Tensor:
    """(n, …) as (n, product of the rest)."""
    rest = shapes.size(data.shape[1:])
    return compute(
        (data.shape[0], rest),
        lambda i, j: data(i, *shapes.unravel_index(j, data.shape[1:])),
        tag=tags.INJECTIVE,
    )


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """`num_newaxis` dimensions of extent 1 put in at `axis`."""
    place = shapes.axis_of("expand_dims", axis, a.ndim + 1)
    ones = [arithmetic.const(1, index_type(a))] * num_newaxis
    shape = [*a.shape[:place], *ones, *a.shape[place:]]
    return moved(
        shape,
        lambda *index: a(*index[:place], *index[place + num_newaxis :]),
        "T_expand_dims",
    )


def squeeze(a: Tensor, axis: Axes = None) -> Tensor:
    """Dimensions of extent 1 taken out: those of `axis`, or all."""
    if axis is None:
        gone = [i for i, extent in enumerate(a.shape) if shapes.constant(extent) == 1]
    else:
        gone = shapes.axes_of("squeeze", axis, a.ndim)
    for place in gone:
        if shapes.constant(a.shape[place]) not in (1, None):
            raise DiagnosticError(f"squeeze: dimension {place} of {shapes.show(a.shape)} is not 1")

    def element(*index: PrimExpr) -> PrimExpr:
        rest = iter(index)
        zero = arithmetic.const(0, index_type(a))
        return a(*(zero if place in gone else next(rest) for place in range(a.ndim)))

    return moved(
        [extent for i, extent in enumerate(a.shape) if i not in gone], element, "T_squeeze"
    )


def concatenate(a_tuple: Sequence[Tensor] | Tensor, axis: int = 0) -> Tensor:
    """Tensors one behind the other along an axis."""
    parts = _joined(a_tuple, "concatenate")
    place = shapes.axis_of("concatenate", axis, parts[0].ndim)
    for part in parts[1:]:
        _check_joinable(parts[0], part, place)
    starts = [arithmetic.const(0, index_type(parts[0]))]
    for part in parts:
        starts.append(shapes.simplified(starts[-1] + part.shape[place]))

    def element(*index: PrimExpr) -> PrimExpr:
        value = parts[0](*index)
        for part, start in zip(parts[1:], starts[1:-1], strict=True):
            inside = [*index]
            inside[place] = index[place] - start
            value = intrinsics.if_then_else(inside[place] >= 0, part(*inside), value)
        return value

    shape = [*parts[0].shape]
    shape[place] = starts[-1]
    return moved(shape, element, "T_concat")


def stack(tensors: Sequence[Tensor] | Tensor, axis: int = 0) -> Tensor:
    """Tensors of one shape, side by side along a new axis."""
    parts = _joined(tensors, "stack")
    place = shapes.axis_of("stack", axis, parts[0].ndim + 1)
    for part in parts[1:]:
        _check_joinable(parts[0], part, None)

    def element(*index: PrimExpr) -> PrimExpr:
        inside = index[:place] + index[place + 1 :]
        value = parts[0](*inside)
        for number, part in enumerate(parts[1:], 1):
            chosen = arithmetic.equal(index[place], arithmetic.const(number, index[place].dtype))
            value = intrinsics.if_then_else(chosen, part(*inside), value)
        return value

    shape = [*parts[0].shape]
    shape.insert(place, arithmetic.const(len(parts), index_type(parts[0])))
    return moved(shape, element, "T_stack")


def _joined(tensors: Sequence[Tensor] | Tensor, operator: str) -> list[Tensor]:
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not parts:
        raise DiagnosticError(f"{operator}: there is no tensor to join")
    return parts


def _check_joinable(first: Tensor, other: Tensor, place: int | None) -> None:
    same = first.ndim == other.ndim and all(
        i == place or shapes.same_extent(a, b)
        for i, (a, b) in enumerate(zip(first.shape, other.shape, strict=True))
    )
    if not same or first.dtype != other.dtype:
        where = "" if place is None else f" outside axis {place}"
        raise DiagnosticError(
            f"Cannot join {shapes.show(first.shape)} {first.dtype} and {shapes.show(other.shape)} "
            f"{other.dtype}: shape and dtype must agree{where}"
        )


def split(ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many of one size (of which the last may be smaller), or cut before
    each of the given positions."""
    place = shapes.axis_of("split", axis, ary.ndim)
    extent = ary.shape[place]
    zero = arithmetic.const(0, extent.dtype)
    if not isinstance(indices_or_sections, int):
        cuts = [
            _at_most(arithmetic.const(int(cut), extent.dtype), extent)
            for cut in indices_or_sections
        ]
        name = "T_split"
    else:
        parts = indices_or_sections
        if parts < 1:
            raise DiagnosticError(f"split: {shapes.show(ary.shape)} cannot be cut in {parts} parts")
        each = (extent + (parts - 1)) // parts
        cuts = [_at_most(each * n, extent) for n in range(1, parts)]
        name = "T_split_sections"
    starts, ends = [zero, *cuts], [*cuts, extent]

    def part(start: PrimExpr, end: PrimExpr) -> Tensor:
        shape = [*ary.shape]
        size = end - start
        shape[place] = arithmetic.maximum(size, 0) if shapes.constant(size) is not None else size

        def element(*index: PrimExpr) -> PrimExpr:
            inside = [*index]
            inside[place] = index[place] + start
            return ary(*inside)

        return moved(shape, element, name)

    return [part(start, end) for start, end in zip(starts, ends, strict=True)]


def _at_most(cut: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """A position, where it is known not beyond the end."""
    both = shapes.constant(cut), shapes.constant(extent)
    return cut if None in both else arithmetic.minimum(cut, extent)


def tile(a: Tensor, reps: Sequence[int]) -> Tensor:
    """`a` repeated as a whole, so many times in each dimension."""
    counts = list(reps) if isinstance(reps, (tuple, list)) else [reps]
    rank = max(a.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    one = arithmetic.const(1, index_type(a))
    extents = [one] * (rank - a.ndim) + [*a.shape]
    shape = [e * count for e, count in zip(extents, counts, strict=True)]

    def element(*index: PrimExpr) -> PrimExpr:
        own = index[rank - a.ndim :]
        if any(shapes.constant(extent) == 0 for extent in a.shape):
            return a(*own)
        return a(*(i % e for i, e in zip(own, a.shape, strict=True)))

    return moved(shape, element, "T_tile")


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    """Every element along an axis so many times."""
    place = shapes.axis_of("repeat", axis, a.ndim)
    shape = [*a.shape]
    shape[place] = repeats * shape[place]

    def element(*index: PrimExpr) -> PrimExpr:
        inside = [*index]
        inside[place] = index[place] // repeats
        return a(*inside)

    return moved(shape, element, "T_repeat")


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """The order along an axis reversed."""
    place = shapes.axis_of("flip", axis, a.ndim)

    def element(*index: PrimExpr) -> PrimExpr:
        inside = [*index]
        inside[place] = a.shape[place] - 1 - index[place]
        return a(*inside)

    return moved(a.shape, element, "T_reverse_sequence")


def where(condition: Tensor, x: Operand, y: Operand) -> Tensor:
    """Elements of `x` where the condition holds (is not zero), of `y` elsewhere; broadcasts."""
    operands = [operand for operand in (condition, x, y) if isinstance(operand, Tensor)]
    shape = shapes.broadcast("where", *(operand.shape for operand in operands))

    def at(operand: Operand, index: Sequence[PrimExpr]) -> Any:
        if not isinstance(operand, Tensor):
            return operand
        return operand(*shapes.broadcast_index(operand.shape, index, shape))

    def element(*index: PrimExpr) -> PrimExpr:
        chosen = at(condition, index)
        if dtypes.is_bool(chosen.dtype):
            chosen = arithmetic.cast(index_type(condition), chosen)
            chosen = arithmetic.less(0, chosen)
        else:
            chosen = arithmetic.not_equal(chosen, arithmetic.const(0, chosen.dtype))
        return arithmetic.select(chosen, *arithmetic.match_types(at(x, index), at(y, index)))

    axes = shapes.axis_names(len(shape))
    return compute(shape, element, "T_where", tag=tags.BROADCAST, varargs_names=axes)


def strided_slice(
    a: Tensor,
    begin: Sequence[Extent],
    end: Sequence[Extent],
    strides: Sequence[Extent] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
    assume_inbound: bool = False,
) -> Tensor:
    """Elements begin, begin + stride, … before end, along `axes` (the first ones by default).

    Negative positions count from the end, positions outside are kept to the tensor, negative
    strides go backwards, as slices in Python do. With `assume_inbound` positions are taken as they
    are. In the `slice_mode` "size" `end` has numbers of elements, -1 for all, and strides are 1.
    """
    if slice_mode not in ("end", "size"):
        raise DiagnosticError(f'strided_slice: slice_mode is "end" or "size", not {slice_mode!r}')
    places = (
        list(range(len(begin)))
        if axes is None
        else [shapes.axis_of("strided_slice", axis, a.ndim) for axis in axes]
    )
    steps = list(strides) if strides and slice_mode == "end" else [1] * len(places)
    if slice_mode == "size":
        end = [
            a.shape[place] if shapes.constant(size) == -1 else low + size
            for place, low, size in zip(places, begin, end, strict=True)
        ]
    if len(steps) == 1:
        steps = steps * len(places)
    shape: list[Extent] = [*a.shape]
    starts: list[Extent] = [0] * a.ndim
    factors: list[Extent] = [1] * a.ndim
    for place, low, high, step in zip(places, begin, end, steps, strict=True):
        if shapes.constant(step) == 0:
            raise DiagnosticError("strided_slice: a stride is 0")
        starts[place], shape[place] = shapes.slice_range(
            shape[place], low, high, step, assume_inbound
        )
        factors[place] = step

    def element(*index: PrimExpr) -> PrimExpr:
        return a(
            *(i * factor + start for i, factor, start in zip(index, factors, starts, strict=True))
        )

    return moved(shape, element, "T_strided_slice")


def arange(
    start: Scalar,
    stop: Scalar | None = None,
    step: Scalar = 1,
    dtype: str = "float32",
) -> Tensor:
    """start, start + step, … before stop."""
    if stop is None:
        start, stop = 0, start
    bounds = [arithmetic.constant_value(value) for value in (start, stop, step)]
    if any(bound is None for bound in bounds) or not bounds[2]:
        raise DiagnosticError("arange: start, stop and step are numbers, and step is not 0")
    low, high, stride = (float(bound) for bound in bounds)  # type: ignore[arg-type]
    count = max(0, int(-((low - high) // stride)))

    def element(i: PrimExpr) -> PrimExpr:
        first, by = arithmetic.cast(dtype, start), arithmetic.cast(dtype, step)
        return first + arithmetic.cast(dtype, i) * by

    return moved((count,), lambda *index: element(index[0]), "T_arange")


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """Coordinates of a grid from the coordinates of its axes: vectors, or scalars for one."""
    order = list(range(len(a_tuple)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    one = arithmetic.const(1, next((index_type(a) for a in a_tuple if a.ndim), "int32"))
    shape = [a_tuple[i].shape[0] if a_tuple[i].ndim else one for i in order]
    return [
        moved(shape, lambda *index, a=a, i=i: a(*[index[order.index(i)]] * a.ndim), "T_meshgrid")
        for i, a in enumerate(a_tuple)
    ]


def layout_transform(array: Tensor, src_layout: str, dst_layout: str) -> Tensor:
    """A tensor in another layout: NCHW to NHWC, or to NCHW16c, whose C counts blocks of 16
    channels. Where that pads the last block, zeros do."""
    change = bijective_layout(src_layout, dst_layout)
    if change is None or len(change.src_layout) != array.ndim:
        raise DiagnosticError(
            f"layout_transform: {src_layout} to {dst_layout} is no change of the layout of a "
            f"tensor of {array.ndim} dimension(s)"
        )
    if not (change.src_layout.factors or change.dst_layout.factors):
        return transpose(array, [src_layout.index(axis) for axis in dst_layout])
    padded = any(
        not arithmetic.is_const_int(total - there, 0)
        for total, there in zip(
            change.backward_shape(change.forward_shape(array.shape)), array.shape, strict=True
        )
    )

    def element(*index: PrimExpr) -> PrimExpr:
        source = change.backward_index(index)
        if not padded:
            return array(*source)
        inside = logic.all(*map(arithmetic.less, source, array.shape))
        zero = arithmetic.const(0, array.dtype)
        return intrinsics.if_then_else(inside, array(*source), zero)

    return moved(change.forward_shape(array.shape), element, "T_layout_trans")


def tril_or_triu(data: Tensor, k: Extent, upper: bool, name: str) -> Tensor:
    """`data` with zeros below (`upper`) or above the k-th diagonal of its last two dimensions."""

    def element(*index: PrimExpr) -> PrimExpr:
        row, column = index[-2], index[-1]
        offset = row + k
        kept = column >= offset if upper else column <= offset
        return arithmetic.select(kept, data(*index), arithmetic.const(0, data.dtype))

    return moved(data.shape, element, name)


def triu(data: Tensor, k: Extent = 0) -> Tensor:
    """The upper triangle of the last two dimensions."""
    return tril_or_triu(data, k, True, "trilu")


def tril(data: Tensor, k: Extent = 0) -> Tensor:
    """The lower triangle of the last two dimensions."""
    return tril_or_triu(data, k, False, "trilu")


def shape_of(array: Tensor, dtype: str = "int32") -> Tensor:
    """The extents as a array of one dimension."""

    def element(i: PrimExpr) -> PrimExpr:
        value = arithmetic.const(0, dtype)
        for place, extent in enumerate(array.shape):
            value = arithmetic.select(
                arithmetic.equal(i, place), arithmetic.cast(dtype, extent), value
            )
        return value

    return moved((array.ndim,), lambda *index: element(index[0]), "T_shape")


shape_of.__name__ = "shape"  # its name in topi


def tensor_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements, as a tensor without dimensions."""
    return compute((), lambda *_: arithmetic.cast(dtype, shapes.size(array.shape)), "tensor_size")


def expand_like(a: Tensor, shape_like: Tensor, axis: Sequence[int]) -> Tensor:
    """`a` repeated along new dimensions, those of `axis`, to the shape of another tensor."""
    new = [shapes.axis_of("expand_like", one, shape_like.ndim) for one in axis]
    if a.ndim + len(new) != shape_like.ndim:
        raise DiagnosticError(
            f"expand_like: {len(new)} new dimension(s) do not make {shapes.show(shape_like.shape)} "
            f"of {shapes.show(a.shape)}"
        )

    def element(*index: PrimExpr) -> PrimExpr:
        return a(*(i for place, i in enumerate(index) if place not in new))

    return compute(shape_like.shape, element)


def dyn_tile(a: Tensor, new_shape: ShapeLike, rdim: int) -> Tensor:
    """`a` repeated to fill a `new_shape`; `rdim` is the number of repetitions that made it."""
    extents = shapes.as_shape(new_shape)
    if len(extents) != max(a.ndim, rdim):
        raise DiagnosticError(f"dyn_tile: {shapes.show(extents)} has {len(extents)} dimension(s)")

    def element(*index: PrimExpr) -> PrimExpr:
        own = index[len(index) - a.ndim :]
        return a(*(i % n for i, n in zip(own, a.shape, strict=True)))

    return moved(extents, element, "T_tile")


def index_type(a: Tensor) -> str:
    """The type of the indices of a tensor."""
    return a.shape[0].dtype if a.shape else "int32"


def reverse_sequence(
    a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> Tensor:
    """The first `seq_lengths[b]` slices along `seq_axis` in reverse order, for each position b on
    `batch_axis`; what is behind them stays. A
    longer sequence has all slices."""
    along = shapes.axis_of("reverse_sequence", seq_axis, a.ndim)
    batch = shapes.axis_of("reverse_sequence", batch_axis, a.ndim)

    def element(*index: PrimExpr) -> PrimExpr:
        step = index[along]
        length = arithmetic.cast(step.dtype, seq_lengths(index[batch]))
        length = arithmetic.minimum(length, a.shape[along])
        back = length - 1 - step
        inside = step < length
        return a(*index[:along], arithmetic.select(inside, back, step), *index[along + 1 :])

    return moved(a.shape, element, "T_reverse_sequence")
