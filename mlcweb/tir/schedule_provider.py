"""The seam by which a database of tuning records reaches the passes of layers below it."""

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


entered: ContextVar[tuple[ScheduleProvider, ...]] = ContextVar("schedule_providers", default=())
"""The providers of all enclosing `with provider:`, the innermost last."""


def innermost() -> ScheduleProvider | None:
    """The provider of the innermost `with provider:`."""
    providers = entered.get()
    return providers[-1] if providers else None
