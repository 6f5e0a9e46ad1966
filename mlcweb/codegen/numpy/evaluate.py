"""The value of an integer expression over a whole iteration space at once, while compiling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.tir import expr as E
from mlcweb.tir.operators import DIVISIONS, OPERATORS, Family, key_of, keys, operands_of

Grid = Any
"""An integer, or an integer array that broadcasts with the others of its space."""


class NotConstant(Exception):
    """An expression depends on more than loop variables, or on one that has no values here."""


def evaluate(expression: E.PrimExpr, values: Mapping[E.Var, Grid]) -> Grid:
    """The expression with arrays for its variables; raises `NotConstant` where that cannot be."""
    if isinstance(expression, E.IntImm):
        return expression.value
    if isinstance(expression, E.Var):
        if expression not in values:
            raise NotConstant(expression.name)
        return values[expression]
    if isinstance(expression, E.Cast) and expression.dtype in ("int32", "int64"):
        return evaluate(expression.value, values)
    operation = _OPERATIONS.get(key_of(expression))
    if operation is None:
        raise NotConstant(expression)
    operands = [evaluate(operand, values) for operand in operands_of(expression)]
    if type(expression) in DIVISIONS and np.any(np.equal(operands[1], 0)):
        raise NotConstant("division by zero")
    return operation(*operands)


_OPERATIONS: dict[Any, Any] = {
    **{key: OPERATORS[key].fold for key in (E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod)},
    **{key: OPERATORS[key].fold for key in keys(Family.COMPARISON)},
    E.Min: np.minimum,
    E.Max: np.maximum,
    E.And: np.logical_and,
    E.Or: np.logical_or,
    E.Not: np.logical_not,
    E.Select: np.where,
    "if_then_else": np.where,
    "likely": lambda value: value,
}
