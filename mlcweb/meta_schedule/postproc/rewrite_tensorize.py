"""Replaces blocks by the intrinsics that they were prepared for."""

from __future__ import annotations

from mlcweb.meta_schedule.postproc.postproc import Postproc
from mlcweb.schedule import BlockRV, Schedule, ScheduleError
from mlcweb.tir.stmt import Block

AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
AUTO_TENSORIZE_INIT = "meta_schedule.auto_tensorize_init"


class RewriteTensorize(Postproc):
    """Tensorizes each block with a note of its intrinsic; refuses the schedule where that fails.

    Args:
        vectorize_init_loop: vectorize the innermost loop of the init of such a block.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        for place in list(sch.state.index.blocks.values()):
            for key in (AUTO_TENSORIZE, AUTO_TENSORIZE_INIT):
                intrinsic = place.block.annotations.get(key)
                if intrinsic is None:
                    continue
                block = sch.get_block(place.block.name_hint, place.function)
                sch.unannotate(block, key)
                if not self._rewrite(sch, block, key, str(intrinsic)):
                    return False
        return True

    def _rewrite(self, sch: Schedule, block: BlockRV, key: str, intrinsic: str) -> bool:
        found = sch.get(block)
        if self.vectorize_init_loop and isinstance(found, Block):
            if found.name_hint.endswith("_init") and key == AUTO_TENSORIZE:
                (inner,) = sch.get_child_blocks(block)
                sch.vectorize(sch.get_loops(inner)[-1])
                return True
        if key == AUTO_TENSORIZE_INIT and not intrinsic:
            return True
        try:
            sch.tensorize(block, intrinsic)
        except (ScheduleError, ValueError):
            return False
        return True
