"""Functions that reduce rows: softmax, normalization, means."""

from __future__ import annotations

from math import prod

from mlcweb.dlight.base import ScheduleRule
from mlcweb.dlight.cpu.inlining import inline_spatial
from mlcweb.dlight.cpu.machine import is_compiled
from mlcweb.dlight.cpu.parallel import in_parallel
from mlcweb.lower.optimize.vectorize import REASSOCIATE, SMALL_NEST
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.schedule.analysis.block_facts import (
    SPATIAL,
    bound_regions,
    extent_of,
    is_spatial,
    place_of,
    shares_operands,
    strides,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.function import PrimFunc

ROWS_TOGETHER = 2
"""Rows that are computed together where they read something in common; more gain nothing."""


class Reduction(ScheduleRule):
    """Computes all blocks of a function at the loops over rows of the last, so that a row stays in
    the first cache, and reduces in lanes of vectors. Where the last block needs the same operands
    for each row, as the scale and shift of a layer normalization, it loads them once for several
    rows."""

    def is_target_available(self, target: Target) -> bool:
        return is_compiled(target)

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func.with_attr(REASSOCIATE, True))
        blocks = inline_spatial(sch)
        if all(is_spatial(place_of(sch, block).block) for block in blocks):
            return None
        depth = min(_row_loops(sch, block) for block in blocks)
        if depth and len(blocks) > 1:
            depth = _fuse_rows(sch, blocks, depth)
        if depth:
            in_parallel(sch, sch.get_loops(blocks[-1])[:depth])
        return sch


def _row_loops(sch: Schedule, block: BlockRV) -> int:
    """How many outer loops of a block are spatial, without the one whose iterations lie in lanes
    where these are not terms of a sum."""
    place = place_of(sch, block)
    spatial = [loop_type(loop) == SPATIAL for loop in place.loops]
    count = spatial.index(False) if False in spatial else len(spatial)
    return count - 1 if count > 1 and _reduces_windows(place, count) else count


def _reduces_windows(place: BlockPlace, count: int) -> bool:
    """Whether a block with so many spatial loops reduces a few elements for each iteration of the
    last, next to which, or next but one, lie those for the next iteration: a pooling."""
    extents = [extent_of(loop) for loop in place.loops[count:]]
    terms = prod(extent or SMALL_NEST + 1 for extent in extents)
    steps = [strides(region, place.loops)[count - 1] for region in bound_regions(place.realize)]
    return bool(extents) and terms <= SMALL_NEST and all(step in (0, 1, 2) for step in steps)


def _fuse_rows(sch: Schedule, blocks: list[BlockRV], depth: int) -> int:
    """Compute blocks at a loop of the last, the innermost of `depth` at which nothing would be
    computed twice; how many loops they share."""
    for level in range(depth - 1, -1, -1):
        trial = sch.copy()
        row = trial.get_loops(blocks[-1])[level]
        try:
            for block in reversed(blocks[:-1]):
                compute_at_row(trial, block, row)
        except ScheduleError:
            continue
        row = _tile_rows(sch, blocks[-1], level)
        for block in reversed(blocks[:-1]):
            sch.compute_at(block, row, preserve_unit_loops=True)
        return level + 1
    return 0


def _tile_rows(sch: Schedule, block: BlockRV, level: int) -> LoopRV:
    """Let a block compute several rows together, if what it reads along a row is the same for them;
    the loop over rows, or over groups of them."""
    place = place_of(sch, block)
    row, *inner = sch.get_loops(block)[level:]
    extent = extent_of(place.loops[level])
    if extent is None or extent % ROWS_TOGETHER or not shares_operands(place, level):
        return row
    group, together = sch.split(row, [None, ROWS_TOGETHER])
    sch.reorder(*inner, together)
    sch.unroll(together)
    return group


def compute_at_row(sch: Schedule, block: BlockRV, row: LoopRV) -> None:
    """Compute a block at a loop. A ScheduleError where parts would be computed several times."""
    before = iterations(sch, block)
    sch.compute_at(block, row, preserve_unit_loops=True)
    if iterations(sch, block) > before:
        raise ScheduleError(f"A row needs more of {block} than its own row of it")


def iterations(sch: Schedule, block: BlockRV, depth: int = 0) -> int:
    """How often a block runs, below its outer loops up to a depth."""
    return prod(extent_of(loop) or 1 for loop in place_of(sch, block).loops[depth:])
