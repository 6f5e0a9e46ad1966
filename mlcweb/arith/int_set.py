"""Sets of integers between two expressions, and how an index moves when its variables do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from mlcweb.arith.bounds import bound_of_type
from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import ConstIntBound, is_index_type, may_wrap, operand_pair
from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    add,
    const,
    convert,
    floordiv,
    is_const_int,
    maximum,
    minimum,
    multiply,
    subtract,
    truncdiv,
)  # fmt: skip
from mlcweb.tir.buffer import Range
from mlcweb.tir.intrinsics import BUILDERS
from mlcweb.tir.operators import Key, key_of
from mlcweb.tir.substitute import uses, uses_any


class IntSet(NamedTuple):
    """The integers in [min_value, max_value]; an end that is None is infinite."""

    min_value: E.PrimExpr | None
    max_value: E.PrimExpr | None

    @staticmethod
    def point(value: E.PrimExpr) -> IntSet:
        """One integer."""
        return IntSet(value, value)

    @staticmethod
    def single_point(point: Any) -> IntSet:
        """One integer, under TVM's name."""
        return IntSet.point(convert(point))

    @staticmethod
    def vector(vec: E.PrimExpr) -> IntSet:
        """What holds the lanes of a vector."""
        if not isinstance(vec, E.Ramp):
            return IntSet.point(vec.value if isinstance(vec, E.Broadcast) else vec)
        last = add(vec.base, multiply(vec.stride, vec.lanes - 1))
        return IntSet(vec.base, last)

    def is_nothing(self) -> bool:
        """Whether the set is known to be empty."""
        low, high = self
        if not (isinstance(low, E.IntImm) and isinstance(high, E.IntImm)):
            return low is _POS_INF and high is _NEG_INF
        return low.value > high.value

    def is_everything(self) -> bool:
        """Whether both ends are infinite."""
        return self[0] is None and self[1] is None

    @staticmethod
    def from_range(domain: Range) -> IntSet:
        """The integers of a range."""
        return IntSet.from_min_extent(domain.min, domain.extent)

    @staticmethod
    def from_min_extent(low: E.PrimExpr, extent: E.PrimExpr) -> IntSet:
        """`extent` integers from `low` on."""
        if isinstance(extent, E.IntImm) and extent.value == 1:
            return IntSet.point(low)
        return IntSet(low, subtract(add(low, extent), const(1, low.dtype)))

    @property
    def is_point(self) -> bool:
        return self[0] is not None and self[0] is self[1]

    def cover_range(self, limit: Range, analyzer: Facts) -> Range:
        """The set as a range; `limit` where an end is infinite."""
        low, high = self
        if low is None or high is None:
            return limit
        if low is high:
            return Range(low, const(1, low.dtype))
        return Range(low, analyzer.simplify(subtract(add(high, const(1, high.dtype)), low)))


_NEG_INF, _POS_INF = E.Var("neg_inf", "handle"), E.Var("pos_inf", "handle")


def neg_inf() -> E.Var:
    """The end of an `IntervalSet` that has no least integer."""
    return _NEG_INF


def pos_inf() -> E.Var:
    """The end of an `IntervalSet` that has no greatest integer."""
    return _POS_INF


def is_infinite(value: Any) -> bool:
    """Whether it is an infinite end of an `IntervalSet`."""
    return value is _NEG_INF or value is _POS_INF


class IntervalSet(IntSet):
    """An `IntSet` as programs write and read it: its ends may be given as numbers, and infinite
    ones are `neg_inf()` and `pos_inf()`. As a pair it is what `IntSet` is."""

    def __new__(cls, min_value: Any, max_value: Any) -> IntervalSet:
        low = None if min_value is None or min_value is _NEG_INF else convert(min_value)
        high = None if max_value is None or max_value is _POS_INF else convert(max_value)
        return super().__new__(cls, low, high)

    @property
    def min_value(self) -> E.PrimExpr:  # type: ignore[override]
        low = self[0]
        return _NEG_INF if low is None else low

    @property
    def max_value(self) -> E.PrimExpr:  # type: ignore[override]
        high = self[1]
        return _POS_INF if high is None else high

    @staticmethod
    def nothing() -> IntervalSet:
        """The empty set."""
        return IntervalSet(_POS_INF, _NEG_INF)


