"""Post-processors of TVM: the interface, those that check, and those that finish reductions, tensor
instructions, layouts of weights and annotated loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.meta_schedule.space import TaskPart, of_kind
from mlcweb.meta_schedule.space.rules import PARALLEL, UNROLL_EXPLICIT, UNROLL_IMPLICIT, VECTORIZE
from mlcweb.schedule import BlockRV, Instruction, LoopRV, Schedule, ScheduleError, Trace
from mlcweb.schedule.analysis.block_facts import (
    SPATIAL,
    bound_regions,
    extent_of,
    is_root,
    is_single,
    is_spatial,
    place_of,
    strides,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.layout_rewrite import free_buffers, rewrite_layout
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.buffer import BufferRegion
from mlcweb.tir.expr import Sub
from mlcweb.tir.function import prim_funcs
from mlcweb.tir.stmt import For, ForKind, statements_in
from mlcweb.tir.substitute import variables_in


@dataclass(frozen=True, slots=True)
class Condition:
    """What some sampling steps of a trace must decide, or a post-processor refuses.

    Attributes:
        steps: the steps, all of them tilings of a loop whose extent is always the same.
        holds: whether decisions of the steps fulfil it.
    """

    steps: tuple[Instruction, ...]
    holds: Callable[[Mapping[Instruction, Any]], bool]


class Postproc(TaskPart, ABC):
    """Changes a schedule whose decisions are made, or refuses it."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Whether the schedule, which may be changed, is fit to be measured."""

    def conditions(self, trace: Trace) -> Sequence[Condition]:
        """What is known before a trace is replayed of the decisions with which `apply` would refuse
        it; nothing by default."""
        return ()

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The default post-processors for a kind of target, by the names of `DEFAULTS`."""
        return of_kind(kind).postprocs()


PyPostproc = Postproc
"""What post-processors of a program's own are subclasses of, in TVM."""


class DisallowDynamicLoop(Postproc):
    """Refuses schedules with loops whose number of iterations is no constant."""

    def apply(self, sch: Schedule) -> bool:
        return all(
            extent_of(node) is not None
            for func in prim_funcs(sch.mod).values()
            for node in statements_in(func.body)
            if isinstance(node, For)
        )


class RewriteReductionBlock(Postproc):
    """Decomposes each reduction block at its first loop that is not spatial, inside of all loops
    that repeat it as a whole."""

    def apply(self, sch: Schedule) -> bool:
        # One decomposition may bring out a block that needs another.
        while reductions := [
            (place, level)
            for place in sch.state.index.blocks.values()
            if (level := _decompose_level(place)) is not None
        ]:
            for place, level in reductions:
                block = sch.get_block(place.block.name_hint, place.function)
                init = sch.decompose_reduction(block, sch.get_loops(block)[level])
                if AUTO_TENSORIZE in place.block.annotations:
                    _move_init_intrinsic(sch, block, init, place.block.annotations)
        return True


def _move_init_intrinsic(
    sch: Schedule, block: BlockRV, init: BlockRV, annotations: Mapping[str, Any]
) -> None:
    """The intrinsic that fills what a block sums in is that of the block which now does that."""
    intrinsic = annotations.get(AUTO_TENSORIZE_INIT)
    sch.unannotate(init, AUTO_TENSORIZE)
    sch.annotate(init, AUTO_TENSORIZE, "" if intrinsic is None else intrinsic)
    if intrinsic is not None:
        sch.unannotate(block, AUTO_TENSORIZE_INIT)
        sch.unannotate(init, AUTO_TENSORIZE_INIT)


def _decompose_level(place: BlockPlace) -> int | None:
    """The loop at which a block is decomposed; None where there is none, or where threads reduce
    together."""
    if place.block.init is None or _reduces_over_threads(place):
        return None
    own = variables_in(*place.realize.iter_values)
    chosen: int | None = None
    for level, loop in enumerate(place.loops):
        if loop.loop_var not in own and extent_of(loop) != 1:
            chosen = None
        elif chosen is None and loop_type(loop) != SPATIAL:
            chosen = level
    return chosen


