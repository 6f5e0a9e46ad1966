"""Interval arithmetic: between which values the result of an operation on integers lies.

The rules are exact: they say what an operation gives before its type is left. What then happens is
said once, too: a value outside of its type wraps around and may be any value of the type
(`in_type`), except that the arithmetic of indices is taken never to overflow (`may_wrap`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import Any, NamedTuple

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.operators import OPERATORS, Key, operands_of

Limit = int | float
"""An integer, or plus or minus infinity."""


class ConstIntBound(NamedTuple):
    """All values lie in [min_value, max_value]; an end may be infinite."""

    min_value: Limit
    max_value: Limit

    POS_INF = inf
    NEG_INF = -inf

    def intersect(self, other: ConstIntBound) -> ConstIntBound:
        return ConstIntBound(
            max(self.min_value, other.min_value), min(self.max_value, other.max_value)
        )

    def union(self, other: ConstIntBound) -> ConstIntBound:
        return ConstIntBound(
            min(self.min_value, other.min_value), max(self.max_value, other.max_value)
        )

    def is_within(self, other: ConstIntBound) -> bool:
        return other[0] <= self[0] and self[1] <= other[1]


Rule = Callable[[ConstIntBound, ConstIntBound], ConstIntBound | None]

EVERYTHING = ConstIntBound(-inf, inf)
INDEX_TYPES = ("int32", "int64")


def is_index_type(dtype: str) -> bool:
    """The types of loop variables and indices, whose arithmetic is taken never to overflow."""
    return dtype in INDEX_TYPES


@cache
def type_bound(dtype: str) -> ConstIntBound:
    """The values of an integer or boolean type (of a lane); everything where it is neither."""
    element = dtypes.element_of(dtype)
    if not (dtypes.is_integer(element) or dtypes.is_bool(element)):
        return EVERYTHING
    return ConstIntBound(int(dtypes.min_value(element)), int(dtypes.max_value(element)))


def in_type(exact: ConstIntBound, dtype: str) -> ConstIntBound:
    """Where values lie after they are brought into a type: where they lay if all of them fit, else
    anywhere in it."""
    whole = type_bound(dtype)
    return exact if whole[0] <= exact[0] and exact[1] <= whole[1] else whole


def may_wrap(expression: E.PrimExpr) -> bool:
    """Whether an operation may leave its type, as far as its kind tells: a division does where the
    least value is divided by -1."""
    operator = OPERATORS.get(type(expression))
    if operator is None or not operator.overflows or expression.dtype in INDEX_TYPES:
        return False
    divisor = expression.b if operator.divides else None  # type: ignore[attr-defined]
    return not isinstance(divisor, E.IntImm) or divisor.value == -1


def _times(a: Limit, b: Limit) -> Limit:
    return 0 if a == 0 or b == 0 else a * b


def _quotient(a: Limit, b: Limit) -> Limit:
    """`a // b` where either may be infinite."""
    if a in (inf, -inf):
        return a if b > 0 else -a
    if b in (inf, -inf):
        return 0 if (a >= 0) == (b > 0) else -1
    return a // b


def _multiply(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    corners = [_times(x, y) for x in a for y in b]
    return ConstIntBound(min(corners), max(corners))


def _truncated_quotient(a: Limit, b: Limit) -> Limit:
    """`a / b` towards zero, where either may be infinite."""
    quotient = _quotient(abs(a), abs(b))
    return quotient if (a >= 0) == (b > 0) else -quotient


def _divide(quotient: Callable[[Limit, Limit], Limit]) -> Rule:
    def rule(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound | None:
        # The divisors nearest to zero, which itself is none, give the largest quotients.
        divisors = [d for d in (b[0], -1, 1, b[1]) if d != 0 and b[0] <= d <= b[1]]
        corners = [quotient(x, y) for x in a for y in divisors]
        return ConstIntBound(min(corners), max(corners)) if corners else None

    return rule


def _floormod(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound | None:
    if b[0] < 0 or b[1] <= 0:
        # A remainder has the sign of its divisor.
        return ConstIntBound(min(b[0] + 1, 0), max(b[1] - 1, 0))
    if a[0] >= 0 and a[1] < b[0]:
        return a
    if b[0] == b[1] and -inf < a[0] and a[1] < inf:
        rounded = a[0] // b[0] * b[0]
        if a[1] < rounded + b[0]:
            return ConstIntBound(a[0] - rounded, a[1] - rounded)
    highest = b[1] - 1
    return ConstIntBound(0, min(a[1], highest) if a[0] >= 0 else highest)


def _truncmod(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound | None:
    highest = max(abs(b[0]), abs(b[1])) - 1
    smallest = b[0] if b[0] > 0 else -b[1]
    if -smallest < a[0] and a[1] < smallest:
        return a
    lowest = 0 if a[0] >= 0 else max(a[0], -highest)
    return ConstIntBound(lowest, 0 if a[1] <= 0 else min(a[1], highest))


_floordiv = _divide(_quotient)
_truncdiv = _divide(_truncated_quotient)


def _shift_right(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound | None:
    if not 0 <= b[0] <= b[1] < 64:
        return None
    return _floordiv(a, ConstIntBound(1 << int(b[0]), 1 << int(b[1])))


def _bitwise_and(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound | None:
    highest = [limits[1] for limits in (a, b) if limits[0] >= 0]
    return ConstIntBound(0, min(highest)) if highest else None


RULES: dict[Key, Rule] = {
    E.Add: lambda a, b: ConstIntBound(a[0] + b[0], a[1] + b[1]),
    E.Sub: lambda a, b: ConstIntBound(a[0] - b[1], a[1] - b[0]),
    E.Mul: _multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: _truncdiv,
    E.Mod: _truncmod,
    E.Min: lambda a, b: ConstIntBound(min(a[0], b[0]), min(a[1], b[1])),
    E.Max: lambda a, b: ConstIntBound(max(a[0], b[0]), max(a[1], b[1])),
    "shift_right": _shift_right,
    "bitwise_and": _bitwise_and,
    E.Select: ConstIntBound.union,
    "if_then_else": ConstIntBound.union,
}
"""The bound of an operation's exact result, from those of its `operand_pair`; None where it may be
any value of the type."""


def operand_pair(expression: Any) -> Sequence[E.PrimExpr]:
    """The operands of a binary operation, or the two values of a choice."""
    if isinstance(expression, E.BinaryExpr):
        return expression.a, expression.b
    return operands_of(expression)[-2:]


class ValueRanges:
    """Bounds of integer expressions as a machine computes them: in every type, that of indices
    included, a result that does not fit wraps around.

    `ranges` are the bounds of variables; those that it does not hold may have any value.
    """

    def __init__(self) -> None:
        self.ranges: dict[E.PrimExpr, ConstIntBound] = {}
        self._intervals: dict[E.PrimExpr, ConstIntBound] = {}

    def bind(self, var: E.Var, low: Limit, high: Limit) -> None:
        """Say between which values (both included) a variable lies."""
        self.ranges[var] = ConstIntBound(low, high)
        self._intervals.clear()

    def interval(self, expression: E.PrimExpr) -> ConstIntBound:
        """Bounds of the value."""
        interval = self._intervals.get(expression)
        if interval is None:
            interval = in_type(self.exact(expression), expression.dtype)
            self._intervals[expression] = interval
        return interval

    def exact(self, expression: E.PrimExpr) -> ConstIntBound:
        """Bounds of the result before it is wrapped into its type."""
        if isinstance(expression, E.IntImm):
            return ConstIntBound(expression.value, expression.value)
        bound = self.ranges.get(expression)
        if isinstance(expression, E.Cast) and not dtypes.is_float(expression.value.dtype):
            bound = self.interval(expression.value)
        elif isinstance(expression, E.BinaryExpr):
            a, b = self.interval(expression.a), self.interval(expression.b)
            bound = RULES[type(expression)](a, b)
        return bound or type_bound(expression.dtype)

    def in_bounds(self, buffer: Buffer, indices: Sequence[E.PrimExpr]) -> bool:
        """Whether indices are known to name an element of a buffer."""
        for index, extent in zip(indices, buffer.shape, strict=True):
            low, high = self.interval(index)
            if not isinstance(extent, E.IntImm) or low < 0 or high >= extent.value:
                return False
        return True

    def can_overflow(self, expression: E.PrimExpr) -> bool:
        """Whether the exact result of an operation may lie outside its type; of what has no rule
        here, nothing is known."""
        if not isinstance(expression, E.BinaryExpr):
            return True
        return not self.exact(expression).is_within(type_bound(expression.dtype))