EVERYTHING = IntSet(None, None)

Domains = Mapping[E.Var, "Range | IntSet"]


def plain_sets(domains: Domains) -> Domains:
    """Domains as programs give them, with None for the infinite ends of their sets."""
    return {
        variable: IntSet(*domain) if isinstance(domain, IntervalSet) else domain
        for variable, domain in domains.items()
    }


def union(sets: Iterable[IntSet], analyzer: Facts) -> IntSet:
    """The smallest interval that holds all the sets (at least one)."""
    result: IntSet | None = None
    for item in sets:
        result = item if result is None else _hull(result, item, analyzer)
    if result is None:
        raise ValueError("the union of no sets has no ends")
    return result


def _hull(a: IntSet, b: IntSet, analyzer: Facts) -> IntSet:
    return _interval(
        _both(minimum, a.min_value, b.min_value),
        _both(maximum, a.max_value, b.max_value),
        analyzer,
    )


def intersect(a: IntSet, b: IntSet, analyzer: Facts) -> IntSet:
    """The integers of both sets."""
    return _interval(
        _either(maximum, a.min_value, b.min_value),
        _either(minimum, a.max_value, b.max_value),
        analyzer,
    )


def _interval(low: E.PrimExpr | None, high: E.PrimExpr | None, analyzer: Facts) -> IntSet:
    """The set with simplified ends; a point where they are the same."""
    low = None if low is None else analyzer.simplify(low)
    high = None if high is None else analyzer.simplify(high)
    if low is not None and high is not None and same_expression(low, high):
        return IntSet.point(low)
    return IntSet(low, high)


def eval_set(expression: E.PrimExpr, domains: Domains, analyzer: Facts) -> IntSet:
    """The values of an expression while the variables of `domains` run through their sets.

    The ends may mention the other variables. The result can be larger than the set of values, never
    smaller.
    """
    try:
        return _interval(*_Evaluator(domains, analyzer).eval(expression), analyzer)
    except TOO_DEEP:
        raise nests_too_deep("analyzed") from None


def eval_range(domain: Range, domains: Domains, analyzer: Facts) -> IntSet:
    """The union of a range over the values of the variables in `domains`."""
    low = eval_set(domain.min, domains, analyzer)
    if is_const_int(domain.extent, 1):
        return low
    last = subtract(add(domain.min, domain.extent), const(1, domain.min.dtype))
    if not isinstance(domain.extent, E.IntImm):
        last = analyzer.simplify(last)  # Of a + (b - a), a goes.
    high = eval_set(last, domains, analyzer)
    return _interval(low.min_value, high.max_value, analyzer)


def upper_limits(expression: E.PrimExpr, analyzer: Facts) -> Iterator[E.PrimExpr]:
    """Limits that the expression never exceeds, one after another with fewer variables: each
    variable with a symbolic domain is replaced by an end of it, the last bound first."""
    for variable, domain in reversed(analyzer.symbolic_domains.items()):
        if uses(expression, variable):
            highest = eval_set(expression, {variable: domain}, analyzer).max_value
            if highest is None:
                return
            expression = highest
            yield expression


