"""Sums of products in which elements are used several times: matrix multiplications, convolutions,
and what is built like them.

A tile of sums stays in registers while the reduction runs, as in K. Goto and R. van de Geijn,
"Anatomy of High-Performance Matrix Multiplication" (2008): rows times vectors. Elements for
the lanes of vectors are copied to panels, where they lie in the order in which they are read.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import prod

from mlcweb.arith.index_map import IndexMap
from mlcweb.dlight.base import ScheduleRule
from mlcweb.dlight.cpu.inlining import inline_spatial
from mlcweb.dlight.cpu.machine import RegisterTile, is_compiled, register_tile
from mlcweb.dlight.cpu.merging import MergedAxes, NotTogether
from mlcweb.dlight.cpu.parallel import in_parallel
from mlcweb.dlight.cpu.spread_reads import copy_spread_reads
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
    reads_in_order,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.scopes import is_output_block
from mlcweb.schedule.layout_rewrite import free_buffers, rewrite_layout
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import constant_value, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion
from mlcweb.tir.dtype import size_in_bytes
from mlcweb.tir.expr import Var
from mlcweb.tir.function import PrimFunc, prim_funcs
from mlcweb.tir.substitute import uses

MIN_ROWS = 4
"""Panels pay where each element is used in so many rows."""


PART_BYTES = 1 << 14
"""What a tile reads in a part of its sums, at most: half of a small first cache."""

SUMS_BYTES = 1 << 17
"""The sums that are kept between such parts, at most: half of a small second cache."""

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
        free = free_buffers(sch, place.function)
        copy_spread_reads(sch, block)
        axes = _axes_to_merge(sch, blocks, block, tile, free)
        if axes is not None:
            sch = axes.apply(sch)
        place = place_of(sch, block)
        lanes = choose_lanes(place, tile, free)
        if lanes is None:
            return None
        _schedule(sch, block, lanes, tile)
        for region in place.block.reads:
            if region.buffer in free:
                rewrite_layout(sch, place.function, free[region.buffer])
        if axes is not None:
            return Schedule(axes.with_parameters_of(func, prim_funcs(sch.mod)[place.function]))
        return sch


def _axes_to_merge(
    sch: Schedule,
    blocks: Sequence[BlockRV],
    block: BlockRV,
    tile: RegisterTile,
    free: Container[Buffer],
) -> MergedAxes | None:
    """The last two axes of the results where they are better one: where the last one is not one of
    whole tiles."""
    *_, last = place_of(sch, block).block.writes[0].buffer.shape or (None,)
    columns = constant_value(last)
    if columns is None or columns % (tile.lanes * tile.vectors) == 0:
        return None
    try:
        axes = MergedAxes(sch, blocks, block)
    except NotTogether:
        return None
    return None if any(buffer in free for buffer in axes.buffers) else axes


def choose_lanes(
    place: BlockPlace, tile: RegisterTile, free: Container[Buffer] = ()
) -> Lanes | None:
    """The best loop for the lanes of vectors; None where no element is read several times, or too
    few sums would fill vectors. `free` are the buffers whose layout is free."""
    choices = [
        choice
        for position, loop in enumerate(place.loops)
        if loop_type(loop) == SPATIAL
        for choice in (_lanes(place, position, tile, free),)
        if choice is not None
    ]
    best = max(choices, key=lambda choice: choice[0], default=None)
    return None if best is None else best[1]


def _lanes(
    place: BlockPlace, position: int, tile: RegisterTile, free: Container[Buffer]
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
    # Whole vectors of what has a free layout are laid out ahead of calls.
    whole = extent % tile.lanes == 0
    copied = [n for n in varying if not (whole and place.block.reads[n].buffer in free)]
    apart = tuple(n for n in copied if not _is_unit(place.block.reads[n], var))
    if apart and count < MIN_ROWS:
        return None
    transposed = not _is_unit(place.block.writes[0], var)
    width = tile.lanes * tile.vectors
    quality = extent / (-(-extent // width) * width)
    # Elements that are copied, or results that are stored, one by one take as long as a vector.
    quality *= count / (count + tile.lanes) if apart else 1
    steps = prod(
        _extent(place, n) for n, loop in enumerate(place.loops) if loop_type(loop) == REDUCTION
    )
    quality *= steps / (steps + tile.lanes) if transposed else 1
    row = max(rows, key=lambda n: (min(_extent(place, n), tile.rows), n), default=None)
    panels = tuple(copied) if count >= MIN_ROWS * tile.rows else apart
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
    panels = [panel(sch, block, n, var, n in lanes.apart) for n in lanes.panels]
    result = results_in_registers(sch, block, var, lanes.transposed)
    loops = sch.get_loops(block)
    kinds = [loop_type(loop) for loop in place.loops]
    shared = [n for n, kind in enumerate(kinds) if kind == SPATIAL and n != lanes.loop]
    # Panels are made for the iterations that need others, and used for all that do not.
    reads = [place.block.reads[n] for n in lanes.panels]
    outer = [n for n in shared if any(_uses(read, _iterator(place, n)) for read in reads)]
    inner = [n for n in shared if n not in outer and n != lanes.row]
    reduction = [loops[n] for n, kind in enumerate(kinds) if kind == REDUCTION]
    rows: tuple[LoopRV, ...] = ()
    size = 1
    if lanes.row is not None:
        size = _row_tile(extent_of(place.loops[lanes.row]), tile)
        rows = tuple(sch.split(loops[lanes.row], [None, size]))
    vectors = _vectors(extent_of(place.loops[lanes.loop]), tile, size)
    columns, vector, lane = sch.split(loops[lanes.loop], [None, vectors, tile.lanes])
    steps = _steps_of_part(place, lanes.loop, size, vectors * tile.lanes)
    parts: list[LoopRV] = []
    if steps is not None:
        part, reduction[0] = sch.split(reduction[0], [None, steps])
        parts = [part]
    inner_loops = [loops[n] for n in inner]
    around = [*(loops[n] for n in outer), columns, *parts, *inner_loops, *rows[:1]]
    within = [*reduction, *rows[1:], vector, lane]
    sch.reorder(*around, *within)
    # Before panels come below these loops, which bind them to parts that may overlap or leave gaps.
    # Guards of tiles ask for the variables of `columns` and `rows`, which stay by themselves.
    groups = [loops[n] for n in outer], [columns], [loops[n] for n in inner], rows[:1]
    any(in_parallel(sch, group) for group in groups)
    place_of_result = columns if parts else sch.get_loops(block)[-1 - len(within)]
    sch.reverse_compute_at(result, place_of_result, preserve_unit_loops=True)
    for each in panels:
        sch.compute_at(each, columns, preserve_unit_loops=True)
    for loop in (*rows[1:], vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.decompose_reduction(block, (parts or reduction)[0])


def _steps_of_part(place: BlockPlace, lane: int, height: int, width: int) -> int | None:
    """How many iterations of the first reduction loop all tiles of `height` rows take before any
    takes the next ones, so that what these read for `width` lanes is in the first cache for all
    tiles but the first.

    None where there is one tile, or all of it is in that cache anyway; where the sums of all rows
    take too much room, or what rows read for such a part does not lie together; and where no even
    parts are long enough.
    """
    loops, reads = place.loops, place.block.reads
    kinds = [loop_type(loop) for loop in loops]
    extents = [extent_of(loop) for loop in loops]
    first = kinds.index(REDUCTION)
    rows = [n for n, kind in enumerate(kinds) if kind == SPATIAL and n != lane]
    constant = [extent for extent in extents if extent is not None]
    if len(constant) < len(extents) or constant[lane] <= width:
        return None
    count, steps = prod(constant[n] for n in rows), constant[first]
    others = prod(constant[n] for n in range(first + 1, len(loops)) if kinds[n] == REDUCTION)
    line = width * size_in_bytes(place.block.writes[0].buffer.dtype)
    most = max(PART_BYTES // (others * line), 1)
    if count <= height or steps <= 2 * most or count * line > SUMS_BYTES:
        return None
    beside = [read for read in reads if not _uses(read, _iterator(place, lane))]
    if not all(_comes_first(read, place, first, rows) for read in beside):
        return None
    even = max(n for n in range(1, most + 1) if steps % n == 0)
    return even if 2 * even >= most else None


def _comes_first(region: BufferRegion, place: BlockPlace, loop: int, others: Sequence[int]) -> bool:
    """Whether the dimensions that a loop indexes lie outside of those that others index."""
    var, rest = _iterator(place, loop), [_iterator(place, n) for n in others]
    dimensions = [dimension.min for dimension in region.region]
    own = [n for n, index in enumerate(dimensions) if uses(index, var)]
    inner = [n for n, index in enumerate(dimensions) if any(uses(index, each) for each in rest)]
    moving = [n for n in inner if not is_const_int(region.buffer.shape[n], 1)]
    return max(own, default=-1) < min(moving, default=len(dimensions))


def _row_tile(extent: int | None, tile: RegisterTile) -> int:
    """Rows of a tile: as many as divide the extent, fewer of more vectors; else more of fewer that
    divide it, or even tiles that have some to spare."""
    limit = tile.rows
    if extent is None:
        return limit
    fewer, more = range(limit, (limit - 1) // 2, -1), range(limit + 1, limit * tile.vectors + 1)
    for size in fewer:
        if extent % size == 0:
            return size

    def cost(size: int) -> float:
        """The time of a row: a step loads all rows and vectors, at the pace of products."""
        vectors = limit * tile.vectors // size
        loads = max((size + vectors) / (size * vectors), 1)
        return loads * -(-extent // size) * size / extent

    even = -(-extent // -(-extent // limit))
    return min((*(size for size in more if extent % size == 0), even), key=cost)


def _vectors(extent: int | None, tile: RegisterTile, rows: int) -> int:
    """Vectors of a tile of so many rows: as many as there are registers for, of which all tiles
    have as many where the extent is one of whole vectors."""
    limit = tile.rows * tile.vectors // rows
    if extent is None:
        return limit
    count = -(-extent // tile.lanes)
    if extent % tile.lanes:
        return min(limit, count)
    return max(n for n in range(1, min(limit, count) + 1) if count % n == 0)


def panel(sch: Schedule, block: BlockRV, index: int, lane: Var, apart: bool = True) -> BlockRV:
    """A copy of what a block reads, in which lanes lie side by side. `apart`: whether they do not
    in what it reads."""
    region = place_of(sch, block).block.reads[index]
    copy = sch.cache_read(block, index, "global", [block])
    if apart:
        sch.transform_layout(block, ("read", index), _lane_last(region, lane))
    return copy


def results_in_registers(sch: Schedule, block: BlockRV, lane: Var, transposed: bool) -> BlockRV:
    """Let a block make its sums in registers, lanes side by side; the block that reads them.
    `transposed`: whether the results lie apart along the lanes."""
    place = place_of(sch, block)
    consumers = [] if is_output_block(sch.state, place) else consumers_of(sch.state, place)
    region = place.block.writes[0]
    if len(consumers) == 1 and reads_in_order(consumers[0], region.buffer):
        (result,) = sch.get_consumers(block)
        sch.set_scope(block, 0, "local")
    else:
        result = sch.cache_write(block, 0, "local")
    if transposed:
        sch.transform_layout(block, ("write", 0), _lane_last(region, lane))
    return result


def _lane_last(region: BufferRegion, lane: Var) -> IndexMap:
    """The layout in which the dimension that a variable indexes is the last."""
    axes = [n for n, dimension in enumerate(region.region) if not uses(dimension, lane)]
    axes += [n for n in range(len(region.region)) if n not in axes]
    return IndexMap.from_func(
        lambda *indices: [indices[axis] for axis in axes], ndim=len(region.region)
    )
