"""What is told about a script that is refused, beside the error that is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.span import Span

__all__ = ["Diagnostic", "DiagnosticContext", "DiagnosticLevel", "override_renderer"]


class DiagnosticLevel(IntEnum):
    """How grave a diagnostic is; those here are errors."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


@dataclass(frozen=True)
class Diagnostic:
    """A message about a place of a source."""

    level: DiagnosticLevel
    span: Span | None
    message: str


@dataclass(frozen=True)
class DiagnosticContext:
    """The diagnostics of one reading of a source."""

    diagnostics: tuple[Diagnostic, ...]


Renderer = Callable[[DiagnosticContext], None]

_renderer: ContextVar[Renderer | None] = ContextVar("renderer", default=None)


def override_renderer(render_func: Renderer | None) -> None:
    """Call `render_func` for each script that is refused from now on, before the error is raised;
    None ends that."""
    _renderer.set(render_func)


@contextmanager
def rendered_diagnostics() -> Iterator[None]:
    """What is raised inside is given to the renderer."""
    try:
        yield
    except DiagnosticError as error:
        render = _renderer.get()
        if render is not None:
            diagnostic = Diagnostic(DiagnosticLevel.ERROR, error.span, error.message)
            render(DiagnosticContext((diagnostic,)))
        raise
