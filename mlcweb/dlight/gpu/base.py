"""What the rules for devices with threads have in common."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.dlight.analysis import BlockInfo
from mlcweb.dlight.base import ScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule


class GPUScheduleRule(ScheduleRule):
    """A rule for targets with the key "gpu"."""

    def is_target_available(self, target: Target) -> bool:
        return "gpu" in target.keys


def main_and_epilogue(
    infos: Sequence[BlockInfo] | None,
) -> tuple[BlockInfo, BlockInfo | None] | None:
    """The only block and None, or two blocks of which the second is spatial; else None."""
    if infos is None or len(infos) not in (1, 2):
        return None
    if len(infos) == 1:
        return infos[0], None
    return (infos[0], infos[1]) if infos[1].is_injective() else None


def unroll(sch: Schedule, block_or_loop: BlockRV | LoopRV, steps: int) -> None:
    """Let code generators unroll up to `steps` iterations of the loops inside."""
    sch.annotate(block_or_loop, "pragma_auto_unroll_max_step", steps)
    sch.annotate(block_or_loop, "pragma_unroll_explicit", 1)
