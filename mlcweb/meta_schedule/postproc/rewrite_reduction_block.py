"""Brings the init of each reduction out of its loops."""

from __future__ import annotations

from mlcweb.meta_schedule.postproc.postproc import Postproc
from mlcweb.meta_schedule.schedule_rule.block_facts import SPATIAL
from mlcweb.schedule import Schedule
from mlcweb.schedule.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace


class RewriteReductionBlock(Postproc):
    """Decomposes each reduction block at its first loop that is not spatial."""

    def apply(self, sch: Schedule) -> bool:
        # One decomposition may bring out a block that needs another.
        while found := [
            (place, level)
            for place in sch.state.index.blocks.values()
            if (level := _decompose_level(place)) is not None
        ]:
            for place, level in found:
                block = sch.get_block(place.block.name_hint, place.function)
                sch.decompose_reduction(block, sch.get_loops(block)[level])
        return True


def _decompose_level(place: BlockPlace) -> int | None:
    if place.block.init is None:
        return None
    kinds = [loop_type(loop) for loop in place.loops]
    return next((level for level, kind in enumerate(kinds) if kind != SPATIAL), None)
