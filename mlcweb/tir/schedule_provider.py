"""Schedules that the surroundings know: the seam by which a database of tuning records reaches the
passes of layers below it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mlcweb.ir.module import IRModule


class ScheduleProvider(Protocol):
    """Knows the best schedule of some programs."""

    def query_ir_module(self, mod: IRModule, target: None = None) -> IRModule | None:
        """A program with its best schedule; None where none is known. A program is a module whose
        only function is called "main"."""
        ...


entered: ContextVar[tuple[ScheduleProvider, ...]] = ContextVar("known_schedules", default=())
"""The sources of all `with source:` around, the innermost last."""


def innermost() -> ScheduleProvider | None:
    """The source of the innermost `with source:`."""
    sources = entered.get()
    return sources[-1] if sources else None
