"""Sharing the outer loops of a kernel among threads."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.runtime.thread_pool import has_threads
from mlcweb.schedule import LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import extent_of, loop_of

ENOUGH = 16
"""Iterations that keep the threads of most machines busy. Loops are not fused for more: what their
variables are is divided out of the fused one."""


def in_parallel(sch: Schedule, loops: Sequence[LoopRV]) -> bool:
    """Make a parallel loop of the outermost of nested loops, or of several where that has few
    iterations; False where all have one, or where there are no threads (a page that is not
    isolated). Whether a loop is worth threads is decided when code is generated."""
    if not has_threads():
        return False
    chosen: list[LoopRV] = []
    iterations = 1
    for loop in loops:
        extent = extent_of(loop_of(sch, loop))
        if extent != 1 and iterations < ENOUGH:
            chosen.append(loop)
            iterations *= ENOUGH if extent is None else extent
    if chosen:
        sch.parallel(sch.fuse(*chosen) if len(chosen) > 1 else chosen[0])
    return bool(chosen)
