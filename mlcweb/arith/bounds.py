"""The least and the greatest value that an integer expression can take, as an analyzer knows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd, inf
from typing import Any

from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import (
    EVERYTHING,
    INDEX_TYPES,
    RULES,
    ConstIntBound,
    operand_pair,
    type_bound,
)
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.operators import Key, key_of, operator_name

SIZES = ConstIntBound(0, inf)
_UNLIMITED = 2**63 - 1
"""An end that is as far from zero counts as infinite, as in TVM."""
_EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""A float holds the integers up to 2 to the power of this exactly."""


@cache
def bound_of_type(dtype: str) -> ConstIntBound:
    """The values of an integer type; those of 64 bits count as unlimited."""
    low, high = type_bound(dtype)
    unlimited = dtypes.bits(dtype) >= 64
    return ConstIntBound(-inf if unlimited and low < 0 else low, inf if unlimited else high)


def compute_bound(expression: E.PrimExpr, analyzer: Facts) -> ConstIntBound:
    """The bound of an expression, from those of its operands.

    Arithmetic of indices is taken never to overflow; that of other types wraps around.
    """
    key = key_of(expression)
    rule = _RULES.get(key)
    if rule is not None:
        bound = rule(expression, analyzer)
    elif (operation := RULES.get(key)) is not None:
        bound = operation(*map(analyzer.const_int_bound, operand_pair(expression)))
    else:
        bound = None
    if bound is None:
        return bound_of_type(expression.dtype)
    if bound[1] > 127 or bound[0] < 0:  # others fit in every type
        dtype = expression.dtype
        if dtype not in INDEX_TYPES and not bound.is_within(bound_of_type(dtype)):
            return bound_of_type(dtype)
        if bound[1] >= _UNLIMITED or bound[0] <= -_UNLIMITED:
            low, high = bound
            return ConstIntBound(
                -inf if low <= -_UNLIMITED else low, inf if high >= _UNLIMITED else high
            )
    return bound


def _remainder(expression: E.FloorMod | E.Mod, analyzer: Facts) -> ConstIntBound | None:
    """The remainders of a constant that occur are spaced by what is known of the dividend."""
    a, b = analyzer.const_int_bound(expression.a), analyzer.const_int_bound(expression.b)
    bound = RULES[type(expression)](a, b)
    if bound is None or bound is a or b.min_value != b.max_value or b.min_value <= 0:
        return bound
    modular_set = analyzer.modular_set(expression.a)
    step = gcd(modular_set.coeff, int(b.min_value))
    low, high = bound
    return ConstIntBound(
        low + (modular_set.base - low) % step, high - (high - modular_set.base) % step
    )


def _rounded_logarithm(value: E.PrimExpr, analyzer: Facts) -> ConstIntBound | None:
    """Of `ceil(log2(x))`, where x is an integer greater than 0, cast to a float."""
    match value:
        case E.Call(args=[E.Call(args=[E.Cast(value=power)]) as logarithm]) if (
            operator_name(value) == "ceil" and operator_name(logarithm) == "log2"
        ):
            low, high = analyzer.const_int_bound(power)
            # Both are exact: a float64 holds the integers up to 2**53.
            if 0 < low and high <= 2**53 and logarithm.dtype == "float64":
                return ConstIntBound((int(low) - 1).bit_length(), (int(high) - 1).bit_length())
    return None


def _shift_left(expression: E.Call, analyzer: Facts) -> ConstIntBound | None:
    """What is not negative, shifted by fewer bits than its type has."""
    value, bits = map(analyzer.const_int_bound, expression.args)
    if value.min_value < 0 or not 0 <= bits.min_value <= bits.max_value < 64:
        return None
    if value.max_value == inf:
        return None
    least = int(value.min_value) << int(bits.min_value)
    bound = ConstIntBound(least, int(value.max_value) << int(bits.max_value))
    return bound if bound.is_within(bound_of_type(expression.dtype)) else None


def _cast(expression: E.Cast, analyzer: Facts) -> ConstIntBound | None:
    if dtypes.is_float(expression.value.dtype):
        value = expression.value
        if isinstance(value, E.Cast) and type_bound(value.value.dtype) != EVERYTHING:
            return _exact_cast(value, expression.dtype, analyzer)
        return _rounded_logarithm(value, analyzer)
    value = analyzer.const_int_bound(expression.value)
    source = bound_of_type(expression.value.dtype)
    if not value.is_within(source):
        value = source
    return value if value.is_within(bound_of_type(expression.dtype)) else None


def _exact_cast(inner: E.Cast, dtype: str, analyzer: Facts) -> ConstIntBound | None:
    """Of an integer that is cast to a float and back: itself where the float holds it exactly."""
    limit = 2 ** _EXACT_BITS.get(dtypes.element_of(inner.dtype), 0)
    value = analyzer.const_int_bound(inner.value)
    exact = value.is_within(ConstIntBound(-limit, limit))
    return value if exact and value.is_within(bound_of_type(dtype)) else None


def _absolute(expression: E.Call, analyzer: Facts) -> ConstIntBound:
    low, high = analyzer.const_int_bound(expression.args[0])
    least = 0 if low <= 0 <= high else min(abs(low), abs(high))
    return ConstIntBound(least, max(abs(low), abs(high)))


def _ramp(expression: E.Ramp, analyzer: Facts) -> ConstIntBound | None:
    """All lanes of it."""
    if not isinstance(expression.lanes, int):
        return None
    last = ConstIntBound(0, expression.lanes - 1)
    steps = RULES[E.Mul](analyzer.const_int_bound(expression.stride), last)
    assert steps is not None
    return RULES[E.Add](analyzer.const_int_bound(expression.base), steps)


def _variable(variable: E.Var, analyzer: Facts) -> ConstIntBound | None:
    bound = analyzer.bound_of_variable.get(variable)
    if bound is not None:
        return bound
    value = analyzer.value_of(variable)
    if value is not variable:
        return analyzer.const_int_bound(value)
    domain = analyzer.symbolic_domains.get(variable)
    if domain is not None:
        low = analyzer.const_int_bound(domain.min)
        last = analyzer.const_int_bound(domain.extent).max_value - 1
        return ConstIntBound(low.min_value, low.max_value + last)
    return SIZES if variable.is_size else None


def _let(expression: E.Let, analyzer: Facts) -> ConstIntBound | None:
    inside = analyzer.clone()
    inside.bind(expression.var, expression.value)
    return inside.const_int_bound(expression.body)


_RULES: dict[Key, Callable[[Any, Facts], ConstIntBound | None]] = {
    E.Ramp: _ramp,
    E.Broadcast: lambda expression, analyzer: analyzer.const_int_bound(expression.value),
    E.Let: _let,
    E.Var: _variable,
    E.IntImm: lambda expression, analyzer: ConstIntBound(expression.value, expression.value),
    E.FloorMod: _remainder,
    E.Mod: _remainder,
    E.Cast: _cast,
    "shift_left": _shift_left,
    "abs": _absolute,
    "likely": lambda expression, analyzer: analyzer.const_int_bound(expression.args[0]),
}
