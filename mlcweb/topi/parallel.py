"""Sorts and running results for GPUs, as reductions that any number of threads compute at once.

The loops of `sorting` and `scan` go from element to element. Here each element is computed without
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.ir.lazy_attributes import provided
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.reduction import reduce_axis

CHUNK = 128
"""How many elements a running result combines that no other chunk has combined before."""

Before = Callable[[PrimExpr, PrimExpr], PrimExpr]


def is_targeted() -> bool:
    """Whether the current target, of `with target:`, is a GPU."""
    target = provided(__name__, "current_target")()
    return target is not None and "gpu" in target.keys


def order(data: Tensor, place: int, before: Before, count: Tensor | None) -> Tensor:
    """Positions along an axis in the order of the elements there, of which the first `count` are
    sorted: an element's place is the number of those that come before it. They are int32, which
    all languages of GPUs have."""
    extent = data.shape[place]
    k, p = (reduce_axis((0, extent), name) for name in "kp")

    def rank(*index: PrimExpr) -> PrimExpr:
        own, other = data(*index), data(*_put(index, place, k.var))
        earlier = k.var < index[place]
        equal = arithmetic.logical_and(arithmetic.logical_not(before(own, other)), earlier)
        precedes = arithmetic.logical_or(before(other, own), equal)
        if count is not None:
            end = arithmetic.cast(k.var.dtype, count(*index[:place], *index[place + 1 :]))
            precedes = arithmetic.logical_and(k.var < end, precedes)
            precedes = arithmetic.select(index[place] < end, precedes, earlier)
        return reducers.sum(arithmetic.cast("int32", precedes), [k])

    ranks = compute(data.shape, rank, "rank")

    def at_rank(*index: PrimExpr) -> PrimExpr:
        own = arithmetic.cast("int32", index[place])
        is_here = arithmetic.equal(ranks(*_put(index, place, p.var)), own)
        position = arithmetic.cast("int32", p.var)
        return reducers.sum(arithmetic.select(is_here, position, arithmetic.const(0)), [p])

    return compute(data.shape, at_rank, "argsort")


def scan(
    data: Tensor, place: int, element: str, exclusive: bool, neutral: int, name: str
) -> Tensor:
    """The sums (products if `neutral` is 1) along an axis of all elements up to each: those of its
    chunk, and the results of the chunks before it."""
    sums = neutral == 0
    reducer = reducers.sum if sums else reducers.prod
    combine = arithmetic.add if sums else arithmetic.multiply
    extent = data.shape[place]
    nothing = arithmetic.const(neutral, element)
    chunks = (extent + (CHUNK - 1)) // CHUNK
    chunked = _put(data.shape, place, chunks)
    inside, within = (reduce_axis((0, CHUNK), axis) for axis in ("k", "j"))
    chunk = reduce_axis((0, chunks), "c")

    def guarded(counts: PrimExpr, index: Sequence[PrimExpr], position: PrimExpr) -> PrimExpr:
        value = arithmetic.cast(element, data(*_put(index, place, position)))
        return if_then_else(counts, value, nothing)

    def whole(*index: PrimExpr) -> PrimExpr:
        position = index[place] * CHUNK + inside.var
        return reducer(guarded(position < extent, index, position), [inside])

    wholes = compute(chunked, whole, f"{name}_chunk")

    def before(*index: PrimExpr) -> PrimExpr:
        result = wholes(*_put(index, place, chunk.var))
        return reducer(if_then_else(chunk.var < index[place], result, nothing), [chunk])

    offsets = compute(chunked, before, f"{name}_offset")

    def part(*index: PrimExpr) -> PrimExpr:
        own = index[place]
        position = own // CHUNK * CHUNK + within.var
        counts = position < own if exclusive else position <= own
        return reducer(guarded(counts, index, position), [within])

    parts = compute(data.shape, part, f"{name}_part")

    def result(*index: PrimExpr) -> PrimExpr:
        return combine(offsets(*_put(index, place, index[place] // CHUNK)), parts(*index))

    return compute(data.shape, result, name)


def _put(index: Sequence[PrimExpr], place: int, value: PrimExpr) -> list[PrimExpr]:
    """The index with another position along an axis."""
    return [*index[:place], value, *index[place + 1 :]]
