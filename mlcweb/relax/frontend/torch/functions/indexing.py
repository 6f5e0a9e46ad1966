"""Functions that choose elements by position, or put them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.torch.functions.arithmetic import as_type, promoted
from mlcweb.relax.frontend.torch.translator import (
    Number,
    Result,
    TorchError,
    Translator,
    function,
)
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


@function("select")
def select(t: Translator, input: E.Expr, dim: int, index: int) -> E.Expr:
    shape = t.shape(input)
    axis = dim % len(shape)
    extent = shape[axis]
    if isinstance(extent, PrimExpr) or not isinstance(index, int):
        last = None if isinstance(index, int) and index == -1 else index + 1
        return op.squeeze(_sliced(t, input, axis, index, last, 1), [axis])
    if not -extent <= index < extent:
        raise TorchError(f"There is no element {index} on axis {axis}, which has {extent}")
    return op.take(input, t.const(index % extent, "int64"), axis)


@function("slice")
def slice_(
    t: Translator, input: E.Expr, dim: int = 0, start: Extent | None = None,
    end: Extent | None = None, step: int = 1,
) -> E.Expr:  # fmt: skip
    return _sliced(t, input, dim % len(t.shape(input)), start, end, step)


@function("narrow")
def narrow(t: Translator, input: E.Expr, dim: int, start: int, length: int) -> E.Expr:
    return _sliced(t, input, dim % len(t.shape(input)), start, start + length, 1)


def _sliced(
    t: Translator, input: E.Expr, axis: int, start: Extent | None, end: Extent | None,
    step: int | None,
) -> E.Expr:  # fmt: skip
    extent = t.shape(input)[axis]
    whole = 2**31 - 1 if isinstance(extent, PrimExpr) else extent
    start, step = start or 0, step or 1
    if start == 0 and step == 1 and (end is None or (isinstance(end, int) and end >= whole)):
        return input
    if end is None:
        end = extent
    return op.strided_slice(input, [axis], [start], [end], [step])


@function("unbind")
def unbind(t: Translator, input: E.Expr, dim: int = 0) -> Result:
    return tuple(select(t, input, dim, i) for i in range(t.extent(input, dim)))


@function("getitem")
def getitem(t: Translator, input: E.Expr | Sequence[Result], index: Any) -> Result:
    return _indexed(t, input, index) if isinstance(input, E.Expr) else input[index]


def _indexed(t: Translator, input: E.Expr, index: object) -> E.Expr:
    """`input[index]`: slices first, axis by axis, then what is indexed by tensors, then new axes
    are made and those of numbers left out."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = [item for item in items if item is not None and item is not Ellipsis]
    if Ellipsis not in [item for item in items if not isinstance(item, E.Expr)]:
        items.append(Ellipsis)
    rest = t.ndim(input) - sum(_axes_of(t, item) for item in used)
    axis = 0
    gather: list[E.Expr | None] = []  # for each axis of the tensor with new axes
    for item in items:
        if item is Ellipsis:
            axis += rest
            gather += [None] * rest
        elif item is None:
            input = t.bound(op.expand_dims(input, axis))
            axis += 1
            gather.append(None)
        elif isinstance(item, slice):
            input = t.bound(_sliced(t, input, axis, item.start, item.stop, item.step))
            axis += 1
            gather.append(None)
        elif isinstance(item, int):
            input = t.bound(select(t, input, axis, item))
        elif isinstance(item, (list, range)):
            gather.append(t.const(list(item), "int64"))
            axis += 1
        elif isinstance(item, E.Expr):
            gather.append(item)
            axis += _axes_of(t, item)
        else:
            raise TorchError(f"A tensor indexed by {items} cannot be imported")
    return index_(t, input, gather) if any(i is not None for i in gather) else input


def _axes_of(t: Translator, item: object) -> int:
    """How many axes an index is for: a mask has all of its own."""
    return t.ndim(item) if isinstance(item, E.Expr) and t.dtype(item) == "bool" else 1


@function("index")
def index_(t: Translator, input: E.Expr, indices: Sequence[E.Expr | None]) -> E.Expr:
    """NumPy's rule: axes that tensors index become the broadcast of these, at the first of the axes
    if they are side by side, else in front."""
    places, tensors = _split_masks(t, indices)
    if len(places) == 1:
        return op.take(input, _from_front(t, input, tensors[0], places[0]), places[0])
    ndim = t.ndim(input)
    others = [axis for axis in range(ndim) if axis not in places]
    tensors = [_from_front(t, input, i, a) for i, a in zip(tensors, places, strict=True)]
    moved = input if places == list(range(len(places))) else op.permute_dims(
        input, places + others)  # fmt: skip
    result = t.bound(op.index_tensor(t.bound(moved), tensors))
    first = places[0]
    if first and places == list(range(first, first + len(places))):
        new = t.ndim(result) - len(others)
        order = [*range(new, new + first), *range(new), *range(new + first, t.ndim(result))]
        result = op.permute_dims(result, order)
    return result


