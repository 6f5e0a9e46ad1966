"""The lowering for machines with threads: kernels, each a launch of blocks of threads.

What a program binds to thread axes becomes a kernel: one loop for each axis, those over blocks
outside, and in them what one thread does, barriers included. What stands around kernels is the
host's: it may loop, choose, and allocate memory that kernels pass on, but computes nothing itself.
"""

from __future__ import annotations

import functools

from mlcweb.analysis.threads import is_own, is_thread_tag, thread_tag
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, Visitor, on
from mlcweb.lower.async_copies import (
    commits_and_waits,
    inject_ptx_async_copy,
    watched_copies,
)
from mlcweb.lower.compact_buffers import compact_shared_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.expand_instructions import EXPANSION, expand_instructions, lane_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.global_exchange import passed_through_global_memory
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.matrix_units import by_one_lane
from mlcweb.lower.overlap import overlap, overlap_asynchronously
from mlcweb.lower.pipeline import Observer, run_pipeline
from mlcweb.lower.place_allocations import place_outside_of_threads
from mlcweb.lower.serialize_threads import (
    Fission,
    give_memory_to_its_owners,
    synchronize_threads,
)
from mlcweb.lower.simplify import simplify
from mlcweb.lower.storage_align import align_shared_storage, mark_aligned_storage
from mlcweb.lower.store_once import store_once
from mlcweb.lower.thread_allreduce import lower_thread_allreduce
from mlcweb.lower.thread_axes import ThreadError, check_one_index, check_same_extent
from mlcweb.lower.thread_reductions import reduce_through_shared_memory, share_results
from mlcweb.lower.thread_sync import insert_barriers
from mlcweb.lower.uniform_conditions import drop_uniform_marks
from mlcweb.lower.unroll_loop import UnrollLoop
from mlcweb.lower.warp_registers import registers_of_lanes
from mlcweb.lower.warp_shuffle import lower_warp_shuffle
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, const, is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute, variables_in

AUTO_UNROLL = "pragma_auto_unroll_max_step"

