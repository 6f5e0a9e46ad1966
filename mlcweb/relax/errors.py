"""The errors of the graph level; each says which operator, which argument, which shapes."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError


class ShapeError(DiagnosticError, ValueError):
    """Shapes that do not go together."""


class DTypeError(DiagnosticError, TypeError):
    """Element types, or kinds of values, that do not go together."""
