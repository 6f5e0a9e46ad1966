"""Post-processors: the interface, those that check, and those that finish reductions and
tensor instructions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from mlcweb.ir.visitor import walk
from mlcweb.meta_schedule.space.block_facts import SPATIAL, extent_of
from mlcweb.schedule import BlockRV, Instruction, Schedule, ScheduleError, Trace
from mlcweb.schedule.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, For

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


@dataclass(frozen=True, slots=True)
class Condition:
    """What some sampling steps of a trace must decide, or a post-processor refuses.

    Attributes:
        steps: the steps, all of them tilings of a loop whose extent is always the same.
        holds: whether decisions of the steps fulfil it.
    """

    steps: tuple[Instruction, ...]
    holds: Callable[[Mapping[Instruction, Any]], bool]


class Postproc(ABC):
    """Changes a schedule whose decisions are made, or refuses it."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:  # noqa: B027
        """Learn of the task; most post-processors need not."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Whether the schedule, which may be changed, is fit to be measured."""

    def conditions(self, trace: Trace) -> Sequence[Condition]:
        """What is known before a trace is replayed of the decisions with which `apply` would refuse
        it; nothing by default."""
        return ()

    def clone(self) -> Self:
        """A post-processor of the same options, for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The default post-processors for a kind of target: "wasm", or "llvm" as TVM has them."""
        from mlcweb.meta_schedule.space.defaults import of_kind

        return of_kind(kind).postprocs()


PyPostproc = Postproc
"""What post-processors of a program's own are subclasses of, in TVM."""


class DisallowDynamicLoop(Postproc):
    """Refuses schedules with loops whose number of iterations is no constant."""

    def apply(self, sch: Schedule) -> bool:
        return all(
            extent_of(node) is not None
            for func in sch.mod.functions.values()
            if isinstance(func, PrimFunc)
            for node in walk(func.body)
            if isinstance(node, For)
        )


class RewriteReductionBlock(Postproc):
    """Decomposes each reduction block at its first loop that is not spatial."""

    def apply(self, sch: Schedule) -> bool:
        # One decomposition may bring out a block that needs another.
        while found := [
            (place, level)
            for place in sch.state.index.blocks.values()
            if (level := _decompose_level(place)) is not None
        ]:
            for place, level in found:
                block = sch.get_block(place.block.name_hint, place.function)
                sch.decompose_reduction(block, sch.get_loops(block)[level])
        return True


def _decompose_level(place: BlockPlace) -> int | None:
    if place.block.init is None:
        return None
    kinds = [loop_type(loop) for loop in place.loops]
    return next((level for level, kind in enumerate(kinds) if kind != SPATIAL), None)


AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
AUTO_TENSORIZE_INIT = "meta_schedule.auto_tensorize_init"


class RewriteTensorize(Postproc):
    """Tensorizes each block with a note of its intrinsic; refuses the schedule where that fails.

    Args:
        vectorize_init_loop: vectorize the innermost loop of the init of such a block.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        for place in list(sch.state.index.blocks.values()):
            for key in (AUTO_TENSORIZE, AUTO_TENSORIZE_INIT):
                intrinsic = place.block.annotations.get(key)
                if intrinsic is None:
                    continue
                block = sch.get_block(place.block.name_hint, place.function)
                sch.unannotate(block, key)
                if not self._rewrite(sch, block, key, str(intrinsic)):
                    return False
        return True

    def _rewrite(self, sch: Schedule, block: BlockRV, key: str, intrinsic: str) -> bool:
        found = sch.get(block)
        if self.vectorize_init_loop and isinstance(found, Block):
            if found.name_hint.endswith("_init") and key == AUTO_TENSORIZE:
                (inner,) = sch.get_child_blocks(block)
                sch.vectorize(sch.get_loops(inner)[-1])
                return True
        if key == AUTO_TENSORIZE_INIT and not intrinsic:
            return True
        try:
            sch.tensorize(block, intrinsic)
        except (ScheduleError, ValueError):
            return False
        return True
