"""The interface of schedule rules: what may be done to a block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from mlcweb.schedule import BlockRV, Schedule

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


class ScheduleRule(ABC):
    """Transforms a block; where there are several ways to do so, a schedule for each."""

    cores: int = 1
    """Cores of the target, which bound how much is made parallel."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        target: Any = context.target
        self.cores = int(target.attrs.get("num-cores", 1)) if target is not None else 1

    @abstractmethod
    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that the rule makes of one, which it may change; `[sch]` where the rule
        does not concern the block."""

    def clone(self) -> Self:
        """A rule of the same options, for another task."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The default rules for a kind of target: "wasm", or "llvm" as TVM has them."""
        from mlcweb.meta_schedule.space_generator.defaults import of_kind

        return of_kind(kind).sch_rules()


PyScheduleRule = ScheduleRule
"""What rules of a program's own are subclasses of, in TVM."""
