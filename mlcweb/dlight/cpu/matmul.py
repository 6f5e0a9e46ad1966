"""Sums of products in which elements are used several times: matrix multiplications, convolutions,
and what is built like them.

A tile of sums stays in registers while the reduction runs, as in K. Goto and R. van de Geijn,
"Anatomy of High-Performance Matrix Multiplication" (2008): rows times vectors. Elements for
the lanes of vectors are copied to panels, where they lie in the order in which they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlcweb.arith.index_map import IndexMap
from mlcweb.dlight.base import ScheduleRule
from mlcweb.dlight.cpu.inlining import inline_spatial
from mlcweb.dlight.cpu.machine import RegisterTile, is_compiled, register_tile
from mlcweb.lower.optimize.vectorize import REASSOCIATE
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    REDUCTION,
    SPATIAL,
    coefficient,
    consumers_of,
    extent_of,
    has_trivial_binding,
    inputs_of,
    is_reduction_block,
    is_spatial,
    place_of,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.scopes import is_output_block
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.buffer import BufferRegion
from mlcweb.tir.expr import Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import uses

MIN_ROWS = 4
"""Panels pay where each element is used in so many rows."""

PACKED, TRANSPOSED = 0.9, 0.8
"""How much a choice of lanes loses where operands are copied, and where results are stored one by
one."""

UNKNOWN = 1024
"""What symbolic extents are taken for."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """A spatial loop for the lanes of vectors, and one for the rows of the tile.

    Attributes:
        loop: the position of the loop in lanes.
        row: the position of the loop over rows; None where there is none.
        apart: the reads whose elements lie apart along the lanes.
        panels: the reads that are copied to panels, those of `apart` among them.
        transposed: whether the results lie apart along the lanes.
    """

    loop: int
    row: int | None
    apart: tuple[int, ...]
    panels: tuple[int, ...]
    transposed: bool


class Matmul(ScheduleRule):
    """Tiles the one reduction of a function for registers, and computes what is made of its results
    tile by tile."""

    def is_target_available(self, target: Target) -> bool:
        return is_compiled(target)

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func.with_attr(REASSOCIATE, True))
        blocks = inline_spatial(sch)
        reductions = [block for block in blocks if not is_spatial(place_of(sch, block).block)]
        if len(reductions) != 1:
            return None
        (block,) = reductions
        place = place_of(sch, block)
        if not has_trivial_binding(place) or not is_reduction_block(sch.state, place):
            return None
        if len(place.block.writes) != 1:
            return None
        tile = register_tile(target, place.block.writes[0].buffer.dtype)
        lanes = choose_lanes(place, tile)
        if lanes is None:
            return None
        _schedule(sch, block, lanes, tile)
        return sch


def choose_lanes(place: BlockPlace, tile: RegisterTile) -> Lanes | None:
    """The best loop for the lanes of vectors; None where no element is read several times, or too
    few sums would fill vectors."""
    choices = [
        choice
        for position, loop in enumerate(place.loops)
        if loop_type(loop) == SPATIAL
        for choice in (_lanes(place, position, tile),)
        if choice is not None
    ]
    best = max(choices, key=lambda choice: choice[0], default=None)
    return None if best is None else best[1]


def _lanes(
    place: BlockPlace, position: int, tile: RegisterTile
) -> tuple[tuple[bool, float], Lanes] | None:
    """How good a loop is for the lanes of vectors, and what that takes: loops of a known extent
    come first, since nothing says how many lanes a symbolic one fills."""
    var = _iterator(place, position)
    extent = _extent(place, position)
    inputs = inputs_of(place.block)
    varying = [n for n, region in inputs if _uses(region, var)]
    if extent < tile.lanes or not varying or len(varying) == len(inputs):
        return None
    rows = [
        n
        for n, loop in enumerate(place.loops)
        if n != position and loop_type(loop) == SPATIAL and _extent(place, n) > 1
        and not any(_uses(place.block.reads[m], _iterator(place, n)) for m in varying)
    ]  # fmt: skip
    count = prod(_extent(place, n) for n in rows)
    apart = tuple(n for n in varying if not _is_unit(place.block.reads[n], var))
    if apart and count < MIN_ROWS:
        return None
    transposed = not _is_unit(place.block.writes[0], var)
    width = tile.lanes * tile.vectors
    quality = extent / (-(-extent // width) * width)
    quality *= (PACKED if apart else 1) * (TRANSPOSED if transposed else 1)
    row = max(rows, key=lambda n: (min(_extent(place, n), tile.rows), n), default=None)
    panels = tuple(varying) if count >= MIN_ROWS * tile.rows else apart
    is_known = extent_of(place.loops[position]) is not None
    return (is_known, quality), Lanes(position, row, apart, panels, transposed)


def _iterator(place: BlockPlace, position: int) -> Var:
    return place.block.iter_vars[position].var


def _extent(place: BlockPlace, position: int) -> int:
    extent = extent_of(place.loops[position])
    return UNKNOWN if extent is None else extent


def _uses(region: BufferRegion, var: Var) -> bool:
    return any(uses(dimension.min, var) for dimension in region.region)


def _is_unit(region: BufferRegion, var: Var) -> bool:
    """Whether neighbouring values of an iterator are neighbours in a buffer."""
    *outer, last = [dimension.min for dimension in region.region]
    return coefficient(last, var) == 1 and not any(uses(index, var) for index in outer)


def _schedule(sch: Schedule, block: BlockRV, lanes: Lanes, tile: RegisterTile) -> None:
    place = place_of(sch, block)
    var = _iterator(place, lanes.loop)
    panels = [_panel(sch, block, n, var, n in lanes.apart) for n in lanes.panels]
    result = _results(sch, block, lanes, var)
    loops = sch.get_loops(block)
    kinds = [loop_type(loop) for loop in place.loops]
    shared = [n for n, kind in enumerate(kinds) if kind == SPATIAL and n != lanes.loop]
    # Panels are made for the iterations that need others, and used for all that do not.
    reads = [place.block.reads[n] for n in lanes.panels]
    outer = [n for n in shared if any(_uses(read, _iterator(place, n)) for read in reads)]
    inner = [n for n in shared if n not in outer and n != lanes.row]
    reduction = [loops[n] for n, kind in enumerate(kinds) if kind == REDUCTION]
    rows: tuple[LoopRV, ...] = ()
    if lanes.row is not None:
        size = _row_tile(extent_of(place.loops[lanes.row]), tile.rows)
        rows = tuple(sch.split(loops[lanes.row], [None, size]))
    vectors = tile.vectors if rows else tile.vectors * tile.rows
    extent = extent_of(place.loops[lanes.loop])
    if extent is not None:
        vectors = min(vectors, -(-extent // tile.lanes))
    columns, vector, lane = sch.split(loops[lanes.loop], [None, vectors, tile.lanes])
    around = [*(loops[n] for n in outer), columns, *(loops[n] for n in inner), *rows[:1]]
    sch.reorder(*around, *reduction, *rows[1:], vector, lane)
    sch.reverse_compute_at(result, around[-1], preserve_unit_loops=True)
    for panel in panels:
        sch.compute_at(panel, columns, preserve_unit_loops=True)
    for loop in (*rows[1:], vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.decompose_reduction(block, reduction[0])


def _row_tile(extent: int | None, limit: int) -> int:
    """Rows that divide the extent if most of the limit does, else those of even tiles."""
    if extent is None:
        return limit
    for size in range(min(limit, extent), limit // 2, -1):
        if extent % size == 0:
            return size
    return -(-extent // -(-extent // limit))


def _panel(sch: Schedule, block: BlockRV, index: int, lane: Var, apart: bool) -> BlockRV:
    """A copy of what a block reads, in which lanes lie side by side."""
    region = place_of(sch, block).block.reads[index]
    panel = sch.cache_read(block, index, "global", [block])
    if apart:
        sch.transform_layout(block, ("read", index), _lane_last(region, lane))
    return panel


def _results(sch: Schedule, block: BlockRV, lanes: Lanes, var: Var) -> BlockRV:
    """Let a block make its sums in registers; the block that reads them."""
    place = place_of(sch, block)
    consumers = [] if is_output_block(sch.state, place) else consumers_of(sch.state, place)
    region = place.block.writes[0]
    if len(consumers) == 1 and _reads_in_order(consumers[0], region):
        (result,) = sch.get_consumers(block)
        sch.set_scope(block, 0, "local")
    else:
        result = sch.cache_write(block, 0, "local")
    if lanes.transposed:
        sch.transform_layout(block, ("write", 0), _lane_last(region, var))
    return result


def _reads_in_order(consumer: BlockPlace, region: BufferRegion) -> bool:
    """Whether a spatial block reads each element of a buffer once, at its own iterators."""
    reads = [read for read in consumer.block.reads if read.buffer is region.buffer]
    if not is_spatial(consumer.block) or not has_trivial_binding(consumer) or len(reads) != 1:
        return False
    iterators: Sequence[object] = [iter_var.var for iter_var in consumer.block.iter_vars]
    return [dimension.min for dimension in reads[0].region] == iterators


def _lane_last(region: BufferRegion, lane: Var) -> IndexMap:
    """The layout in which the dimension that a variable indexes is the last."""
    axes = [n for n, dimension in enumerate(region.region) if not uses(dimension, lane)]
    axes += [n for n in range(len(region.region)) if n not in axes]
    return IndexMap.from_func(
        lambda *indices: [indices[axis] for axis in axes], ndim=len(region.region)
    )
