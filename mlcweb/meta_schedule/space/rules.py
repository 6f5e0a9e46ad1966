"""Schedule rules that work on any target: the interface, inlining, and the small ones of TVM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir.op import Op
from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule.space import TaskPart, of_kind
from mlcweb.runtime.registry import get_global_func
from mlcweb.schedule import BlockRV, ExprRV, LoopRV, Schedule, ScheduleError
from mlcweb.schedule.analysis.block_facts import (
    REDUCTION,
    TILING_STRUCTURE,
    access_pattern,
    consumers_of,
    is_in_spatial_function,
    is_root,
    loop_of,
    needs_rfactor,
    place_of,
    producers_of,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.scopes import (
    is_output_block,
    is_trivially_true,
    scope_around,
    why_not_complete,
)
from mlcweb.schedule.primitives.inline import compute_inline, reverse_compute_inline
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState
from mlcweb.tir.expr import Call, Select
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, IfThenElse


class ScheduleRule(TaskPart, ABC):
    """Transforms a block; where there are several ways to do so, a schedule for each."""

    @abstractmethod
    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that the rule makes of one, which it may change; `[sch]` where the rule
        does not concern the block."""

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The default rules for a kind of target, by the names of `DEFAULTS`."""
        return of_kind(kind).sch_rules()


PyScheduleRule = ScheduleRule
"""What rules of a program's own are subclasses of, in TVM."""


SCHEDULE_RULE = "schedule_rule"
"""The annotation of a block with a rule of its own, which other rules leave alone."""


class ApplyCustomRule(ScheduleRule):
    """Applies to a block with the annotation `schedule_rule = "name"` the global function
    `meta_schedule.<key>.<name>`, for a key of the target: "cpu", or its kind. Where there is none,
    the annotation is taken away, and other rules apply."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        name = place_of(sch, block).block.annotations.get(SCHEDULE_RULE)
        if name is None or name == "None":
            return [sch]
        target = self.target
        keys = ("cpu",) if target is None else (*target.keys, target.kind.name)
        for prefix in ("meta_schedule", "s_tir.meta_schedule"):
            for key in keys:
                function: Any = get_global_func(f"{prefix}.{key}.{name}", allow_missing=True)
                if function is not None:
                    try:
                        result = function(sch, block)
                    except Exception as error:
                        rule, text = f"{prefix}.{key}.{name}", f"{type(error).__name__}: {error}"
                        error.args = (f'The schedule rule "{rule}" failed: {text}',)
                        raise
                    return [sch] if result is None else list(result)
        # Nobody knows that rule: the others take the block.
        sch.unannotate(block, SCHEDULE_RULE)
        return [sch]


RANDOM_COMPUTE_PRODUCER = "meta_schedule.random_compute_producer"
"""The annotation of a block whose parts `RandomComputeLocation` moves too."""


@dataclass(eq=False)
class AddRFactor(ScheduleRule):
    """Splits a long reduction and makes the parts of its outer or inner loop in a block of their
    own, or leaves it as it is.

    Args:
        max_jobs_per_core: the most parallel iterations for each core; without end if -1.
        max_innermost_factor: the largest inner part; without end if None.
    """

    max_jobs_per_core: int = 16
    max_innermost_factor: int | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        jobs = self.max_jobs_per_core
        max_parallel = jobs * self.cores if jobs >= 0 else -1
        if not needs_rfactor(sch, block, max_parallel, self.cores):
            return [sch]
        original = sch.copy()
        fused, spatial = fuse_reduction_loops(sch, block)
        limit = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        factors = sch.sample_perfect_tile(fused, n=2, max_innermost_factor=limit)
        variants = []
        for loop in sch.split(fused, factors):
            parts = sch.copy()
            try:
                partial = parts.rfactor(loop, factor_axis=spatial)
            except ScheduleError:
                continue
            parts.get_loops(partial)
            parts.annotate(block, RANDOM_COMPUTE_PRODUCER, 1)
            variants.append(parts)
        return [*variants, original]


def fuse_reduction_loops(sch: Schedule, block: BlockRV) -> tuple[LoopRV, int]:
    """Put the reduction loops of a block inside of its spatial ones and fuse them: their loop, and
    the number of spatial loops."""
    loops = sch.get_loops(block)
    spatial = [loop for loop in loops if loop_type(loop_of(sch, loop)) != REDUCTION]
    reduction = [loop for loop in loops if loop_type(loop_of(sch, loop)) == REDUCTION]
    if spatial + reduction != loops:
        sch.reorder(*spatial, *reduction)
    fused = sch.fuse(*reduction) if len(reduction) > 1 else reduction[0]
    return fused, len(spatial)


def one_of(sch: Schedule, candidates: Sequence[int]) -> ExprRV:
    """A sampled value, each of the candidates as likely."""
    return sch.sample_categorical(list(candidates), [1.0 / len(candidates)] * len(candidates))


PARALLEL = "meta_schedule.parallel"
VECTORIZE = "meta_schedule.vectorize"
UNROLL_EXPLICIT = "meta_schedule.unroll_explicit"
UNROLL_IMPLICIT = "meta_schedule.unroll_implicit"


@dataclass(eq=False)
class ParallelizeVectorizeUnroll(ScheduleRule):
    """Annotates the root block with how far `RewriteParallelVectorizeUnroll` may go.

    Args:
        max_jobs_per_core: the most parallel iterations for each core; none if -1.
        max_vectorize_extent: the most lanes; none if -1.
        unroll_max_steps: bounds of unrolling to choose from; no unrolling if None.
        unroll_explicit: unroll in the lowered program, rather than leave it to a later compiler.
    """

    max_jobs_per_core: int = 16
    max_vectorize_extent: int = 16
    unroll_max_steps: list[int] | None = field(default=None)
    unroll_explicit: bool = True

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if not is_root(place):
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, PARALLEL, self.max_jobs_per_core * self.cores)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, VECTORIZE, self.max_vectorize_extent)
        steps = self.unroll_max_steps
        if steps and not is_in_spatial_function(sch, place):
            key = UNROLL_EXPLICIT if self.unroll_explicit else UNROLL_IMPLICIT
            sch.annotate(block, key, one_of(sch, steps))
        return [sch]


class RandomComputeLocation(ScheduleRule):
    """Computes a block that has loops of its own and was not tiled at some loop of those that read
    from it, inlined, or where it is."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not self._concerns(sch, block):
            return [sch]
        producers: list[BlockRV] = []
        # Asked before the block moves: afterwards it may be gone.
        if place_of(sch, block).block.annotations.get(RANDOM_COMPUTE_PRODUCER):
            producers = sch.get_producers(block)
            sch.unannotate(block, RANDOM_COMPUTE_PRODUCER)
        for moved in (block, *producers):
            sch.compute_at(moved, sch.sample_compute_location(moved), preserve_unit_loops=True)
        return [sch]

    def _concerns(self, sch: Schedule, block: BlockRV) -> bool:
        place = place_of(sch, block)
        if is_root(place) or not is_root(sch.state.scope_of(place)):
            return False
        loops = place.loops
        if not loops or TILING_STRUCTURE in place.block.annotations:
            return False
        outermost: LoopPlace = sch.state.loop(loops[0].loop_var)
        if len(sch.state.child_blocks(outermost)) > 1:
            return False
        return bool(consumers_of(sch.state, place))


