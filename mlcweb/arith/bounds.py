"""The least and the greatest value that an integer expression can take."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from mlcweb.ir.op import Op
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer

Limit = int | float
"""An integer, or plus or minus infinity."""


class ConstIntBound(NamedTuple):
    """All values lie in [min_value, max_value]; an end may be infinite."""

    min_value: Limit
    max_value: Limit

    def intersect(self, other: ConstIntBound) -> ConstIntBound:
        return ConstIntBound(
            max(self.min_value, other.min_value), min(self.max_value, other.max_value)
        )

    def union(self, other: ConstIntBound) -> ConstIntBound:
        return ConstIntBound(
            min(self.min_value, other.min_value), max(self.max_value, other.max_value)
        )


EVERYTHING = ConstIntBound(-inf, inf)
TRUTH_VALUE = ConstIntBound(0, 1)
INDEX_TYPES = ("int32", "int64")
"""The types of loop variables and indices, whose arithmetic is taken never to overflow."""
_MAY_WRAP = frozenset((E.Add, E.Sub, E.Mul, E.FloorDiv, E.Div))


@cache
def bound_of_type(dtype: str) -> ConstIntBound:
    """The values of an integer type; those of 64 bits count as unlimited."""
    element = dtypes.element_of(dtype)
    if dtypes.is_bool(element):
        return TRUTH_VALUE
    if not dtypes.is_integer(element):
        return EVERYTHING
    if dtypes.bits(element) >= 64:
        return ConstIntBound(0, inf) if dtypes.kind(element) == "uint" else EVERYTHING
    return ConstIntBound(int(dtypes.min_value(element)), int(dtypes.max_value(element)))


def compute_bound(expression: E.PrimExpr, analyzer: Analyzer) -> ConstIntBound:
    """The bound of an expression, from those of its operands.

    Arithmetic of indices is taken never to overflow; that of other types wraps around.
    """
    cls = type(expression)
    rule = _RULES.get(cls)
    if rule is None:
        return bound_of_type(expression.dtype)
    bound = rule(expression, analyzer)
    if (bound[1] > 127 or bound[0] < 0) and cls in _MAY_WRAP:
        dtype = expression.dtype
        if dtype not in INDEX_TYPES and not _within(bound, bound_of_type(dtype)):
            return bound_of_type(dtype)
    return bound


def _times(a: Limit, b: Limit) -> Limit:
    return 0 if a == 0 or b == 0 else a * b


def _quotient(a: Limit, b: Limit) -> Limit:
    """`a // b` where either may be infinite."""
    if a in (inf, -inf):
        return a if b > 0 else -a
    if b in (inf, -inf):
        return 0 if (a >= 0) == (b > 0) else -1
    return a // b


def _operands(expression: Any, analyzer: Analyzer) -> tuple[ConstIntBound, ConstIntBound]:
    return analyzer.const_int_bound(expression.a), analyzer.const_int_bound(expression.b)


def _variable(expression: E.Var, analyzer: Analyzer) -> ConstIntBound:
    known = analyzer.bound_of_variable.get(expression)
    return bound_of_type(expression.dtype) if known is None else known


def _constant(expression: E.IntImm, analyzer: Analyzer) -> ConstIntBound:
    return ConstIntBound(expression.value, expression.value)


def _add(expression: E.Add, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    return ConstIntBound(a.min_value + b.min_value, a.max_value + b.max_value)


def _subtract(expression: E.Sub, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    return ConstIntBound(a.min_value - b.max_value, a.max_value - b.min_value)


def _multiply(expression: E.Mul, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    corners = [_times(x, y) for x in a for y in b]
    return ConstIntBound(min(corners), max(corners))


def _floordiv(expression: E.FloorDiv, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    if b.min_value > 0 or b.max_value < 0:
        divisors: list[Limit] = [b.min_value, b.max_value]
    else:
        divisors = [d for d in (b.min_value, -1, 1, b.max_value) if b.min_value <= d <= b.max_value]
        divisors = [d for d in divisors if d != 0]
    if not divisors:
        return EVERYTHING
    corners = [_quotient(x, y) for x in a for y in divisors]
    return ConstIntBound(min(corners), max(corners))


def _floormod(expression: E.FloorMod, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    if b.min_value <= 0:
        return bound_of_type(expression.dtype)
    if a.min_value >= 0 and a.max_value < b.min_value:
        return a
    if b.min_value == b.max_value:
        return _remainder_of_constant(expression, a, int(b.min_value), analyzer)
    highest = b.max_value - 1
    return ConstIntBound(0, min(a.max_value, highest) if a.min_value >= 0 else highest)


def _remainder_of_constant(
    expression: E.FloorMod, a: ConstIntBound, divisor: int, analyzer: Analyzer
) -> ConstIntBound:
    """The remainders of `divisor` that occur are spaced by what is known of the dividend."""
    if -inf < a.min_value and a.max_value < inf:
        quotient = a.min_value // divisor
        if quotient == a.max_value // divisor:
            shift = quotient * divisor
            return ConstIntBound(a.min_value - shift, a.max_value - shift)
    known = analyzer.modular_set(expression.a)
    step = gcd(known.coeff, divisor)
    lowest = known.base % step
    highest: Limit = divisor - step + lowest
    if a.min_value >= 0:
        highest = min(highest, a.max_value)
    return ConstIntBound(lowest, highest)


def _truncdiv(expression: E.Div, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    if not dtypes.is_integer(expression.dtype):
        return EVERYTHING
    if a.min_value >= 0 and b.min_value > 0:
        return _floordiv(expression, analyzer)  # type: ignore[arg-type]
    largest = max(abs(a.min_value), abs(a.max_value))
    return ConstIntBound(-largest, largest)


def _truncmod(expression: E.Mod, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    if b.min_value <= 0:
        return bound_of_type(expression.dtype)
    highest = b.max_value - 1
    lowest = 0 if a.min_value >= 0 else max(a.min_value, -highest)
    return ConstIntBound(lowest, 0 if a.max_value <= 0 else min(a.max_value, highest))


def _minimum(expression: E.Min, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    return ConstIntBound(min(a.min_value, b.min_value), min(a.max_value, b.max_value))


def _maximum(expression: E.Max, analyzer: Analyzer) -> ConstIntBound:
    a, b = _operands(expression, analyzer)
    return ConstIntBound(max(a.min_value, b.min_value), max(a.max_value, b.max_value))


def _select(expression: E.Select, analyzer: Analyzer) -> ConstIntBound:
    true_value = analyzer.const_int_bound(expression.true_value)
    return true_value.union(analyzer.const_int_bound(expression.false_value))


def _cast(expression: E.Cast, analyzer: Analyzer) -> ConstIntBound:
    of_type = bound_of_type(expression.dtype)
    if dtypes.is_float(expression.value.dtype):
        return of_type
    value = analyzer.const_int_bound(expression.value)
    if not _within(value, bound_of_type(expression.value.dtype)):
        value = bound_of_type(expression.value.dtype)
    return value if _within(value, of_type) else of_type


def _within(inner: ConstIntBound, outer: ConstIntBound) -> bool:
    return outer.min_value <= inner.min_value and inner.max_value <= outer.max_value


def _call(expression: E.Call, analyzer: Analyzer) -> ConstIntBound:
    rule = _CALL_RULES.get(expression.op.name) if isinstance(expression.op, Op) else None
    found = rule(expression.args, analyzer) if rule else None
    return found if found is not None else bound_of_type(expression.dtype)


def _chosen_branch(args: tuple[E.PrimExpr, ...], analyzer: Analyzer) -> ConstIntBound:
    return analyzer.const_int_bound(args[1]).union(analyzer.const_int_bound(args[2]))


def _shift_right(args: tuple[E.PrimExpr, ...], analyzer: Analyzer) -> ConstIntBound | None:
    value, amount = (analyzer.const_int_bound(arg) for arg in args)
    if not 0 <= amount.min_value <= amount.max_value < 64:
        return None
    divisors = [1 << int(amount.min_value), 1 << int(amount.max_value)]
    corners = [_quotient(x, y) for x in value for y in divisors]
    return ConstIntBound(min(corners), max(corners))


def _bitwise_and(args: tuple[E.PrimExpr, ...], analyzer: Analyzer) -> ConstIntBound | None:
    bounds = [analyzer.const_int_bound(arg) for arg in args]
    limits = [bound.max_value for bound in bounds if bound.min_value >= 0]
    return ConstIntBound(0, min(limits)) if limits else None


_CALL_RULES: dict[str, Callable[[tuple[E.PrimExpr, ...], Analyzer], ConstIntBound | None]] = {
    "tir.if_then_else": _chosen_branch,
    "tir.likely": lambda args, analyzer: analyzer.const_int_bound(args[0]),
    "tir.shift_right": _shift_right,
    "tir.bitwise_and": _bitwise_and,
}

_RULES: dict[type, Callable[[Any, Analyzer], ConstIntBound]] = {
    E.Var: _variable,
    E.IntImm: _constant,
    E.Add: _add,
    E.Sub: _subtract,
    E.Mul: _multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: _truncdiv,
    E.Mod: _truncmod,
    E.Min: _minimum,
    E.Max: _maximum,
    E.Select: _select,
    E.Cast: _cast,
    E.Call: _call,
}
