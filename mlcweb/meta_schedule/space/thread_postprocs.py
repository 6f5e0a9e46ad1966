"""Post-processors for machines with threads, as TVM has them: fetching together, binding what is
left, and whether a program is within the limits of the device."""

from __future__ import annotations

from math import prod
from typing import Any

from mlcweb.analysis.threads import is_shared
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import children
from mlcweb.lower.compact_buffers import compact_shared_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.overlap import overlap
from mlcweb.lower.place_allocations import place_outside_of_threads
from mlcweb.lower.thread_axes import kernels_in
from mlcweb.meta_schedule.space.multi_level_tiling import (
    COOPERATIVE_FETCH,
    THREADS_HIGH,
    THREADS_LOW,
    WARP_EXECUTION,
)
from mlcweb.meta_schedule.space.postprocs import Postproc
from mlcweb.meta_schedule.space.thread_rules import bind_block
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.analysis.block_facts import axis_of, extent_of, is_root, loop_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.function import PrimFunc, prim_funcs
from mlcweb.tir.stmt import AllocBuffer, Block, BufferStore, For, ForKind, Stmt, statements_in

MAX_VECTOR_BYTES = 16


class RewriteCooperativeFetch(Postproc):
    """Binds the loop of each copy to shared memory to the threads that were bound before it, with
    as many neighbours for a thread as its annotation says. Where warps compute, the copies of the
    block are made by their threads."""

    def apply(self, sch: Schedule) -> bool:
        threads: dict[str, int] = {}
        fetches: list[tuple[BlockRV, int, dict[str, int]]] = []
        for inst in sch.trace.insts:
            if inst.kind.name == "Bind" and str(inst.attrs[0]) in ("threadIdx.x", "threadIdx.y"):
                threads[inst.attrs[0]] = extent_of(loop_of(sch, inst.inputs[0])) or 1
            elif inst.kind.name == "Annotate" and inst.attrs[0] == COOPERATIVE_FETCH:
                lanes = int(sch.get(inst.inputs[1])) if inst.inputs[1:] else 1  # type: ignore[call-overload]
                fetches.append((inst.inputs[0], lanes, dict(threads)))
            elif inst.kind.name == "Annotate" and inst.attrs[0] == WARP_EXECUTION:
                threads["threadIdx.x"] = self.limit("thread_warp_size")
        for block, lanes, around in fetches:
            self._fetch(sch, block, lanes, around)
        return True

    def _fetch(self, sch: Schedule, block: BlockRV, lanes: int, threads: dict[str, int]) -> None:
        sch.unannotate(block, COOPERATIVE_FETCH)
        fused = sch.get_loops(block)[-1]
        extent = extent_of(loop_of(sch, fused))
        if extent is None:
            return
        tags = [tag for tag in ("threadIdx.y", "threadIdx.x") if tag in threads]
        factors: list[Any] = [None, *(threads[tag] for tag in tags)]
        vector = lanes > 1 and extent % lanes == 0
        loops = sch.split(fused, [*factors, lanes] if vector else factors)
        if vector:
            sch.vectorize(loops[-1])
        for tag, loop in reversed(list(zip(tags, loops[1:], strict=False))):
            sch.bind(loop, tag)


class RewriteUnboundBlock(Postproc):
    """Binds the blocks that are in no loops over blocks and threads yet.

    Args:
        max_threadblocks: the most blocks of threads of a launch.
        max_threads_per_block: the most threads of a block; by default what the target has.
    """

    def __init__(self, max_threadblocks: int = 256, max_threads_per_block: int = -1) -> None:
        self.max_threadblocks = max_threadblocks
        self.max_threads_per_block = max_threads_per_block

    def apply(self, sch: Schedule) -> bool:
        most = self.max_threads_per_block
        most = self.limit("max_threads_per_block") if most == -1 else most
        for place in list(sch.state.index.blocks.values()):
            parents = [parent for parent in place.parents if isinstance(parent, Block)]
            if is_root(place) or len(parents) != 1:
                continue
            axes = [axis_of(loop) for loop in place.loops]
            if all(any(a.startswith(kind) for a in axes) for kind in ("blockIdx", "threadIdx")):
                continue
            block = sch.get_block(place.block.name_hint, place.function)
            bind_block(sch, block, self.max_threadblocks, most, lambda extent: extent)
        return True


class VerifyGPUCode(Postproc):
    """Refuses a program that goes beyond what a block of the target's threads has: their number,
    shared memory, bytes of a vector."""

    def apply(self, sch: Schedule) -> bool:
        return all(map(self._fits, prim_funcs(sch.mod).values()))

    def _fits(self, func: PrimFunc) -> bool:
        return self._has_fit_threads(func.body, {}) and self._has_fit_memory(func)

    def _has_fit_threads(self, statement: Stmt, around: dict[str, int]) -> bool:
        """Whether the threads around each block are as many as it says, and as there may be."""
        if isinstance(statement, For):
            axis, extent = axis_of(statement), extent_of(statement)
            if axis:
                around = {**around, axis: extent or 1}
            if statement.kind == ForKind.VECTORIZED and not _fits_vector(statement):
                return False
        elif isinstance(statement, Block):
            annotations = statement.annotations
            if WARP_EXECUTION in annotations:
                # What it becomes takes a whole warp.
                around = {**around, "threadIdx.x": self.limit("thread_warp_size") or 1}
            threads = prod(n for axis, n in around.items() if axis.startswith("threadIdx"))
            if THREADS_LOW in annotations and not (
                int(annotations[THREADS_LOW]) <= threads <= int(annotations[THREADS_HIGH])
            ):
                return False
            if threads > (self.limit("max_threads_per_block") or threads):
                return False
        inside = (part for part in children(statement) if isinstance(part, Stmt))
        return all(self._has_fit_threads(part, around) for part in inside)

    def _has_fit_memory(self, func: PrimFunc) -> bool:
        shared = self.limit("max_shared_memory_per_block")
        if not shared:
            return True
        try:
            for run in (
                lower_init_block,
                convert_blocks_to_loops,
                place_outside_of_threads,
                compact_shared_buffers,
                overlap,
            ):
                func = run(func)
        except TVMError:
            return False
        return all(_shared_bytes(kernel) <= shared for kernel in kernels_in(func.body))


def _fits_vector(loop: For) -> bool:
    stores = (part for part in statements_in(loop) if isinstance(part, BufferStore))
    lanes = extent_of(loop) or 1
    return all(
        lanes * dtypes.size_in_bytes(store.buffer.dtype) <= MAX_VECTOR_BYTES for store in stores
    )


def _shared_bytes(kernel: Stmt) -> int:
    allocated = (part.buffer for part in statements_in(kernel) if isinstance(part, AllocBuffer))
    return sum(
        prod(int(extent) for extent in constant_shape(buffer) or ())
        * dtypes.size_in_bytes(buffer.dtype)
        for buffer in allocated
        if is_shared(buffer)
    )
