"""The errors of every layer, under TVM's class names."""

from __future__ import annotations

from mlcweb.ir.span import Span


class TVMError(RuntimeError):
    """Base of the errors that this package raises on purpose.

    `message` is the text without the source excerpt; `span` is the source range at fault, if known.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.message = message
        self.span = span
        super().__init__(f"{message}\n{span.render()}" if span else message)


class InternalError(TVMError):
    """A broken invariant of this package itself."""


class DiagnosticError(TVMError):
    """A program that cannot be what it claims to be: bad script, bad types, bad structure."""
