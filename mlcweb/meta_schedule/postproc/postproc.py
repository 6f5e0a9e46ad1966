"""The interface of post-processors: what happens to a schedule when all is decided."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Self

from mlcweb.tir.schedule import Schedule

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


class Postproc(ABC):
    """Changes a schedule whose decisions are made, or refuses it."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:  # noqa: B027
        """Learn of the task; most post-processors need not."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Whether the schedule, which may be changed, is fit to be measured."""

    def clone(self) -> Self:
        """A post-processor of the same options, for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The default post-processors for a kind of target: "wasm", or "llvm" as TVM has them."""
        from mlcweb.meta_schedule.space_generator.defaults import of_kind

        return of_kind(kind).postprocs()
