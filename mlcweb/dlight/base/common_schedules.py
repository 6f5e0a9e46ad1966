"""What rules do first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from mlcweb.dlight.analysis import BlockInfo
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError


def try_inline(sch: Schedule, blocks: Sequence[BlockInfo]) -> list[BlockInfo]:
    """Inline blocks into their consumers, or else into their producers, until none can be; those
    that are left."""
    left = list(blocks)
    while (
        done := _first_inlined(sch.compute_inline, left)
        or _first_inlined(sch.reverse_compute_inline, left)
    ) is not None:
        left.remove(done)
    return left


def try_inline_contiguous_spatial(
    sch: Schedule, block_infos: Sequence[BlockInfo] | None
) -> list[BlockInfo] | None:
    """Inline what can be of each run of spatial blocks, as `try_inline` does; the blocks that are
    left. None where there is no list of blocks."""
    if block_infos is None:
        return None
    left: list[BlockInfo] = []
    for spatial, run in groupby(block_infos, BlockInfo.is_injective):
        blocks = list(run)
        left.extend(try_inline(sch, blocks) if spatial else blocks)
    return left


def _first_inlined(
    inline: Callable[[BlockRV], None], blocks: Sequence[BlockInfo]
) -> BlockInfo | None:
    for info in blocks:
        try:
            inline(info.block_rv)
        except ScheduleError:
            continue
        return info
    return None


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
