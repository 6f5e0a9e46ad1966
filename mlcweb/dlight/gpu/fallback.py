"""The schedule that any function can have: each thread computes on its own."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.dlight.analysis import BlockInfo, normalize_prim_func
from mlcweb.dlight.base import max_threads_per_block, try_inline
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import SPATIAL, extent_of, loop_of, place_of
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import AttrStmt, Block, For, Stmt, is_launch, statements_in

MAX_GRID = 65535
"""The most blocks of threads that WebGPU launches along an axis."""

BLOCKS = 256
"""The blocks of threads of a launch with more iterations than a grid has threads."""


class Fallback(GPUScheduleRule):
    """Inlines what can be, and puts each block that is left in threads: its spatial loops are fused
    and bound to blocks of threads. Each thread reduces alone."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        threads = max_threads_per_block(target)
        # WebGPU, and Vulkan as a browser has it, count blocks to 65,535; a symbolic extent may
        # need more.
        most = MAX_GRID * threads if target.kind.name == "webgpu" else None
        sch = Schedule(func)
        infos = normalize_prim_func(sch)
        if infos is None:
            return _apply_to_any(func, threads, most)
        sums: list[tuple[BlockRV, LoopRV]] = []
        for info in try_inline(sch, infos):
            if not has_threads(sch, info.block_rv):
                first = _put_in_threads(sch, info, threads, most)
                if first is not None:
                    sums.append((info.block_rv, first))
        for block, first in sums:
            sch.decompose_reduction(block, first)
        return sch


def _put_in_threads(
    sch: Schedule, info: BlockInfo, threads: int, most: int | None
) -> LoopRV | None:
    """Bind the spatial loops of a block; its outermost loop that reduces."""
    loops: dict[str, list[LoopRV]] = {"S": [], "R": [], "O": []}
    for loop, kind in zip(sch.get_loops(info.block_rv), info.dom_kind(), strict=False):
        loops[kind].append(loop)
    if not loops["S"]:
        loops["S"].append(sch.add_unit_loop(info.block_rv))
    sch.reorder(*loops["S"], *loops["R"], *loops["O"])
    bind(sch, sch.fuse(*loops["S"]), threads, most)
    return loops["R"][0] if loops["R"] else None


def bind(sch: Schedule, loop: LoopRV, threads: int, most: int | None) -> None:
    """Bind a loop to blocks of threads; a thread takes several of more than `most` iterations."""
    extent = extent_of(loop_of(sch, loop))
    if most is None or (extent is not None and extent <= most):
        outer, inner = sch.split(loop, [None, threads])
    else:
        rest, outer, inner = sch.split(loop, [None, BLOCKS, threads])
        sch.reorder(outer, inner, rest)
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


def has_threads(sch: Schedule, block: BlockRV) -> bool:
    """Whether threads run a block, or a block without loops launches them itself."""
    place = place_of(sch, block)
    if any(loop.thread_binding is not None for loop in place.loops):
        return True
    return not place.loops and _launches(place.block.body)


def _launches(body: Stmt) -> bool:
    return any(
        (isinstance(part, For) and part.thread_binding is not None)
        or (isinstance(part, AttrStmt) and is_launch(part))
        for part in statements_in(body)
    )


def _apply_to_any(func: PrimFunc, threads: int, most: int | None) -> Schedule | None:
    """A schedule of a function in any form that launches no threads: of each block the outer
    spatial loops are bound. None where there are threads, or no blocks."""
    if _launches(func.body) or not any(isinstance(p, Block) for p in statements_in(func.body)):
        return None
    sch = Schedule(func)
    for block in sch.get_child_blocks(sch.get_block("root")):
        loops = sch.get_loops(block)
        outer = _outer_spatial(sch, loops)
        fused = sch.fuse(*outer) if outer else sch.add_unit_loop(loops[0] if loops else block)
        bind(sch, fused, threads, most)
    return sch


def _outer_spatial(sch: Schedule, loops: Sequence[LoopRV]) -> list[LoopRV]:
    """The outer loops that are spatial, each alone in the one around it."""
    spatial: list[LoopRV] = []
    for loop in loops:
        statement = loop_of(sch, loop)
        if loop_type(statement) != SPATIAL:
            break
        spatial.append(loop)
        if not isinstance(statement.body, For):
            break
    return spatial
