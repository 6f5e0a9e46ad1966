"""The interface of post-processors: what happens to a schedule when all is decided."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from mlcweb.schedule import Instruction, Schedule, Trace

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
        from mlcweb.meta_schedule.space_generator.defaults import of_kind

        return of_kind(kind).postprocs()


PyPostproc = Postproc
"""What post-processors of a program's own are subclasses of, in TVM."""