def _reduces_over_threads(place: BlockPlace) -> bool:
    threads = {loop.loop_var for loop in place.loops if loop.thread_binding is not None}
    return any(
        iter_var.iter_type != SPATIAL and not threads.isdisjoint(variables_in(value))
        for iter_var, value in place.realize.iterators
    )


AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
AUTO_TENSORIZE_INIT = "meta_schedule.auto_tensorize_init"


class RewriteTensorize(Postproc):
    """Tensorizes each block that is annotated with its intrinsic; refuses the schedule where that
    fails.

    Args:
        vectorize_init_loop: vectorize the innermost loop of what fills sums where no intrinsic is
            to do that.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        for place in list(sch.state.index.blocks.values()):
            for key in (AUTO_TENSORIZE, AUTO_TENSORIZE_INIT):
                intrinsic = place.block.annotations.get(key)
                vectorizes = key == AUTO_TENSORIZE and self.vectorize_init_loop
                if intrinsic is None or not (intrinsic or vectorizes):
                    continue
                block = sch.get_block(place.block.name_hint, place.function)
                sch.unannotate(block, key)
                try:
                    if intrinsic:
                        sch.tensorize(block, str(intrinsic))
                    else:
                        (inner,) = sch.get_child_blocks(block)
                        sch.vectorize(sch.get_loops(inner)[-1])
                except (ScheduleError, ValueError):
                    return False
        return True


class RewriteLayout(Postproc):
    """Reads each parameter whose layout is free through a copy that has its elements in the order
    of the loops that read it last. Blocks that copy it before take the same layout."""

    def apply(self, sch: Schedule) -> bool:
        for name in prim_funcs(sch.mod):
            for number in free_buffers(sch, name).values():
                rewrite_layout(sch, name, number)
        return True


_KEYS = (PARALLEL, VECTORIZE, UNROLL_EXPLICIT, UNROLL_IMPLICIT)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The annotations of a root block; None where there is none."""

    parallel: int | None
    vectorize: int | None
    unroll_explicit: int | None
    unroll_implicit: int | None

    @property
    def unroll(self) -> tuple[int, bool]:
        """The bound of unrolling (0: none), and whether it is explicit."""
        if self.unroll_explicit is not None:
            return self.unroll_explicit, True
        return self.unroll_implicit or 0, False


class RewriteParallelVectorizeUnroll(Postproc):
    """Carries out what `ParallelizeVectorizeUnroll` annotated, for each block below the root: outer
    loops are fused and run in parallel, inner loops with neighbouring elements become vectors; the
    outermost loop gets the bound of unrolling.

    Args:
        unroll_spatial: annotate the bound on blocks that reduce nothing, too, as TVM did in 2022.
    """

    def __init__(self, unroll_spatial: bool = False) -> None:
        self.unroll_spatial = unroll_spatial

    def apply(self, sch: Schedule) -> bool:
        while (place := _annotated_root(sch)) is not None:
            root = sch.get_block(place.block.name_hint, place.function)
            annotations = place.block.annotations
            for key in _KEYS:
                if key in annotations:
                    sch.unannotate(root, key)
            limits = _Limits(
                *(int(annotations[key]) if key in annotations else None for key in _KEYS)
            )
            for block in sch.get_child_blocks(root):
                self._rewrite(sch, block, limits)
        return True

    def _rewrite(self, sch: Schedule, block: BlockRV, limits: _Limits) -> None:
        loops = sch.get_loops(block)
        if not loops:
            return
        outermost = _parallelize_and_vectorize(sch, block, loops, limits)
        steps, explicit = limits.unroll
        if steps and (self.unroll_spatial or not is_spatial(place_of(sch, block).block)):
            sch.annotate(outermost, "pragma_auto_unroll_max_step", steps)
            sch.annotate(outermost, "pragma_unroll_explicit", int(explicit))


