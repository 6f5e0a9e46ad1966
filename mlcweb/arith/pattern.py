"""What a condition or an index says of single variables: coefficients, clips and bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlcweb.arith.analyzer import Analyzer, conjuncts
from mlcweb.arith.int_set import Domains, IntervalSet, IntSet, eval_set, plain_sets
from mlcweb.arith.interval import operand_pair
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    const,
    convert,
    floordiv,
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
        linear = linear_in(base, variable)
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
    simple = (analyzer.simplify(part) for part in conjuncts(convert(expr)))
    for part in (each for whole in simple for each in conjuncts(whole)):
        used = [variable for variable in var_list if uses(part, variable)]
        difference = _not_negative(part)
        if difference is None or len(used) != 1:
            return []
        linear = linear_in(difference, used[0])
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
) -> IntervalSet:
    """The values of a variable with which a comparison holds, whatever the variables of
    `relax_map` are; `hint_map` says what is known of others. Nothing where the variable does not
    stand once in a comparison, in sums, products and quotients by constants."""
    hints, relaxed = plain_sets(hint_map), plain_sets(relax_map)
    deduction = _deduction(var, convert(cond), {**hints, **relaxed}, relaxed)
    if deduction is None or not deduction.reach(var):
        return IntervalSet.nothing()
    value = deduction.value
    if deduction.order == 0:
        return IntervalSet(value, value)
    return IntervalSet(value, None) if deduction.order > 0 else IntervalSet(None, value)


def _deduction(
    var: E.Var, condition: E.PrimExpr, known: Domains, relaxed: Domains
) -> _Deduction | None:
    order = _ORDERS.get(type(condition))
    if order is None or sum(node is var for node in walk(condition)) != 1:
        return None
    a, b = operand_pair(condition)
    if not uses(a, var):
        a, b, order = b, a, (-order[0], -order[1])
    return _Deduction(a, b + order[1], order[0], known, relaxed)


_ORDERS: dict[type, tuple[int, int]] = {
    E.LT: (-1, -1),
    E.LE: (-1, 0),
    E.GT: (1, 1),
    E.GE: (1, 0),
    E.EQ: (0, 0),
}
"""The sign of an order, and what its right side lacks for equality to satisfy it."""


class _Deduction:
    """What is known of one side of a comparison: that it is at least a value, at most (`order` -1),
    or equal (0); brought nearer to a variable in it step by step."""

    def __init__(
        self, side: E.PrimExpr, value: E.PrimExpr, order: int, known: Domains, relaxed: Domains
    ) -> None:
        self.side, self.order, self.known, self.relaxed = side, order, known, relaxed
        self.analyzer = Analyzer()
        self.value = value

    def reach(self, var: E.Var) -> bool:
        """Take operations off the side until the variable is left; whether that can be done."""
        while self.relax():
            if self.side is var:
                return True
            step = _STEPS.get(type(self.side))
            if step is None:
                return False
            first = uses(self.side.a, var)  # type: ignore[attr-defined]
            if not step(self, first):
                return False
        return False

    def relax(self) -> bool:
        """Have the value hold for all values of the variables that are relaxed."""
        values = eval_set(self.value, self.relaxed, self.analyzer)
        low, high = values
        value = high if self.order > 0 else low
        if value is None or (self.order == 0 and not values.is_point):
            return False
        self.value = self.analyzer.simplify(value)
        return True

    def add(self, first: bool) -> bool:
        a, b = operand_pair(self.side)
        self.side, self.value = (a, self.value - b) if first else (b, self.value - a)
        return True

    def subtract(self, first: bool) -> bool:
        a, b = operand_pair(self.side)
        if first:
            self.side, self.value = a, self.value + b
        else:
            self.side, self.value, self.order = b, a - self.value, -self.order
        return True

    def multiply(self, first: bool) -> bool:
        a, b = operand_pair(self.side)
        self.side, factor = (a, b) if first else (b, a)
        sign = self.sign(factor)
        if sign == 0 or any(uses(factor, variable) for variable in self.relaxed):
            return False
        self.order *= sign
        value, divisor = self.value, factor
        self.value = floordiv(value, divisor)
        if not self.analyzer.can_prove_multiple(value, divisor):
            if self.order == 0:
                return False
            self.value = self.value + (1 if self.order > 0 else 0)
        return True

    def sign(self, factor: E.PrimExpr) -> int:
        """1 or -1 for a factor that is always positive, or negative; else 0."""
        low, high = eval_set(factor, self.known, self.analyzer)
        if low is not None and self.analyzer.can_prove(low > 0):
            return 1
        return -1 if high is not None and self.analyzer.can_prove(high < 0) else 0

    def floordiv(self, first: bool) -> bool:
        """x // c >= v is x >= v * c, and x // c <= v is x <= v * c + c - 1, for positive c."""
        a, b = operand_pair(self.side)
        if not first or not isinstance(b, E.IntImm) or b.value == 0 or self.order == 0:
            return False
        sign = 1 if b.value > 0 else -1
        reached = self.value * b
        self.value = reached if self.order > 0 else reached + b - sign
        self.side, self.order = a, self.order * sign
        return True


_STEPS: dict[type, Callable[[_Deduction, bool], bool]] = {
    E.Add: _Deduction.add,
    E.Sub: _Deduction.subtract,
    E.Mul: _Deduction.multiply,
    E.FloorDiv: _Deduction.floordiv,
}


def _not_negative(condition: E.PrimExpr) -> E.PrimExpr | None:
    """What is at least 0 where a comparison holds (0 of an equality); None of other conditions."""
    if isinstance(condition, E.LT):
        return condition.b - condition.a - 1
    if isinstance(condition, E.LE):
        return condition.b - condition.a
    if isinstance(condition, E.GT):
        return condition.a - condition.b - 1
    return condition.a - condition.b if isinstance(condition, (E.GE, E.EQ)) else None


def linear_in(expression: E.PrimExpr, variable: E.Var) -> Linear | None:
    """`expression` as coefficient * variable + base; None where it is not linear."""
    if expression is variable:
        return const(1, variable.dtype), const(0, variable.dtype)
    if not isinstance(expression, (E.Add, E.Sub, E.Mul)):
        return None if uses(expression, variable) else (const(0, variable.dtype), expression)
    a, b = linear_in(expression.a, variable), linear_in(expression.b, variable)
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