def _split_masks(t: Translator, indices: Sequence[E.Expr | None]) -> tuple[list[int], list[E.Expr]]:
    """The axes that are indexed, and by what; a mask becomes the positions where it is true."""
    places: list[int] = []
    tensors: list[E.Expr] = []
    axis = 0
    for item in indices:
        if item is None:
            axis += 1
            continue
        if t.dtype(item) != "bool":
            item_tensors = [item]
        else:
            where = _true_places(t, item)
            item_tensors = [t.bound(select(t, where, 0, row)) for row in range(t.ndim(item))]
        places += range(axis, axis + len(item_tensors))
        tensors += item_tensors
        axis += len(item_tensors)
    return places, tensors


def _true_places(t: Translator, input: E.Expr) -> E.Expr:
    """The positions of what is not 0, a row for each axis; how many is known in a run."""
    size = PrimVar(t.block_builder.get_unique_name("selected"), "int64")
    info = TensorStructInfo([t.ndim(input), size], "int64")
    return t.block_builder.match_cast(t.bound(op.nonzero(input)), info)


def _from_front(t: Translator, input: E.Expr, index: E.Expr, axis: int) -> E.Expr:
    """Positions, of which negative ones count from the end."""
    if isinstance(index, E.Constant) and (index.data.numpy() >= 0).all():
        return index
    extent = t.shape(input)[axis]
    dtype = t.dtype(index)
    size = (
        t.const(extent, dtype)
        if isinstance(extent, int)
        else op.astype(t.bound(op.shape_to_tensor(E.ShapeExpr([extent]))), dtype)
    )
    negative = index < t.const(0, dtype)
    return t.bound(op.where(negative, index + size, index))


@function("index_put", "_unsafe_index_put")
def index_put(
    t: Translator, input: E.Expr, indices: Sequence[E.Expr | None], values: E.Expr,
    accumulate: bool = False,
) -> E.Expr:  # fmt: skip
    values = as_type(t, values, t.dtype(input))
    present = [i for i in indices if i is not None]
    if len(present) == 1 and t.dtype(present[0]) == "bool" and not t.ndim(values):
        mask = present[0]  # a scalar where a mask is true
        front = list(indices).index(mask)
        behind = t.ndim(input) - front - t.ndim(mask)
        if behind:
            mask = op.expand_dims(mask, [t.ndim(mask) + i for i in range(behind)])
        filling = input + values if accumulate else values
        return op.where(t.bound(mask), filling, input)
    places, tensors = _split_masks(t, indices)
    tensors = [_from_front(t, input, i, a) for i, a in zip(tensors, places, strict=True)]
    most = max(map(t.ndim, tensors))
    tensors = [_with_ndim(t, tensor, most) for tensor in tensors]
    if places == list(range(len(places))):
        return op.index_put(input, E.Tuple(tensors), values, accumulate)
    others = [axis for axis in range(t.ndim(input)) if axis not in places]
    order = [*places, *others]
    first = places[0] if places == list(range(places[0], places[0] + len(places))) else 0
    if first:  # the axes of positions are behind as many others
        values = _with_ndim(t, values, most + len(others))
        axes = [*range(first, first + most), *range(first), *range(first + most, t.ndim(values))]
        values = t.bound(op.permute_dims(values, axes))
    moved = t.bound(op.permute_dims(input, order))
    result = t.bound(op.index_put(moved, E.Tuple(tensors), values, accumulate))
    return op.permute_dims(result, [order.index(axis) for axis in range(len(order))])


def _with_ndim(t: Translator, value: E.Expr, ndim: int) -> E.Expr:
    missing = ndim - t.ndim(value)
    return t.bound(op.expand_dims(value, list(range(missing)))) if missing else value


@function("index_select")
def index_select(t: Translator, input: E.Expr, dim: int, index: E.Expr) -> E.Expr:
    return op.take(input, index, dim % len(t.shape(input)))


@function("gather")
def gather(t: Translator, input: E.Expr, dim: int, index: E.Expr) -> E.Expr:
    return op.gather_elements(input, index, dim % len(t.shape(input)))


@function("take")
def take(t: Translator, input: E.Expr, index: E.Expr) -> E.Expr:
    flat = t.bound(op.reshape(input, [-1]))
    return op.take(flat, _from_front(t, flat, index, 0), 0)


@function("masked_select")
def masked_select(t: Translator, input: E.Expr, mask: E.Expr) -> E.Expr:
    mask = t.bound(op.broadcast_to(mask, t.shape(input)))
    return index_(t, t.bound(input), [mask])


@function("masked_scatter")
def masked_scatter(t: Translator, input: E.Expr, mask: E.Expr, source: E.Expr) -> E.Expr:
    """The elements of `source`, in order, where `mask` is true."""
    shape = t.shape(input)
    mask = t.bound(op.broadcast_to(mask, shape))
    flat = op.astype(op.reshape(mask, [-1]), "int64")
    before = t.bound(op.cumsum(flat, 0, exclusive=True))
    picked = op.take(op.reshape(source, [-1]), before, 0, mode="clip")
    return op.where(mask, op.reshape(picked, shape), input)


