"""Rules for reductions: several sums at once in the lanes of vectors, and the rows around them
fused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlcweb.dlight.cpu.reduction import compute_at_row, iterations
from mlcweb.meta_schedule.space import TaskInfo
from mlcweb.meta_schedule.space.rules import ScheduleRule, one_of
from mlcweb.meta_schedule.space.vector_lanes import (
    MIN_LANES,
    MIN_VECTORS,
    is_untiled_reduction,
    lanes_of,
    min_vectors,
    reduction_lane,
    spatial_lanes,
)
from mlcweb.runtime.vector_unit import vector_unit
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.schedule.analysis.block_facts import (
    REDUCTION,
    SPATIAL,
    TILING_STRUCTURE,
    extent_of,
    has_trivial_binding,
    is_root,
    is_spatial,
    needs_multi_level_tiling,
    place_of,
    shares_operands,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.layout_rewrite import free_buffers

STRUCTURE = "lanes"

ENOUGH_VECTORS = 2
"""Fewer vectors of sums than this are not tried."""

TOGETHER_VECTORS = 4
"""Vectors of a row that are computed before those of the next row."""


@dataclass(frozen=True, slots=True)
class InLanes:
    """A reduction in lanes: `parts` makes several vectors of sums, `sums` adds these up to one, and
    `block` adds up its lanes. The first two iterate over vectors and lanes first."""

    parts: BlockRV
    sums: BlockRV
    block: BlockRV


@dataclass(eq=False)
class ReduceInLanes(ScheduleRule):
    """Makes the sums of a reduction in the lanes of vectors, several vectors side by side, since
    one would wait for itself, and puts vectors and lanes together at the end.

    Args:
        max_vectors: the most vectors of one sum.
        max_outputs: how many neighbouring sums are made together at most, where they read the same.
        max_unrolled: the most steps that are unrolled.
    """

    max_vectors: int = 10
    max_outputs: int = 8
    max_unrolled: int = 4

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        position = self.lane(sch, block)
        if position is None:
            return [sch]
        variant = sch.copy()
        try:
            self._reduce(variant, block, position)
        except ScheduleError:
            return [sch]
        return [variant]

    def lane(self, sch: Schedule, block: BlockRV) -> int | None:
        """The position of the loop of a block whose iterations this rule makes side by side; None
        where it leaves the block alone."""
        place = place_of(sch, block)
        if not is_untiled_reduction(sch, place):
            return None
        if spatial_lanes(place, MIN_LANES, free_buffers(sch, place.function)):
            return None
        return reduction_lane(place)

    def split(self, sch: Schedule, block: BlockRV, position: int) -> InLanes:
        """Divide a reduction by the loop at a position into blocks of their own."""
        place = place_of(sch, block)
        loops = sch.get_loops(block)
        kinds = [loop_type(loop) for loop in place.loops]
        steps = [n for n, kind in enumerate(kinds) if kind == REDUCTION and n != position]
        around = [loops[n] for n, kind in enumerate(kinds) if kind != REDUCTION]
        outputs: list[LoopRV] = []
        # Sums made together pay where they read something in common.
        if around and needs_multi_level_tiling(place):
            last = around.pop()
            outer, inner = sch.split(last, sch.sample_perfect_tile(last, 2, self.max_outputs))
            around, outputs = [*around, outer], [inner]
        whole = extent_of(place.loops[position]) or 1
        lanes = lanes_of(whole, vector_unit(self.target).lanes())
        extent = whole // lanes
        least = min_vectors((extent, self.max_vectors), enough=ENOUGH_VECTORS)
        vectors, within = sch.split(loops[position], [None, lanes])
        if outputs:
            factors: list[Any] = sch.sample_perfect_tile(vectors, 2, self.max_vectors)
        else:
            # A tiling could leave too few; a choice among those that are enough cannot.
            lines = [n for n in range(least, self.max_vectors + 1) if extent % n == 0]
            factors = [None, one_of(sch, lines)]
        serial, line = sch.split(vectors, factors)
        serial, unrolled = sch.split(serial, sch.sample_perfect_tile(serial, 2, self.max_unrolled))
        others = [loops[n] for n in steps]
        sch.reorder(*around, *others, serial, unrolled, *outputs, line, within)
        axis = len(place.block.writes[0].buffer.shape)
        sums = sch.rfactor(within, axis)
        parts = sch.rfactor(sch.get_loops(sums)[-2], axis)
        for stage in (parts, sums):
            sch.set_scope(stage, 0, "local")
        for stage in (parts, sums, block):
            sch.annotate(stage, TILING_STRUCTURE, STRUCTURE)
        sch.annotate(parts, MIN_VECTORS, least)
        return InLanes(parts, sums, block)

    def _reduce(self, sch: Schedule, block: BlockRV, position: int) -> None:
        split = self.split(sch, block, position)
        loops = sch.get_loops(split.parts)
        kinds = [loop_type(loop) for loop in place_of(sch, split.parts).loops]
        around = kinds.index(REDUCTION)
        for each in (split.sums, split.block):
            if around:
                sch.reverse_compute_at(each, loops[around - 1], preserve_unit_loops=True)
        settle(sch, split.sums)
        for loop in sch.get_loops(split.block)[around + 1 :]:
            sch.unroll(loop)
        last_step = len(kinds) - 1 - kinds[::-1].index(REDUCTION)
        for loop in loops[last_step:-1]:
            sch.unroll(loop)
        sch.vectorize(loops[-1])


def settle(sch: Schedule, block: BlockRV) -> None:
    """Order the loops that moving a block of vectors gave it, one for each of its iterators: first
    the steps of the reduction, the outputs, the vectors, and the lanes of these. All but the first
    steps are unrolled."""
    kinds = [iter_var.iter_type for iter_var in place_of(sch, block).block.iter_vars]
    line, lane, *others = sch.get_loops(block)[-len(kinds) :]
    outputs = [loop for loop, kind in zip(others, kinds[2:], strict=True) if kind == SPATIAL]
    steps = [loop for loop in others if loop not in outputs]
    sch.reorder(*steps, *outputs, line, lane)
    for loop in (*outputs, *steps[-1:], line):
        sch.unroll(loop)
    sch.vectorize(lane)


INLINE_RULE = "meta_schedule.inline_rule"


@dataclass(eq=False)
class FuseRows(ScheduleRule):
    """Where rows are reduced and the result needs the row again, as in a softmax or a layer
    normalization: computes everything at the loop over rows of the result, so that a row stays in
    the first cache, and reduces in lanes. A second space leaves the blocks where they are.

    Args:
        lanes: how rows are reduced.
        max_rows: the most rows that are computed together, where they read the same scale, say.
    """

    lanes: ReduceInLanes = field(default_factory=ReduceInLanes)
    max_rows: int = 4

    def _initialize_with_tune_context(self, context: TaskInfo) -> None:
        super()._initialize_with_tune_context(context)
        self.lanes = self.lanes.clone()
        self.lanes._initialize_with_tune_context(context)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not is_root(place_of(sch, block)):
            return [sch]
        variant = sch.copy()
        blocks = variant.get_child_blocks(block)
        depth = self._row_loops(variant, blocks)
        if not depth:
            return [sch]
        try:
            self._fuse(variant, blocks, depth)
        except ScheduleError:
            return [sch]
        return [sch, variant]

    def _row_loops(self, sch: Schedule, blocks: list[BlockRV]) -> int:
        """How many outer loops of the last block go over rows; 0 where there are no rows."""
        places = [place_of(sch, block) for block in blocks]
        reductions = [n for n, place in enumerate(places) if not is_spatial(place.block)]
        if not reductions or reductions[-1] == len(places) - 1:
            return 0
        if not has_trivial_binding(places[-1]):
            return 0
        if any(self.lanes.lane(sch, blocks[n]) is None for n in reductions):
            return 0
        depth = min(sum(loop_type(loop) == SPATIAL for loop in places[n].loops) for n in reductions)
        return depth if depth < len(places[-1].loops) else 0

    def _fuse(self, sch: Schedule, blocks: list[BlockRV], depth: int) -> None:
        row, rows = self._tile_rows(sch, blocks[-1], depth - 1)
        for block in reversed(blocks[:-1]):
            position = self.lanes.lane(sch, block)
            if position is not None:
                reduction = self.lanes.split(sch, block, position)
                for each in (reduction.block, reduction.sums, reduction.parts):
                    compute_at_row(sch, each, row)
                for each in (reduction.sums, reduction.parts):
                    settle(sch, each)
            else:
                compute_at_row(sch, block, row)
                if iterations(sch, block, depth) == rows:
                    # Inlined, it would be made for each element of the row.
                    sch.annotate(block, INLINE_RULE, "disable")

    def _tile_rows(self, sch: Schedule, block: BlockRV, level: int) -> tuple[LoopRV, int]:
        """Let the last block compute several rows together, vectors of one after those of another;
        the loop over groups of rows, and how many are in a group."""
        place = place_of(sch, block)
        *outer, row, along = sch.get_loops(block)
        length = extent_of(place.loops[-1]) or 1
        lanes = lanes_of(length, TOGETHER_VECTORS * vector_unit(self.lanes.target).lanes())
        if len(outer) != level or not lanes or not shares_operands(place, level):
            return sch.get_loops(block)[level], 1
        group, together = sch.split(row, sch.sample_perfect_tile(row, 2, self.max_rows))
        steps, within = sch.split(along, [None, lanes])
        sch.reorder(group, steps, together, within)
        sch.unroll(together)
        return group, extent_of(place_of(sch, block).loops[-2]) or 1