class _Evaluator:
    """Interval arithmetic with symbolic ends."""

    def __init__(self, domains: Domains, analyzer: Facts) -> None:
        self.domains = domains
        self.analyzer = analyzer
        self.sets: dict[E.Var, IntSet] = {}
        """Those of the variables met so far."""

    def eval(self, expression: E.PrimExpr) -> IntSet:
        rule = _RULES.get(key_of(expression))
        if rule is None:
            moves = uses_any(expression, self.domains)
            return EVERYTHING if moves else IntSet.point(expression)
        values = rule(self, expression)
        if values[0] is not values[1] and may_wrap(expression):  # a point is exact
            return _all_of_type(expression.dtype)
        return values

    def ends_of(self, domain: Range) -> IntSet:
        low, high = IntSet.from_range(domain)
        if isinstance(domain.min, E.IntImm) or isinstance(domain.extent, E.IntImm) or high is None:
            return IntSet(low, high)
        return IntSet(low, self.analyzer.simplify(high))  # Of a + (b - a), a goes.

    def variable(self, variable: E.Var) -> IntSet:
        if variable in self.sets:
            return self.sets[variable]
        domain = self.domains.get(variable)
        if domain is None:
            return IntSet.point(variable)
        if isinstance(domain, Range):
            domain = self.ends_of(domain)
        # The ends of a domain may mention other variables that move; in its own ends it stays.
        self.sets[variable] = domain
        low = None if domain.min_value is None else self.eval(domain.min_value).min_value
        if domain.is_point and low is domain.min_value:
            high = low
        else:
            high = None if domain.max_value is None else self.eval(domain.max_value).max_value
        self.sets[variable] = IntSet(low, high)
        return self.sets[variable]

    def binary(self, expression: Any) -> IntSet:
        a, b = self.eval(expression.a), self.eval(expression.b)
        if not (a.is_point and b.is_point):
            return _BINARY[type(expression)](self, a, b)
        if a.min_value is expression.a and b.min_value is expression.b:
            return IntSet.point(expression)
        return IntSet.point(BUILDERS[type(expression)](a.min_value, b.min_value))

    def add(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(_both(add, a.min_value, b.min_value), _both(add, a.max_value, b.max_value))

    def subtract(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(
            _both(subtract, a.min_value, b.max_value), _both(subtract, a.max_value, b.min_value)
        )

    def multiply(self, a: IntSet, b: IntSet) -> IntSet:
        if a.is_point:
            a, b = b, a
        if not b.is_point or b.min_value is None:
            return EVERYTHING
        factor = b.min_value
        bound = self.analyzer.const_int_bound(factor)
        low, high = _both(multiply, a.min_value, factor), _both(multiply, a.max_value, factor)
        if bound.min_value >= 0:
            return IntSet(low, high)
        return IntSet(high, low) if bound.max_value <= 0 else EVERYTHING

    def floordiv(self, a: IntSet, b: IntSet) -> IntSet:
        if not b.is_point or b.min_value is None:
            return EVERYTHING
        divisor = b.min_value
        bound = self.analyzer.const_int_bound(divisor)
        low, high = a
        if bound.max_value < 0:
            low, high = high, low
        elif bound.min_value <= 0:
            return EVERYTHING
        return IntSet(_both(floordiv, low, divisor), _both(floordiv, high, divisor))

    def truncdiv(self, a: IntSet, b: IntSet) -> IntSet:
        if not b.is_point or b.min_value is None:
            return EVERYTHING
        if self.analyzer.const_int_bound(b.min_value).min_value <= 0:
            return EVERYTHING
        return IntSet(*(_both(truncdiv, end, b.min_value) for end in a))

    def truncmod(self, a: IntSet, b: IntSet) -> IntSet:
        """Nothing is divided by 0, and the remainder has the sign of what is divided."""
        divisor = b.min_value
        if not b.is_point or divisor is None:
            return EVERYTHING
        if self.analyzer.const_int_bound(divisor).min_value <= 0:
            return EVERYTHING
        last = subtract(divisor, const(1, divisor.dtype))
        zero = const(0, divisor.dtype)
        low, high = a
        if low is not None and self.analyzer.const_int_bound(low).min_value >= 0:
            return IntSet(zero, last)
        if high is not None and self.analyzer.const_int_bound(high).max_value <= 0:
            return IntSet(subtract(zero, last), zero)
        return IntSet(subtract(zero, last), last)

    def floormod(self, a: IntSet, b: IntSet) -> IntSet:
        divisor = b.min_value
        if not b.is_point or divisor is None:
            return EVERYTHING
        if self.analyzer.const_int_bound(divisor).min_value <= 0:
            return EVERYTHING
        low, high = a
        if low is not None and high is not None:
            quotient = self.analyzer.simplify(floordiv(low, divisor))
            if self.analyzer.can_prove_equal(quotient, floordiv(high, divisor)):
                shift = multiply(quotient, divisor)
                return IntSet(subtract(low, shift), subtract(high, shift))
        zero = const(0, divisor.dtype)
        return IntSet(zero, subtract(divisor, const(1, divisor.dtype)))

    def minimum(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(
            _both(minimum, a.min_value, b.min_value), _either(minimum, a.max_value, b.max_value)
        )

    def maximum(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(
            _either(maximum, a.min_value, b.min_value), _both(maximum, a.max_value, b.max_value)
        )

    def choice(self, expression: E.PrimExpr) -> IntSet:
        if not uses_any(expression, self.domains):
            return IntSet.point(expression)
        return union(map(self.eval, operand_pair(expression)), self.analyzer)

    def cast(self, expression: E.Cast) -> IntSet:
        value = self.eval(expression.value)
        low, high = value
        if low is expression.value and value.is_point:
            return IntSet.point(expression)
        if value.is_point and low is not None:
            return IntSet.point(low.astype(expression.dtype))
        dtype, source = expression.dtype, expression.value.dtype
        if not (is_index_type(dtype) and is_index_type(source)):
            if low is None or high is None:
                low, high = _all_of_type(source)
            if not self.are_within(IntSet(low, high), bound_of_type(dtype)):
                return _all_of_type(dtype)
        return IntSet(
            None if low is None else low.astype(dtype), None if high is None else high.astype(dtype)
        )

    def are_within(self, values: IntSet, limits: ConstIntBound) -> bool:
        """Whether constant bounds say that values lie in `limits`."""
        low, high = values
        if low is None or high is None:
            return False
        least, greatest = self.analyzer.const_int_bound(low), self.analyzer.const_int_bound(high)
        return limits.min_value <= least.min_value and greatest.max_value <= limits.max_value


def _all_of_type(dtype: str) -> IntSet:
    """What the values of a type can be; the ends of indices and of 64 bits are infinite."""
    if is_index_type(dtype):
        return EVERYTHING
    low, high = bound_of_type(dtype)
    return IntSet(
        None if low == -inf else const(int(low), dtype),
        None if high == inf else const(int(high), dtype),
    )


def _both(build: Any, a: E.PrimExpr | None, b: E.PrimExpr | None) -> E.PrimExpr | None:
    """An end made of two; infinite where one of them is."""
    return None if a is None or b is None else build(a, b)


def _either(build: Any, a: E.PrimExpr | None, b: E.PrimExpr | None) -> E.PrimExpr | None:
    """An end made of two, of which an infinite one does not matter."""
    if a is None or b is None:
        return b if a is None else a
    return build(a, b)


_BINARY: dict[type, Callable[[_Evaluator, IntSet, IntSet], IntSet]] = {
    E.Add: _Evaluator.add,
    E.Sub: _Evaluator.subtract,
    E.Mul: _Evaluator.multiply,
    E.FloorDiv: _Evaluator.floordiv,
    E.FloorMod: _Evaluator.floormod,
    E.Div: _Evaluator.truncdiv,
    E.Mod: _Evaluator.truncmod,
    E.Min: _Evaluator.minimum,
    E.Max: _Evaluator.maximum,
}
"""What an operation makes of two sets that are not both points."""

_RULES: dict[Key, Callable[[_Evaluator, Any], IntSet]] = {
    E.Var: _Evaluator.variable,
    E.IntImm: lambda evaluator, constant: IntSet.point(constant),
    **dict.fromkeys(_BINARY, _Evaluator.binary),
    E.Select: _Evaluator.choice,
    "if_then_else": _Evaluator.choice,
    E.Cast: _Evaluator.cast,
}
