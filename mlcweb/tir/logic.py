"""Conditions from several conditions."""

from __future__ import annotations

from functools import reduce
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import PrimExpr


class NoConditionsError(DiagnosticError, ValueError):
    """A conjunction or disjunction of nothing."""


def all(*conditions: Any) -> PrimExpr:
    """Whether all conditions hold."""
    return reduce(arithmetic.logical_and, _some(conditions, "all"))


def any(*conditions: Any) -> PrimExpr:
    """Whether one of the conditions holds."""
    return reduce(arithmetic.logical_or, _some(conditions, "any"))


def _some(conditions: tuple[Any, ...], name: str) -> tuple[PrimExpr, ...]:
    if not conditions:
        raise NoConditionsError(f"{name}() needs at least one condition")
    return tuple(map(arithmetic.convert, conditions))
