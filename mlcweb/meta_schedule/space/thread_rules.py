"""Rules for machines with threads, as TVM has them: blocks bound to threads, and reductions that
the threads of a block do together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from mlcweb.meta_schedule.space.rules import (
    ScheduleRule,
    fuse_reduction_loops,
    one_of,
)
from mlcweb.schedule import BlockRV, ExprRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    SPATIAL,
    TILING_STRUCTURE,
    axis_of,
    extent_of,
    is_root,
    is_single,
    loop_of,
    needs_multi_level_tiling,
    needs_rfactor,
    place_of,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.stmt import For, ForKind

Factor = Callable[[int], "int | ExprRV"]
"""Threads of a block, at most."""


@dataclass(eq=False)
class AutoBind(ScheduleRule):
    """Binds the outer spatial loops of a block that was not tiled to blocks and threads.

    Args:
        max_threadblocks: the most blocks of threads of a launch.
        thread_extents: threads of a block to choose from.
        max_threads_per_block: the most of them; by default what the target has.
    """

    max_threadblocks: int = 256
    thread_extents: Sequence[int] = (32, 64, 128, 256, 512, 1024)
    max_threads_per_block: int = -1

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        def factor(most: int) -> int | ExprRV:
            extents = [extent for extent in self.thread_extents if extent <= most]
            if len(extents) < 2:
                return extents[0] if extents else most
            return one_of(sch, extents)

        most = self.max_threads_per_block
        most = self.limit("max_threads_per_block") if most == -1 else most
        bind_block(sch, block, self.max_threadblocks, most, factor)
        return [sch]


def bind_block(
    sch: Schedule, block: BlockRV, max_blocks: int, max_threads: int, factor: Factor
) -> None:
    """Bind the outer spatial loops of a block to blockIdx.x and threadIdx.x, or those around what
    is bound to threads to blockIdx.x."""
    place = place_of(sch, block)
    if is_root(place) or TILING_STRUCTURE in place.block.annotations:
        return
    axes = [axis_of(loop) for loop in place.loops]
    blocks, threads = (_first(axes, kind) for kind in ("blockIdx", "threadIdx"))
    if blocks is not None and threads is not None:
        return
    count = _spatial_and_single(place.loops)
    loops = sch.get_loops(block)
    if count == 0:
        # Of what only reduces there is one result.
        loops, count = [sch.add_unit_loop(loops[0] if loops else block), *loops], 1
        threads = None if threads is None else threads + 1
    if threads is not None:
        loops = sch.get_loops(block)
        sch.bind(sch.fuse(*loops[: min(count, threads)]), "blockIdx.x")
        return
    fused = sch.fuse(*loops[:count])
    extent = extent_of(loop_of(sch, fused))
    if extent is None:
        return
    if extent <= max_blocks * max_threads:
        outer, inner = sch.split(fused, [None, factor(min(max_threads, extent))])
    else:
        rest, outer, inner = sch.split(fused, [None, max_blocks, max_threads])
        sch.reorder(outer, inner, rest)
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


def _first(axes: Sequence[str], kind: str) -> int | None:
    return next((level for level, axis in enumerate(axes) if axis.startswith(kind)), None)


def _spatial_and_single(loops: Sequence[For]) -> int:
    """How many outer loops are spatial, serial, and hold one statement; the last may hold more."""
    count = 0
    for loop in loops:
        if loop_type(loop) != SPATIAL or loop.kind != ForKind.SERIAL:
            break
        count += 1
        if not is_single(loop.body):
            break
    return count


@dataclass(eq=False)
class CrossThreadReduction(ScheduleRule):
    """Lets the threads of a block reduce together, at a loop of what reads the result if that may
    be; or leaves the reduction as it is.

    Args:
        thread_extents: numbers of threads to choose from.
    """

    thread_extents: Sequence[int]

    @property
    def max_threads_per_block(self) -> int:
        """Of the target; 0 where that is not known."""
        return self.limit("max_threads_per_block")

    @property
    def warp_size(self) -> int:
        """Threads of a warp of the target; 0 where that is not known."""
        return self.limit("thread_warp_size")

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        most = self.max_threads_per_block
        if not most or not self.warp_size or not needs_rfactor(sch, block, most, 1):
            return [sch]
        together = sch.copy()
        target = _where_to_compute(together, block)
        threads: Any = one_of(together, self.thread_extents)
        if target is not None:
            threads = self._compute_at(together, block, *target, threads)
        fused, _ = fuse_reduction_loops(together, block)
        _, inner = together.split(fused, [None, threads])
        together.bind(inner, "threadIdx.x")
        return [together, sch]

    def _compute_at(
        self,
        sch: Schedule,
        block: BlockRV,
        consumer: BlockRV,
        loop: LoopRV,
        innermost: LoopRV,
        threads: Any,
    ) -> Any:
        """Compute a block at a loop around a consumer, whose threads are its: how many."""
        has_threads = _has_threads(place_of(sch, consumer))
        sch.get_loops(consumer)
        if has_threads:
            threads = _threads_bound(sch)
        else:
            outer, inner = sch.split(innermost, [None, threads])
            sch.bind(inner, "threadIdx.x")
            loop = outer if loop is innermost else loop
        sch.compute_at(block, loop, preserve_unit_loops=True)
        sch.set_scope(block, 0, "shared")
        return threads


def _where_to_compute(sch: Schedule, block: BlockRV) -> tuple[BlockRV, LoopRV, LoopRV] | None:
    """The first consumer of a block, its loop that the block may be computed at, and its innermost
    loop; None where there is none, or where it is not known how many threads the consumer has."""
    if len(place_of(sch, block).block.writes) != 1:
        return None
    consumers = sch.get_consumers(block)
    if not consumers or needs_multi_level_tiling(place_of(sch, consumers[0])):
        return None
    places = [place_of(sch, consumer) for consumer in consumers]
    if _has_threads(places[0]) and _threads_bound(sch) is None:
        return None
    common = places[0].loops
    for place in places[1:]:
        common = tuple(loop for loop in common if loop in place.loops)
    if len(consumers) > 1 and not common:
        return None
    # Of one consumer, what is common to all is the block itself: no loop is the last one.
    last = len(common) - 1 if len(consumers) > 1 else len(places[0].loops)
    loops = sch.get_loops(consumers[0])
    own = place_of(sch, block).loops
    sch.get_loops(block)
    position = min(len(own), len(loops)) - 1
    for level, loop in enumerate(own[: len(loops)]):
        if loop_type(loop) != SPATIAL:
            position = level - 1
            break
        if level == last:
            position = level
            break
    # Nothing is computed anew in each step of a reduction.
    spatial = takewhile(lambda loop: loop_type(loop) == SPATIAL, places[0].loops)
    position = min(position, len(list(spatial)) - 1)
    return (consumers[0], loops[position], loops[-1]) if position >= 0 else None


def _has_threads(place: BlockPlace) -> bool:
    return any(axis_of(loop).startswith("threadIdx") for loop in place.loops)


def _threads_bound(sch: Schedule) -> Any:
    """The factor of the first split one of whose loops is bound to threadIdx.x; None where there is
    none, as in tiles, whose loops of threads are fused."""
    insts = sch.trace.insts
    for inst in insts:
        if inst.kind.name == "Bind" and inst.attrs[0] == "threadIdx.x":
            for split in insts:
                if split.kind.name == "Split" and inst.inputs[0] in split.outputs:
                    return split.inputs[1 + list(split.outputs).index(inst.inputs[0])]
    return None