@function("nonzero")
def nonzero(t: Translator, input: E.Expr, *, as_tuple: bool = False) -> Result:
    where = _true_places(t, input)
    if as_tuple:
        return tuple(select(t, where, 0, axis) for axis in range(t.ndim(input)))
    return op.permute_dims(where)


_REDUCTIONS = {
    "sum": "add", "prod": "mul", "amin": "min", "amax": "max", "add": "add", "multiply": "mul",
}  # fmt: skip


@function("scatter", "scatter_reduce")
def scatter(
    t: Translator, input: E.Expr, dim: int, index: E.Expr, src: E.Expr | Number | None = None,
    reduce: str | None = None, *, value: Number | None = None, include_self: bool = True,
) -> E.Expr:  # fmt: skip
    """input[index[i, j], j] = src[i, j] for axis 0, and so on; or reduced with what was there."""
    if reduce not in (None, *_REDUCTIONS) or not include_self:
        raise TorchError(
            f'scatter_reduce with reduce="{reduce}", include_self={include_self} cannot be '
            f"imported; the reductions are {', '.join(_REDUCTIONS)}, with include_self=True"
        )
    axis, dtype, shape = dim % t.ndim(input), t.dtype(input), t.shape(index)
    values = value if src is None else src
    if not isinstance(values, E.Expr):
        source: E.Expr = op.full(shape, t.const(values or 0, dtype), dtype)
    else:
        source = values
        for place, extent in enumerate(shape):  # there may be more than are used
            source = t.bound(_sliced(t, source, place, 0, extent, 1))
    how = "update" if reduce is None else _REDUCTIONS[reduce]
    return op.scatter_elements(input, index, source, axis, how)


@function("scatter_add")
def scatter_add(t: Translator, input: E.Expr, dim: int, index: E.Expr, src: E.Expr) -> E.Expr:
    return scatter(t, input, dim, index, src, "sum")


@function("index_add")
def index_add(
    t: Translator, input: E.Expr, dim: int, index: E.Expr, source: E.Expr, *, alpha: Number = 1
) -> E.Expr:
    if alpha != 1:
        source = t.bound(op.multiply(*promoted(t, source, alpha)))
    return scatter(t, input, dim, _along(t, index, dim, source), source, "sum")


@function("index_copy")
def index_copy(t: Translator, input: E.Expr, dim: int, index: E.Expr, source: E.Expr) -> E.Expr:
    return scatter(t, input, dim, _along(t, index, dim, source), source)


@function("index_fill")
def index_fill(t: Translator, input: E.Expr, dim: int, index: E.Expr, value: Number) -> E.Expr:
    shape = t.shape(input)
    shape[dim] = t.shape(index)[0]
    source = t.bound(op.full(shape, t.const(value, t.dtype(input)), t.dtype(input)))
    return index_copy(t, input, dim, index, source)


def _along(t: Translator, index: E.Expr, dim: int, source: E.Expr) -> E.Expr:
    """A vector of positions on an axis as positions of elements of `source`."""
    shape = t.shape(source)
    axis = dim % len(shape)
    column = op.reshape(index, [-1 if place == axis else 1 for place in range(len(shape))])
    return t.bound(op.broadcast_to(column, shape))


@function("slice_scatter")
def slice_scatter(
    t: Translator, input: E.Expr, src: E.Expr, dim: int = 0, start: Extent | None = None,
    end: Extent | None = None, step: int = 1,
) -> E.Expr:  # fmt: skip
    extent = t.shape(input)[dim]
    if isinstance(extent, int) and not isinstance(start, PrimExpr):
        if not isinstance(end, PrimExpr):
            taken = range(*slice(start, end, step).indices(extent))
            start, end = taken.start, max(taken.stop, taken.start)
    end = extent if end is None or (isinstance(end, int) and end >= 2**31 - 1) else end
    return op.slice_scatter(
        input, as_type(t, src, t.dtype(input)), E.PrimValue(start or 0), E.PrimValue(end),
        E.PrimValue(step), dim % t.ndim(input),
    )  # fmt: skip


@function("select_scatter")
def select_scatter(t: Translator, input: E.Expr, src: E.Expr, dim: int, index: int) -> E.Expr:
    place = dim % t.ndim(input)
    end = None if index == -1 else index + 1
    return slice_scatter(t, input, t.bound(op.expand_dims(src, place)), place, index, end)


@function("diagonal")
def diagonal(t: Translator, input: E.Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> E.Expr:
    """Elements (i, i + offset) of two axes, as the last axis."""
    ndim = t.ndim(input)
    rows, columns = dim1 % ndim, dim2 % ndim
    size = min(t.extent(input, rows) + min(offset, 0), t.extent(input, columns) - max(offset, 0))
    others = [axis for axis in range(ndim) if axis not in (rows, columns)]
    first = [max(-offset, 0) + i for i in range(size)]
    second = [max(offset, 0) + i for i in range(size)]
    in_front = t.bound(op.permute_dims(input, [rows, columns, *others]))
    elements = op.index_tensor(in_front, [t.const(first, "int64"), t.const(second, "int64")])
    return op.permute_dims(t.bound(elements), [*range(1, ndim - 1), 0])