AXES = tuple(f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx", "vthread") for axis in "zyx")
"""The axes of a launch, outermost first."""


def lower_for_device(
    func: PrimFunc, observe: Observer | None = None, warp: int = 1, asynchronous: bool = False
) -> PrimFunc:
    """The function as launches of threads: no blocks, buffers of one dimension, barriers in place.

    `observe` hears of each pass; `warp` neighbouring threads can read each other's registers;
    `asynchronous` says whether copies can go on while a thread computes. Raises a ThreadError where
    threads cannot run as they are written.
    """
    lowering, generation = _passes(warp, asynchronous)
    return run_pipeline(func, lowering, generation, observe)


@functools.cache
def _to_launches(asynchronous: bool) -> tuple[LoweringPass, ...]:
    """The passes to launches, around which the memory stands that their threads have together."""
    return (
        lower_init_block,
        LoweringPass(mark_aligned_storage, "MarkAlignedStorage"),
        convert_blocks_to_loops,
        overlap_asynchronously if asynchronous else overlap,
        LoweringPass(share_results, "ShareReductionResults", needed=True),
        LoweringPass(place_outside_of_threads, "PlaceSharedAllocations", needed=True),
        LoweringPass(compact_shared_buffers, "CompactSharedAllocations"),
        LoweringPass(align_shared_storage, "AlignSharedStorage", needed=True),
        LoweringPass(launch_threads, "LaunchThreads", needed=True),
    )


@functools.cache
def _passes(
    warp: int, asynchronous: bool
) -> tuple[tuple[LoweringPass, ...], tuple[LoweringPass, ...]]:
    """The passes to flat kernels, and those from which on vectors are loops over their lanes."""
    copies: tuple[LoweringPass, ...] = ()
    instructions: tuple[LoweringPass, ...] = ()
    if asynchronous:
        copies = (LoweringPass(commits_and_waits, "LowerAsyncCopies", needed=True),)
        instructions = (LoweringPass(inject_ptx_async_copy, "InjectPTXAsyncCopy", needed=True),)

    def reduce_together(func: PrimFunc) -> PrimFunc:
        func = lower_warp_shuffle(func, warp=warp)
        return lower_thread_allreduce(reduce_through_shared_memory(func, warp=warp), warp=warp)

    lowering = (
        *_to_launches(asynchronous),
        LoweringPass(registers_of_lanes, "LowerWarpMemory", needed=True),
        *copies,
        LoweringPass(reduce_together, "LowerThreadAllreduce", needed=True),
        LoweringPass(synchronize_launches, "ThreadSync", needed=True),
        LoweringPass(unfold_virtual_threads, "InjectVirtualThread", needed=True),
        LoweringPass(mark_unrolled, "UnrollLoop"),
        flatten_buffers,
        simplify,
    )
    return lowering, (
        expand_instructions(builtins=frozenset(("clz",))),
        LoweringPass(lane_loops, "LaneLoops", needed=True),
        *instructions,
    )


@functools.cache
def passes_to_simulated_threads() -> tuple[LoweringPass, ...]:
    """The passes to launches whose threads are watched while they run: nothing is refused that can
    be seen then. With ThreadSync among `disabled_pass` the barriers are those of the program."""
    return (
        EXPANSION,
        *_to_launches(asynchronous=True),
        LoweringPass(watched_copies, "LowerAsyncCopies", needed=True),
        LoweringPass(_reduce_in_steps, "LowerThreadAllreduce", needed=True),
        LoweringPass(give_memory_to_its_owners, "PlaceThreadMemory", needed=True),
        LoweringPass(_insert_barriers_where_possible, "ThreadSync"),
        LoweringPass(by_one_lane, "SimulateMatrixUnits", needed=True),
        simplify,
    )


def _reduce_in_steps(func: PrimFunc) -> PrimFunc:
    func = reduce_through_shared_memory(lower_warp_shuffle(func, barriers=True), barriers=True)
    return lower_thread_allreduce(func, barriers=True)


def _insert_barriers_where_possible(func: PrimFunc) -> PrimFunc:
    passed = passed_through_global_memory(func, refuses=False)
    return drop_uniform_marks(insert_barriers(store_once(func), passed, refuses=False))


def launch_threads(func: PrimFunc) -> PrimFunc:
    """Move the loops over each axis out of what is bound, where they become one.

    Raises a ThreadError where the loops of one axis differ in extent, or one depends on others.
    """
    return func.with_body(_Launches().rewrite(func.body))


class _Launches(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        return _Launch().whole(loop) if loop.thread_binding else self.rewrite_children(loop)


class _Launch(Mutator):
    """Takes the loops over axes out of one kernel."""

    def __init__(self) -> None:
        self.axes: dict[str, S.For] = {}
        self.around: dict[str, S.For] = {}
        self.common: list[Buffer] = []

    def whole(self, loop: S.For) -> S.Stmt:
        inside = self.rewrite(loop)
        inner = variables_in(*(axis.extent for axis in self.axes.values()))
        defined = {part.loop_var for part in S.find_statements(loop, S.For)}
        for axis in self.axes.values():
            if defined & inner & variables_in(axis.extent):
                raise ThreadError(
                    f'The extent of loop "{axis.loop_var.name}" over threads depends on loops '
                    "of its kernel; all blocks of a launch have the same threads",
                    axis.span,
                )
        threads = sorted(filter(is_thread_tag, self.axes), key=_rank)
        for tag in reversed(threads):
            inside = replace(self.axes[tag], body=inside)
        for buffer in self.common:
            inside = S.AllocBuffer(buffer, inside)
        for tag in sorted(self.axes.keys() - set(threads), key=_rank, reverse=True):
            inside = replace(self.axes[tag], body=inside)
        return inside

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        tag = loop.thread_binding.thread_tag
        if tag in self.around:
            check_one_index(loop, self.around[tag])
        axis = self.axes.setdefault(tag, replace(loop, min=const(0, loop.loop_var.dtype)))
        check_same_extent(axis, loop)
        outer, self.around = self.around, {**self.around, tag: loop}
        index = cast(loop.loop_var.dtype, add(axis.loop_var, loop.min))
        body = loop.body
        if index is not loop.loop_var:
            body = substitute(body, {loop.loop_var: index})
        body = self.rewrite(body)
        self.around = outer
        return body

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        """Memory that threads have around them is theirs together, unless it is local."""
        outside = not any(map(is_thread_tag, self.around))
        if outside and statement.buffer.scope() == "global":
            self.common.append(statement.buffer)
            return self.rewrite(statement.body)
        if outside and is_own(statement.buffer):
            _check_not_passed_on(statement)
        return self.rewrite_children(statement)


def _check_not_passed_on(allocation: S.AllocBuffer) -> None:
    """Raise a ThreadError where all threads read what each of them writes to memory of its own."""
    buffer, uses = allocation.buffer, _Uses(allocation.buffer)
    uses.visit(allocation.body)
    for load, around in uses.loads:
        passed = sorted(uses.stored - around)
        if passed:
            raise ThreadError(
                f'"{buffer.name}" is local memory, of which each thread has its own; it is written '
                f'in loops over "{passed[0]}" and read outside of them, where a thread has only '
                'what it wrote itself; use "shared" memory, or read it in such a loop',
                load.span or buffer.span,
            )


class _Uses(Visitor):
    """The axes of threads, of more than one, around what loads from a buffer or stores to it."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.around: frozenset[str] = frozenset()
        self.stored: frozenset[str] = frozenset()
        self.loads: list[tuple[E.BufferLoad, frozenset[str]]] = []

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        outer = self.around
        if is_thread_tag(tag := thread_tag(loop)) and not is_const_int(loop.extent, 1):
            self.around |= {tag}
        self.visit_children(loop)
        self.around = outer

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> None:
        self.visit_children(node)
        if node.buffer.data is self.buffer.data:
            if isinstance(node, S.BufferStore):
                self.stored |= self.around
            else:
                self.loads.append((node, self.around))


def _rank(tag: str) -> int:
    return AXES.index(tag) if tag in AXES else len(AXES)


def synchronize_launches(func: PrimFunc) -> PrimFunc:
    """Put the barriers in, also between what threads of a block do in global memory.

    Raises a ThreadError where blocks would have to wait for each other.
    """
    return synchronize_threads(func, passed_through_global_memory(func))


def mark_unrolled(func: PrimFunc) -> PrimFunc:
    """Mark the loops that an annotation around them wants unrolled: each language says it in a way
    of its own."""
    told = S.AttrStmt(const(0), "pragma_unroll_explicit", const(0), _Pragmas().rewrite(func.body))
    return func.with_body(UnrollLoop().rewrite(told))


class _Pragmas(Mutator):
    """What a loop's annotations say of the loops in it, as statements around its body."""

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        body = self.rewrite(loop.body)
        step = loop.annotations.get(AUTO_UNROLL)
        if step is not None:
            body = S.AttrStmt(const(0), AUTO_UNROLL, const(int(step)), body)
        return loop if body is loop.body else replace(loop, body=body)


def unfold_virtual_threads(func: PrimFunc) -> PrimFunc:
    """Each thread runs the virtual ones in it one after the other, from barrier to barrier."""
    return drop_uniform_marks(func.with_body(_VirtualThreads().rewrite(func.body)))


class _VirtualThreads(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if thread_tag(loop).startswith("vthread"):
            return Fission(keeps_barriers=True).split(loop)
        return self.rewrite_children(loop)
