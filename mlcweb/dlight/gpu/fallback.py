"""The schedule that any function can have: each thread computes on its own."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.dlight.base import ScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, For, IterType, statements_in

MAX_BLOCKS = 256
"""The most blocks of threads of a launch; with more iterations a thread takes several."""


class Fallback(ScheduleRule):
    """Puts each block of a function without threads in threads: its outer spatial loops are fused,
    and bound to blocks of threads. Each thread reduces alone."""

    def is_target_available(self, target: Target) -> bool:
        return target.kind.name in DEVICE_KINDS

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        parts = list(statements_in(func.body))
        bound = any(isinstance(part, For) and part.thread_binding is not None for part in parts)
        if bound or not any(isinstance(part, Block) for part in parts):
            return None
        sch = Schedule(func)
        for block in sch.get_child_blocks(sch.get_block("root")):
            _bind(sch, block, target.limits.get("max_threads_per_block", 256))
        return sch


def _bind(sch: Schedule, block: BlockRV, max_threads: int) -> None:
    loops = sch.get_loops(block)
    outer = _spatial(sch, loops)
    if outer:
        fused = sch.fuse(*outer)
    else:
        fused = sch.add_unit_loop(loops[0] if loops else block)
    statement = sch.get(fused)
    assert isinstance(statement, For)
    extent = getattr(statement.extent, "value", None)
    if extent is not None and extent <= MAX_BLOCKS * max_threads:
        blocks, threads = sch.split(fused, [None, min(max(extent, 1), max_threads)])
    else:
        rest, blocks, threads = sch.split(fused, [None, MAX_BLOCKS, max_threads])
        sch.reorder(blocks, threads, rest)
    sch.bind(blocks, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")


def _spatial(sch: Schedule, loops: Sequence[LoopRV]) -> list[LoopRV]:
    """The outer loops that are spatial, each alone in the one around it."""
    found: list[LoopRV] = []
    for loop in loops:
        statement = sch.get(loop)
        assert isinstance(statement, For)
        if loop_type(statement) != IterType.DATA_PARALLEL:
            break
        found.append(loop)
        if not isinstance(statement.body, For):
            break
    return found