def _annotated_root(sch: Schedule) -> BlockPlace | None:
    for place in sch.state.index.blocks.values():
        if is_root(place) and any(key in place.block.annotations for key in _KEYS):
            return place
    return None


def _parallelize_and_vectorize(
    sch: Schedule, block: BlockRV, loops: Sequence[LoopRV], limits: _Limits
) -> LoopRV:
    """Fuse and mark loops; the outermost loop after that."""
    place = place_of(sch, block)
    parallel, vector = _how_many(place, limits)
    if parallel == vector == len(loops):
        outer, inner = sch.split(sch.fuse(*loops), [None, limits.vectorize])
        sch.parallel(outer)
        sch.vectorize(inner)
        return outer
    outermost = loops[0]
    if parallel:
        outermost = sch.fuse(*loops[:parallel])
        sch.parallel(outermost)
    if vector:
        fused = sch.fuse(*loops[-vector:])
        sch.vectorize(fused)
        outermost = fused if vector == len(loops) else outermost
    return outermost


def _how_many(place: BlockPlace, limits: _Limits) -> tuple[int, int]:
    """How many loops to run in parallel, from the outermost, and in vectors, from the innermost."""
    loops = place.loops
    extents = [extent_of(loop) for loop in loops]
    contiguous = _contiguous_loops(place)
    parallel = _parallel_loops(loops, limits.parallel)
    vector = _vector_loops(loops, contiguous, limits.vectorize)
    if limits.parallel is None or limits.vectorize is None:
        return parallel, vector
    is_one_nest = all(
        loop_type(loop) == SPATIAL and not _is_marked(loop) and is_single(loop.body)
        for loop in loops
    )
    constant = [extent for extent in extents if extent is not None]
    if is_one_nest and contiguous >= len(loops) == len(constant) and prod(constant) > 1:
        return len(loops), len(loops)
    return min(parallel, len(loops) - vector), vector


def _parallel_loops(loops: Sequence[For], limit: int | None) -> int:
    if limit is None:
        return 0
    count, iterations = 0, 1
    for loop in loops:
        extent = extent_of(loop)
        if loop_type(loop) != SPATIAL or _is_marked(loop) or extent is None:
            break
        count += 1
        iterations *= extent
        if iterations > limit or not is_single(loop.body):
            break
    return count if iterations > 1 else 0


def _vector_loops(loops: Sequence[For], contiguous: int, limit: int | None) -> int:
    if limit is None:
        return 0
    count, lanes = 0, 1
    for loop in reversed(loops):
        extent = extent_of(loop)
        if loop_type(loop) != SPATIAL or count >= contiguous or extent is None:
            break
        if _is_marked(loop) or not is_single(loop.body) or lanes * extent > limit:
            break
        count += 1
        lanes *= extent
    return count if lanes > 1 else 0


def _contiguous_loops(place: BlockPlace) -> int:
    """The number of innermost loops that, fused, still move through every buffer evenly."""
    loops = place.loops
    counts = [
        _contiguous([step or 0 for step in strides(region, loops)], loops)
        for region in bound_regions(place.realize)
        if not _is_shifted_down(region)
    ]
    return min(counts, default=len(loops))


def _contiguous(steps: Sequence[int], loops: Sequence[For]) -> int:
    count = 0
    span: int | None = None
    for step, loop in zip(reversed(steps), reversed(loops), strict=True):
        if step != 0:
            is_uneven = step != 1 and count != 0 if span is None else step != span
            if is_uneven:
                break
            span = step * (extent_of(loop) or 0)
        count += 1
    return count


def _is_shifted_down(region: BufferRegion) -> bool:
    """Whether the last index is a difference, as where padding is taken away again. TVM lets such
    reads fuse with anything."""
    return isinstance(Analyzer().simplify(region.region[-1].min), Sub) if region.region else False


def _is_marked(loop: For) -> bool:
    return loop.kind == ForKind.THREAD_BINDING or bool(loop.annotations)
