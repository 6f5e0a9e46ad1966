"""What a condition or an index says of single variables: coefficients, clips and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.arith.analyzer import Analyzer, conjuncts
from mlcweb.arith.int_set import IntervalSet, IntSet, eval_set
from mlcweb.ir.errors import TVMError, nesting_limit
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    const,
    convert,
    equal,
    floordiv,
    floormod,
    is_const_int,
    maximum,
    minimum,
)
from mlcweb.tir.substitute import uses

Linear = tuple[E.PrimExpr, E.PrimExpr]
"""A coefficient and a base."""


@nesting_limit("analyzed")
def detect_linear_equation(expr: Any, var_list: Sequence[E.Var]) -> list[E.PrimExpr]:
    """The coefficients of variables, and the base; empty where the expression is not linear."""
    base, analyzer = convert(expr), Analyzer()
    coefficients = []
    for variable in var_list:
        linear = _linear(base, variable)
        if linear is None or any(uses(linear[0], other) for other in var_list):
            return []
        coefficients.append(linear[0])
        base = linear[1]
    return [analyzer.simplify(value) for value in (*coefficients, base)]


def detect_clip_bound(expr: Any, var_list: Sequence[E.Var]) -> list[E.PrimExpr | None]:
    """For each variable the least and the greatest value that a conjunction leaves it, None where
    it says nothing; empty where a part is no bound of a single variable."""
    bounds: dict[E.Var, list[E.PrimExpr | None]] = {variable: [None, None] for variable in var_list}
    analyzer = Analyzer()
    for part in conjuncts(convert(expr)):
        used = [variable for variable in var_list if uses(part, variable)]
        difference = _not_negative(part)
        if difference is None or len(used) != 1:
            return []
        linear = _linear(difference, used[0])
        scale = None if linear is None else analyzer.simplify(linear[0])
        if linear is None or not isinstance(scale, E.IntImm) or scale.value == 0:
            return []
        size = abs(scale.value)
        if isinstance(part, E.EQ):
            if size != 1:
                return []
            exact = analyzer.simplify(linear[1] * -scale.value)
            bounds[used[0]] = [exact, exact]
            continue
        ends, lower = bounds[used[0]], scale.value > 0
        # size * v >= -base, or size * v <= base
        value = floordiv(size - 1 - linear[1], size) if lower else floordiv(linear[1], size)
        bound = ends[not lower]
        if bound is not None:
            value = (maximum if lower else minimum)(bound, value)
        ends[not lower] = analyzer.simplify(value)
    return [end for variable in var_list for end in bounds[variable]]


def deduce_bound(
    var: E.Var,
    cond: Any,
    hint_map: Mapping[E.Var, IntSet],
    relax_map: Mapping[E.Var, IntSet],
) -> IntSet:
    """The values of a variable with which a comparison holds, whatever the variables of
    `relax_map` are; `hint_map` says what is known of others. Everything else is nothing.

    Raises:
        TVMError: the comparison does not contain the variable once.
    """
    difference, analyzer = _not_negative(convert(cond)), Analyzer()
    if difference is None or isinstance(cond, E.EQ) or not uses(difference, var):
        raise TVMError(f"{cond!r} is no comparison of {var.name}")
    linear = _linear(difference, var)
    if linear is None:
        return IntervalSet.nothing()
    coefficient, base = (analyzer.simplify(part) for part in linear)
    signs = eval_set(coefficient, {**hint_map, **relax_map}, analyzer)
    lower = signs.min_value is not None and analyzer.can_prove(signs.min_value > 0)
    upper = signs.max_value is not None and analyzer.can_prove(signs.max_value < 0)
    if not (lower or upper):
        return IntervalSet.nothing()
    least = eval_set(base, relax_map, analyzer).min_value
    if least is None:
        return IntervalSet.nothing()
    # v * coefficient >= -least, or v * -coefficient <= least
    divisor = coefficient if lower else 0 - coefficient
    value = analyzer.simplify(0 - least if lower else least)
    end = floordiv(value, divisor)
    if lower and not analyzer.can_prove(equal(floormod(value, divisor), 0)):
        end = end + 1
    end = analyzer.simplify(end)
    return IntervalSet(end, None) if lower else IntervalSet(None, end)


def _not_negative(condition: E.PrimExpr) -> E.PrimExpr | None:
    """What is at least 0 where a comparison holds (0 of an equality); None of other conditions."""
    if isinstance(condition, E.LT):
        return condition.b - condition.a - 1
    if isinstance(condition, E.LE):
        return condition.b - condition.a
    if isinstance(condition, E.GT):
        return condition.a - condition.b - 1
    return condition.a - condition.b if isinstance(condition, (E.GE, E.EQ)) else None


def _linear(expression: E.PrimExpr, variable: E.Var) -> Linear | None:
    """`expression` as coefficient * variable + base; None where it is not linear."""
    if expression is variable:
        return const(1, variable.dtype), const(0, variable.dtype)
    if not isinstance(expression, (E.Add, E.Sub, E.Mul)):
        return None if uses(expression, variable) else (const(0, variable.dtype), expression)
    a, b = _linear(expression.a, variable), _linear(expression.b, variable)
    if a is None or b is None:
        return None
    if a[1] is expression.a and b[1] is expression.b:
        return const(0, variable.dtype), expression
    if isinstance(expression, E.Add):
        return a[0] + b[0], a[1] + b[1]
    if isinstance(expression, E.Sub):
        return a[0] - b[0], a[1] - b[1]
    if is_const_int(a[0], 0):
        a, b = b, a
    return (a[0] * b[1], a[1] * b[1]) if is_const_int(b[0], 0) else None
