"""Expressions of operands that have one type already, with constants and neutral operands folded.

What users write is brought to one type first, by `mlcweb.tir.arithmetic`; the arithmetic of indices
has one type from the start, and most of the time of a schedule is spent in it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.operators import OPERATORS, Key

Builder = Callable[[Any, Any], E.PrimExpr]


def const(value: Any, dtype: str | None = None) -> E.PrimExpr:
    """A constant. Without `dtype`: the type of a number of NumPy's; of Python's, bool, int32 (int64
    where it does not fit) or float32 (float64); what does not fit in int64 is a DiagnosticError.

    A vector `dtype` gives a broadcast constant. Equal integers are mostly the same object.
    """
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
            if not -(2**63) <= value < 2**63:
                raise DiagnosticError(
                    f"An integer of {value.bit_length()} bits does not fit in int64; "
                    "name a type for it (T.uint64(…)), or make it smaller"
                )
        elif hasattr(value, "dtype"):  # a number of NumPy's
            value, dtype = value.item(), str(value.dtype)
        else:
            finite = math.isinf(value) or not abs(value) > dtypes.max_value("float32")
            dtype = "float32" if finite else "float64"
    if type(value) is int:
        return _constant_of(value, dtype)
    return _new_constant(value, dtype)


def _rounds_down(value: float, dtype: str) -> bool:
    """Whether a bfloat16 is written in digits that end beyond its greatest value; TVM takes those
    of no other type."""
    return dtype == "bfloat16" and math.isfinite(dtypes.round_float(value, dtype))


def _new_constant(value: int | float | bool, dtype: str) -> E.PrimExpr:
    if dtypes.lane_count(dtype) != 1:
        return E.Broadcast(const(value, dtypes.element_of(dtype)), E.lanes_of(dtype))
    if dtypes.is_float(dtype):
        limit = dtypes.max_value(dtype)
        if not -limit <= value <= limit and math.isfinite(value) and not _rounds_down(value, dtype):
            raise DiagnosticError(
                f"{value} is beyond {dtype}, whose greatest value is {limit}; write "
                f'T.{dtype}("inf") where infinity is meant'
            )
        return E.FloatImm(dtype, float(value))
    if dtypes.is_bool(dtype):
        return E.IntImm(dtype, int(bool(value)))
    return E.IntImm(dtype, dtypes.wrap_integer(int(value), dtype))


_constant_of = lru_cache(maxsize=4096)(_new_constant)

integer = cast(Callable[[int, str], E.IntImm], _constant_of)
"""The constant of an integer type; mostly the same object for the same constant."""


def number(dtype: str, value: int | float) -> E.IntImm | E.FloatImm:
    """The constant that an operation on constants gives, rounded: what is beyond a float type is
    infinite."""
    if dtypes.is_float(dtype):
        return E.FloatImm(dtype, dtypes.round_float(value, dtype))
    return integer(int(value), dtype)


def value_of(constant: Any) -> Any:
    """The value that a constant has in its type: the 0.1 of a float32 is not that of a float64."""
    if type(constant) is E.FloatImm:
        return dtypes.round_float(constant.value, constant.dtype)
    return constant.value


def _folded(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> E.PrimExpr:
    """An operation on constants of one type."""
    if type(a) is E.IntImm:
        return _constant_of(compute(a.value, b.value), a.dtype)
    return number(a.dtype, compute(value_of(a), value_of(b)))


_NUMBERS = frozenset((E.IntImm, E.FloatImm))


def _is_zero(constant: E.FloatImm, sign: float) -> bool:
    """Whether a constant is the zero of a sign: `x + 0.0` is 0.0 where x is -0.0, so of the two
    zeros only -0.0 adds nothing, and only 0.0 takes nothing away."""
    return constant.value == 0 and math.copysign(1, constant.value) == sign


# Most operands are integers, which are asked for first.


def add(a: Any, b: Any) -> E.PrimExpr:
    if type(b) is E.IntImm:
        if type(a) is E.IntImm:
            return _constant_of(a.value + b.value, a.dtype)
        if b.value == 0:
            return a
    elif type(a) is E.IntImm:
        if a.value == 0:
            return b
    elif type(b) is E.FloatImm:
        if type(a) is E.FloatImm:
            return _folded(operator.add, a, b)
        if _is_zero(b, -1):
            return a
    elif type(a) is E.FloatImm and _is_zero(a, -1):
        return b
    return E.Add(a, b)


def subtract(a: Any, b: Any) -> E.PrimExpr:
    if type(b) is E.IntImm:
        if type(a) is E.IntImm:
            return _constant_of(a.value - b.value, a.dtype)
        if b.value == 0:
            return a
    elif type(b) is E.FloatImm:
        if type(a) is E.FloatImm:
            return _folded(operator.sub, a, b)
        if _is_zero(b, 1):
            return a
    return E.Sub(a, b)


def multiply(a: Any, b: Any) -> E.PrimExpr:
    if type(b) is E.IntImm:
        if type(a) is E.IntImm:
            return _constant_of(a.value * b.value, a.dtype)
        if b.value == 1:
            return a
        if b.value == 0:
            return b
    elif type(a) is E.IntImm:
        if a.value == 1:
            return b
        if a.value == 0:
            return a
    elif type(b) is E.FloatImm:
        if type(a) is E.FloatImm:
            return _folded(operator.mul, a, b)
        if b.value == 1:
            return a
    elif type(a) is E.FloatImm and a.value == 1:
        return b
    return E.Mul(a, b)


def fold_of(key: Key) -> Callable[..., Any]:
    """The exact value of an operator for constants."""
    fold = OPERATORS[key].fold
    assert fold is not None
    return fold


def _division(node: type[E.BinaryExpr], by_one: Builder) -> Builder:
    """The builder of a division of integers, or its remainder; zero gives zero."""
    compute = fold_of(node)

    def build(a: Any, b: Any) -> E.PrimExpr:
        if type(b) is E.IntImm:
            if b.value == 0:
                raise DiagnosticError("Division by zero")
            if type(a) is E.IntImm:
                return _constant_of(compute(a.value, b.value), a.dtype)
            if b.value == 1:
                return by_one(a, b)
        elif type(a) is E.IntImm and a.value == 0:
            return a
        return node(a, b)

    return build


def _dividend(a: Any, b: Any) -> E.PrimExpr:
    return a


def _zero(a: Any, b: Any) -> E.PrimExpr:
    return _constant_of(0, b.dtype)


floordiv = _division(E.FloorDiv, _dividend)
floormod = _division(E.FloorMod, _zero)
truncdiv = _division(E.Div, _dividend)
truncmod = _division(E.Mod, _zero)


def _extremum(node: type[E.BinaryExpr]) -> Builder:
    choose = fold_of(node)

    def build(a: Any, b: Any) -> E.PrimExpr:
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return _folded(choose, a, b)
        return a if a is b else node(a, b)

    return build


minimum, maximum = _extremum(E.Min), _extremum(E.Max)


def _comparison(node: type[E.ComparisonExpr]) -> Builder:
    test = fold_of(node)

    def build(a: Any, b: Any) -> E.PrimExpr:
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return _constant_of(int(test(value_of(a), value_of(b))), "bool")
        return node(a, b)

    return build


equal, not_equal = _comparison(E.EQ), _comparison(E.NE)
less, less_equal = _comparison(E.LT), _comparison(E.LE)
greater, greater_equal = _comparison(E.GT), _comparison(E.GE)


def logical_and(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(a) is E.IntImm:
        return b if a.value else a
    if type(b) is E.IntImm:
        return a if b.value else b
    return E.And(a, b)


def logical_or(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if type(a) is E.IntImm:
        return a if a.value else b
    if type(b) is E.IntImm:
        return b if b.value else a
    return E.Or(a, b)


def logical_not(a: E.PrimExpr) -> E.PrimExpr:
    return _constant_of(int(not a.value), "bool") if type(a) is E.IntImm else E.Not(a)


BUILDERS: dict[type, Builder] = {
    E.Add: add, E.Sub: subtract, E.Mul: multiply, E.Div: truncdiv, E.Mod: truncmod,
    E.FloorDiv: floordiv, E.FloorMod: floormod, E.Min: minimum, E.Max: maximum, E.EQ: equal,
    E.NE: not_equal, E.LT: less, E.LE: less_equal, E.GT: greater, E.GE: greater_equal,
    E.And: logical_and, E.Or: logical_or,
}  # fmt: skip
"""What builds a binary operator."""


def select(condition: E.PrimExpr, true_value: E.PrimExpr, false_value: E.PrimExpr) -> E.PrimExpr:
    if type(condition) is E.IntImm:
        return true_value if condition.value else false_value
    return E.Select(condition, true_value, false_value)