_Primitive = Callable[[ScheduleState, BlockIdentity], ScheduleState]


class InlineConstantScalars(ScheduleRule):
    """Inlines blocks that make one number out of nothing: such a block would count as a second
    producer, and keep `AutoInline` from inlining into the first."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        node = place.block
        makes_scalar = not node.reads and len(node.writes) == 1 and not node.writes[0].buffer.shape
        if makes_scalar and not is_root(place) and not is_output_block(sch.state, place):
            sch.compute_inline(block)
        return [sch]


@dataclass(eq=False)
class AutoInline(ScheduleRule):
    """Inlines spatial blocks where nothing is lost by it.

    Args:
        into_producer: blocks may go into the block that they read from.
        into_consumer: blocks may go into the blocks that read from them.
        inline_const_tensor: blocks that read nothing are inlined whatever else holds.
        disallow_if_then_else: blocks with branches stay. This and what follows does not count in
            functions that reduce nothing.
        require_injective: blocks that read one element for several of their own stay.
        require_ordered: blocks that transpose stay.
        disallow_op: blocks that call operators of these names stay.
    """

    into_producer: bool
    into_consumer: bool
    inline_const_tensor: bool
    disallow_if_then_else: bool
    require_injective: bool
    require_ordered: bool
    disallow_op: list[str] | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if is_root(place) or len(place.block.writes) != 1:
            return [sch]
        inlines = self.inline_const_tensor and not place.block.reads
        if inlines and self._fits_consumers(sch.state, place):
            sch.compute_inline(block)
        elif self._is_allowed(sch, place):
            if self.into_consumer and self._fits_consumers(sch.state, place):
                sch.compute_inline(block)
            elif self.into_producer and self._fits_producer(sch.state, place):
                sch.reverse_compute_inline(block)
        return [sch]

    def _is_allowed(self, sch: Schedule, place: BlockPlace) -> bool:
        if place.block.annotations.get("meta_schedule.inline_rule") == "disable":
            return False
        if is_in_spatial_function(sch, place):
            return True
        if self.disallow_op and _calls(place.realize, self.disallow_op):
            return False
        if self.disallow_if_then_else and _branches(place.realize):
            return False
        if not self.require_injective and not self.require_ordered:
            return True
        for read in place.block.reads:
            pattern = access_pattern(read, place.block.writes[0])
            if self.require_injective and not (pattern and pattern.injective):
                return False
            if self.require_ordered and not (pattern and pattern.ordered):
                return False
        return True

    def _fits_consumers(self, state: ScheduleState, place: BlockPlace) -> bool:
        return bool(consumers_of(state, place)) and _works(compute_inline, state, place)

    def _fits_producer(self, state: ScheduleState, place: BlockPlace) -> bool:
        producers = producers_of(state, place)
        if len(producers) != 1 or "meta_schedule.auto_tensorize" in producers[0].block.annotations:
            return False
        scope = scope_around(state, place)
        is_complete = why_not_complete(scope, producers[0].block) is None
        return is_complete and _works(reverse_compute_inline, state, place)


def _works(primitive: _Primitive, state: ScheduleState, place: BlockPlace) -> bool:
    try:
        primitive(state, place.block.identity)
    except ScheduleError:
        return False
    return True


def _names(node: Call) -> str:
    name = node.op.name if isinstance(node.op, Op) else node.op.name_hint
    return name.removeprefix("tir.").removeprefix("tirx.")


def _calls(realize: BlockRealize, names: list[str]) -> bool:
    bare = {name.removeprefix("tir.").removeprefix("tirx.") for name in names}
    return any(isinstance(node, Call) and _names(node) in bare for node in walk(realize))


def _branches(realize: BlockRealize) -> bool:
    for node in walk(realize):
        if isinstance(node, (IfThenElse, Select)):
            return True
        if isinstance(node, Call) and _names(node) == "if_then_else":
            return True
        if isinstance(node, BlockRealize) and not is_trivially_true(node.predicate):
            return True
    return False
