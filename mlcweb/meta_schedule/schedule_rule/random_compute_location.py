"""Blocks computed where they are used, at a loop chosen by chance."""

from __future__ import annotations

from mlcweb.meta_schedule.schedule_rule.add_rfactor import RANDOM_COMPUTE_PRODUCER
from mlcweb.meta_schedule.schedule_rule.block_facts import (
    TILING_STRUCTURE,
    consumers_of,
    is_root,
    place_of,
)  # fmt: skip
from mlcweb.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.state import LoopPlace


class RandomComputeLocation(ScheduleRule):
    """Computes a block that has loops of its own and was not tiled at some loop of those that read
    from it, inlined, or where it is."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not self._concerns(sch, block):
            return [sch]
        producers: list[BlockRV] = []
        # Asked before the block moves: afterwards it may be gone.
        if place_of(sch, block).block.annotations.get(RANDOM_COMPUTE_PRODUCER):
            producers = sch.get_producers(block)
            sch.unannotate(block, RANDOM_COMPUTE_PRODUCER)
        for moved in (block, *producers):
            sch.compute_at(moved, sch.sample_compute_location(moved), preserve_unit_loops=True)
        return [sch]

    def _concerns(self, sch: Schedule, block: BlockRV) -> bool:
        place = place_of(sch, block)
        if is_root(place) or not is_root(sch.state.scope_of(place)):
            return False
        loops = place.loops
        if not loops or TILING_STRUCTURE in place.block.annotations:
            return False
        outermost: LoopPlace = sch.state.loop(loops[0].loop_var)
        if len(sch.state.child_blocks(outermost)) > 1:
            return False
        return bool(consumers_of(sch.state, place))
