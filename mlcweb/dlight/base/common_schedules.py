"""What rules do first."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.schedule import BlockRV, Schedule, ScheduleError


def try_inline(sch: Schedule, blocks: Sequence[BlockRV]) -> list[BlockRV]:
    """Inline blocks into their consumers, or else into their producers, until none can be; those
    that are left."""
    left = list(blocks)
    while True:
        remaining = [block for block in left if not _inlined(sch, block)]
        if len(remaining) == len(left):
            return left
        left = remaining


def _inlined(sch: Schedule, block: BlockRV) -> bool:
    for inline in (sch.compute_inline, sch.reverse_compute_inline):
        try:
            inline(block)
        except ScheduleError:
            continue
        return True
    return False
