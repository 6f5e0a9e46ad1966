"""The interface of a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule
from mlcweb.tir.function import PrimFunc

Scheduled: TypeAlias = "Schedule | list[Schedule] | None"


class ScheduleRule:
    """Schedules functions of one kind."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Scheduled:
        """A schedule of a function for a target, or several of them where `tunable`; None where the
        rule does not concern the function."""
        raise NotImplementedError

    def is_target_available(self, target: Target) -> bool:
        """Whether the rule is one for a target."""
        return True

    @staticmethod
    def from_callable(name: str) -> Callable[[Callable[..., Any]], ScheduleRule]:
        """A decorator: a function `(func, target, tunable)` becomes a rule."""

        def decorate(function: Callable[..., Any]) -> ScheduleRule:
            def apply(self: ScheduleRule, *arguments: Any) -> Scheduled:
                return function(*arguments)

            return type(name, (ScheduleRule,), {"apply": apply})()

        return decorate
