"""The schedule that functions get for a device with threads if they have none."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.module import IRModule
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, For, IterType, statements_in

MAX_BLOCKS = 256
"""The most blocks of threads of a launch; with more iterations a thread takes several."""


def default_gpu_schedule(mod: IRModule, max_threads: int = 1024) -> IRModule:
    """The module with each block of functions without threads in threads: its outer spatial loops
    are fused, and bound to blocks of up to `max_threads` threads. Each thread reduces alone."""
    functions = {
        var: _scheduled(func, max_threads) if isinstance(func, PrimFunc) else func
        for var, func in mod.functions.items()
    }
    return IRModule(functions, mod.attrs)


def _scheduled(func: PrimFunc, max_threads: int) -> PrimFunc:
    parts = list(statements_in(func.body))
    bound = any(isinstance(part, For) and part.thread_binding is not None for part in parts)
    if bound or not any(isinstance(part, Block) for part in parts):
        return func
    sch = Schedule(IRModule({"main": func}))
    for block in sch.get_child_blocks(sch.get_block("root")):
        _bind(sch, block, max_threads)
    return sch.mod["main"]


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
