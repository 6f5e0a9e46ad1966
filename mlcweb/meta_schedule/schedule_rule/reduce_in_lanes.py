"""Reductions over elements that lie side by side, in several sums at once."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.meta_schedule.schedule_rule.block_facts import (
    REDUCTION,
    TILING_STRUCTURE,
    extent_of,
    has_trivial_binding,
    is_reduction_block,
    is_root,
    needs_multi_level_tiling,
    place_of,
)  # fmt: skip
from mlcweb.meta_schedule.schedule_rule.lanes import (
    LANES,
    LEAST_VECTORS,
    least_vectors,
    reduction_lane,
    spatial_lanes,
)
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.tir.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.tir.schedule.compute_locations import loop_type
from mlcweb.tir.schedule.state import loops_above

STRUCTURE = "lanes"


@dataclass(eq=False)
class ReduceInLanes(ScheduleRule):
    """Makes the sums of a reduction in the lanes of vectors, several vectors side by side, since
    one would wait for itself, and puts the lanes together at the end.

    Args:
        max_vectors: the most vectors of one sum.
        max_outputs: how many neighbouring sums are made together at most, where they read the same.
    """

    max_vectors: int = 10
    max_outputs: int = 4

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if is_root(place) or TILING_STRUCTURE in place.block.annotations:
            return [sch]
        if not has_trivial_binding(place) or not is_reduction_block(sch.state, place):
            return [sch]
        if len(place.block.writes) != 1 or spatial_lanes(place):
            return [sch]
        position = reduction_lane(place)
        if position is None:
            return [sch]
        made = sch.copy()
        try:
            self._reduce(made, block, position)
        except ScheduleError:
            return [sch]
        return [made]

    def _reduce(self, sch: Schedule, block: BlockRV, position: int) -> None:
        place = place_of(sch, block)
        loops = sch.get_loops(block)
        kinds = [loop_type(loop) for loop in loops_above(place)]
        steps = [n for n, kind in enumerate(kinds) if kind == REDUCTION and n != position]
        around = [loops[n] for n, kind in enumerate(kinds) if kind != REDUCTION]
        outputs: list[LoopRV] = []
        # Sums made together pay where they read something in common.
        if around and needs_multi_level_tiling(place):
            last = around.pop()
            outer, inner = sch.split(last, sch.sample_perfect_tile(last, 2, self.max_outputs))
            around, outputs = [*around, outer], [inner]
        extents = [extent_of(loop) or 1 for loop in loops_above(place)]
        least = least_vectors((extents[position] // LANES, self.max_vectors))
        vectors, within = sch.split(loops[position], [None, LANES])
        serial, line = sch.split(vectors, sch.sample_perfect_tile(vectors, 2, self.max_vectors))
        sch.reorder(*around, *(loops[n] for n in steps), serial, *outputs, line, within)
        parts = sch.rfactor(sch.fuse(line, within), len(place.block.writes[0].buffer.shape))
        sch.set_scope(parts, 0, "local")
        for made in (parts, block):
            sch.annotate(made, TILING_STRUCTURE, STRUCTURE)
        sch.annotate(parts, LEAST_VECTORS, least)
        in_parts = sch.get_loops(parts)
        if around:
            sch.reverse_compute_at(block, in_parts[len(around) - 1], preserve_unit_loops=True)
        if outputs:
            sch.unroll(in_parts[-2])
        sch.vectorize(in_parts[-1])
