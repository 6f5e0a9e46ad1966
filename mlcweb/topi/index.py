"""Operators that pick elements by index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes
from mlcweb.topi.shapes import Extent, Scalar
from mlcweb.topi.transform import index_type, moved


def take(
    a: Tensor, indices: Any, axis: int | None = None, batch_dims: int = 0, mode: str = "fast"
) -> Tensor:
    """The slices of `a` that `indices` name, along an axis (in the flat array without one).

    Args:
        indices: a tensor of integers, or one integer.
        batch_dims: how many leading dimensions `a` and the indices share: each position in them
            has its own indices.
        mode: "clip" keeps indices in range, "wrap" takes them modulo the extent, "nan" gives NaN
            for those out of range, "fast" trusts them.
    """
    index_shape = indices.shape if isinstance(indices, Tensor) else ()
    rank = len(index_shape)

    def chosen(index: Sequence[PrimExpr]) -> PrimExpr:
        return indices(*index) if isinstance(indices, Tensor) else arithmetic.convert(indices)

    def guarded(number: PrimExpr, extent: PrimExpr, value: PrimExpr) -> PrimExpr:
        if mode != "nan":
            return value
        number, extent = arithmetic.match_types(number, extent)
        inside = arithmetic.logical_and(number >= 0, number < extent)
        return intrinsics.if_then_else(inside, value, arithmetic.const(math.nan, a.dtype))

    if mode == "nan" and not dtypes.is_float(a.dtype):
        raise DiagnosticError(f'take: the mode "nan" is one of floats, not of {a.dtype}')
    if axis is None:
        if batch_dims:
            raise DiagnosticError("take: with batch_dims, there must be an axis")
        length = shapes.size(a.shape)

        def flat(*index: PrimExpr) -> PrimExpr:
            place = shapes.unravel_index(_in_mode(chosen(index), length, mode), a.shape)
            return guarded(chosen(index), length, a(*place))

        return moved(index_shape, flat, "T_take")
    place = shapes.axis_of("take", axis, a.ndim)
    shared = batch_dims + rank if batch_dims < 0 else batch_dims
    if not 0 <= shared <= min(rank, place) or not all(
        map(shapes.same_extent, a.shape[:shared], index_shape[:shared])
    ):
        raise DiagnosticError(
            f"take: {shapes.show(a.shape)} and the indices {shapes.show(index_shape)} do not share "
            f"{batch_dims} leading dimension(s) before axis {axis}"
        )
    behind = place + rank - shared
    extent = a.shape[place]

    def element(*index: PrimExpr) -> PrimExpr:
        number = chosen([*index[:shared], *index[place:behind]])
        inside = [*index[:place], _in_mode(number, extent, mode), *index[behind:]]
        return guarded(number, extent, a(*inside))

    shape = [*a.shape[:place], *index_shape[shared:], *a.shape[place + 1 :]]
    return moved(shape, element, "T_take")


def _in_mode(index: PrimExpr, extent: PrimExpr, mode: str) -> PrimExpr:
    if mode in ("fast", "nan"):
        return index
    index, limit = arithmetic.match_types(index, extent)
    if mode == "clip":
        return arithmetic.minimum(arithmetic.maximum(0, index), limit - 1)
    if mode == "wrap":
        return arithmetic.truncmod(arithmetic.truncmod(index, limit) + limit, limit)
    raise DiagnosticError(f'take: the mode is "fast", "clip", "wrap" or "nan", not {mode!r}')


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """out[i][j] = data[indices[i][j]][j] for axis 0, and so on; as `numpy.take_along_axis`."""
    place = shapes.axis_of("gather", axis, data.ndim)
    if indices.ndim != data.ndim:
        raise DiagnosticError(
            f"gather: the indices have {indices.ndim} dimension(s), the data {data.ndim}"
        )

    def element(*index: PrimExpr) -> PrimExpr:
        return data(*index[:place], indices(*index), *index[place + 1 :])

    return moved(indices.shape, element, "T_gather")


def one_hot(
    indices: Tensor,
    on_value: Scalar,
    off_value: Scalar,
    depth: int,
    axis: int,
    dtype: str,
) -> Tensor:
    """`on_value` where the position along a new axis of extent `depth` is the index."""
    place = shapes.axis_of("one_hot", axis, indices.ndim + 1)
    shape = [*indices.shape]
    shape.insert(place, arithmetic.const(depth, index_type(indices)))
    on, off = arithmetic.cast(dtype, on_value), arithmetic.cast(dtype, off_value)

    def element(*index: PrimExpr) -> PrimExpr:
        position = indices(*index[:place], *index[place + 1 :])
        return arithmetic.select(arithmetic.equal(position, index[place]), on, off)

    return moved(shape, element, "T_one_hot")


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """The slices of `a` at the positions that the first axis of `indices` holds: out[y, z] =
    data[indices[0, y], …, indices[m - 1, y], z]. The first `batch_dims` axes after it are those of
    `a`."""
    count = shapes.constant(indices.shape[0])
    if count is None or batch_dims + count > a.ndim:
        raise DiagnosticError(
            f"gather_nd: indices {shapes.show(indices.shape)} name their first dimension's number "
            f"of axes of {shapes.show(a.shape)}"
        )
    rank = indices.ndim - 1

    def element(*index: PrimExpr) -> PrimExpr:
        outer = index[:rank]
        place = [indices(arithmetic.const(i, index_type(indices)), *outer) for i in range(count)]
        return a(*index[:batch_dims], *place, *index[rank:])

    shape = [*indices.shape[1:], *a.shape[batch_dims + count :]]
    return moved(shape, element, "T_gather_nd")


def index_tensor(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """`data[indices]` with tensors of integers for the first axes, broadcast."""
    where = shapes.broadcast("index_tensor", *(one.shape for one in indices))
    rank = len(where)

    def element(*index: PrimExpr) -> PrimExpr:
        outer = index[:rank]
        place = []
        for axis, one in enumerate(indices):
            chosen = one(*shapes.broadcast_index(one.shape, outer, where))
            place.append(from_end(chosen, data.shape[axis]))
        return data(*place, *index[rank:])

    return moved([*where, *data.shape[len(indices) :]], element, "advanced_index")


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """`data[indices]` with tensors of indices for the first axes, broadcast; none is negative."""
    if not 0 < len(indices) <= data.ndim:
        raise DiagnosticError(f"adv_index: {len(indices)} indices of {data.ndim} dimension(s)")
    where = shapes.broadcast("adv_index", *(one.shape for one in indices))
    rank = len(where)

    def element(*index: PrimExpr) -> PrimExpr:
        outer = index[:rank]
        place = [one(*shapes.broadcast_index(one.shape, outer, where)) for one in indices]
        return data(*place, *index[rank:])

    return moved([*where, *data.shape[len(indices) :]], element, "advanced_index")


def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """Positions in a flat array as positions along each axis of a tensor of a `shape`.

    The shape is a tensor of extents. The result has one more dimension in front: the axes.
    """
    count = shapes.constant(shape.shape[0])
    if shape.ndim != 1 or count is None:
        raise DiagnosticError(f"unravel_index: {shapes.show(shape.shape)} is no list of extents")

    def element(*index: PrimExpr) -> PrimExpr:
        axis, rest = index[0], indices(*index[1:])
        places: list[PrimExpr] = []
        for which in reversed(range(count)):
            extent = arithmetic.cast(rest.dtype, shape(which))
            places.insert(0, rest % extent)
            rest = rest // extent
        chosen = places[-1]
        for which in reversed(range(count - 1)):
            chosen = intrinsics.if_then_else(arithmetic.equal(axis, which), places[which], chosen)
        return chosen

    return moved([count, *indices.shape], element, "T_unravel")


def sparse_to_dense(
    sparse_indices: Tensor, output_shape: Sequence[Extent], sparse_values: Tensor,
    default_value: Scalar = 0,
) -> Tensor:  # fmt: skip
    """A tensor of `default_value` with values at a list of positions; the last of several wins.

    Args:
        sparse_indices: (), (n,) or (n, dimensions of the result).
        sparse_values: (), or (n,).
    """
    ndim = len(output_shape)
    inner = 1 if sparse_indices.ndim < 2 else shapes.constant(sparse_indices.shape[1])
    count = 1 if sparse_indices.ndim == 0 else shapes.constant(sparse_indices.shape[0])
    if inner != ndim or count is None or sparse_values.ndim > 1:
        raise DiagnosticError(
            f"sparse_to_dense: indices {shapes.show(sparse_indices.shape)} and values "
            f"{shapes.show(sparse_values.shape)} do not fit {ndim} dimension(s)"
        )
    default = arithmetic.cast(sparse_values.dtype, default_value)

    def element(*index: PrimExpr) -> PrimExpr:
        value: Any = default
        for n in range(count):
            row = [n][: sparse_indices.ndim]
            met: PrimExpr | None = None
            for axis, i in enumerate(index):
                column = [axis] if sparse_indices.ndim == 2 else []
                at = arithmetic.equal(i, sparse_indices(*row, *column))
                met = at if met is None else arithmetic.logical_and(met, at)
            value = intrinsics.if_then_else(met, sparse_values(*[n][: sparse_values.ndim]), value)
        return value

    return moved(output_shape, element, "T_sparse_to_dense")


def from_end(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """An index that counts from the end where it is negative."""
    shifted = index + arithmetic.cast(index.dtype, extent)
    return arithmetic.select(index < 0, shifted, index)
