"""What the constraints of an analyzer say of a condition: that it holds, that it does not, or more
than the condition itself (`a >= b` is `a == b` where `a <= b` is known)."""

from __future__ import annotations

from math import inf
from typing import Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type
from mlcweb.arith.rules_comparison import FALSE, TRUE, negation
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir.folding import add, equal, less, subtract
from mlcweb.tir.operators import operator_name

_CONDITIONS = (E.Var, E.EQ, E.NE, E.LT, E.LE, E.Not, E.And, E.Or, E.Call)


def without_hint(condition: E.PrimExpr) -> E.PrimExpr:
    """A condition without the `likely` around it."""
    if isinstance(condition, E.Call) and operator_name(condition) == "likely":
        return condition.args[0]
    return condition


def under_constraints(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    """A simple expression as the constraints have it; itself where they say nothing of it."""
    if not isinstance(expression, _CONDITIONS) or expression.dtype != "bool":
        return expression
    condition = without_hint(expression)
    opposite = negation(condition)
    for constraint in analyzer.constraints:
        if same_expression(condition, constraint):
            return TRUE
        if same_expression(opposite, constraint) or same_expression(
            condition, negation(constraint)
        ):
            return FALSE
    if isinstance(condition, (E.EQ, E.NE, E.LT, E.LE)) and is_index_type(condition.a.dtype):
        return _comparison(condition, expression, analyzer)
    return expression


def _comparison(condition: Any, expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    differences = _Differences(analyzer)
    if differences.prove(condition):
        return TRUE
    if differences.prove(negation(condition)):
        return FALSE
    for constraint in analyzer.constraints:
        other = _under_comparison(condition, constraint)
        if other is not None:
            return other
    return expression


def _under_comparison(condition: Any, constraint: Any) -> E.PrimExpr | None:
    """What a comparison is where one of the same operands is known; None where it is itself."""
    if not isinstance(constraint, (E.EQ, E.NE, E.LT, E.LE)):
        return None
    a, b = condition.a, condition.b
    forward = same_expression(a, constraint.a) and same_expression(b, constraint.b)
    backward = same_expression(a, constraint.b) and same_expression(b, constraint.a)
    if isinstance(constraint, E.LT) and (forward or backward):
        # The opposite, b <= a, has been refuted already.
        return {E.LE: TRUE, E.NE: TRUE, E.EQ: FALSE, E.LT: FALSE}[type(condition)]
    if isinstance(constraint, E.EQ) and (forward or backward):
        return FALSE if isinstance(condition, (E.LT, E.NE)) else TRUE
    if isinstance(condition, E.LE) and isinstance(constraint, E.NE) and (forward or backward):
        return less(a, b)
    if isinstance(condition, E.LE) and isinstance(constraint, E.LE) and backward:
        return equal(b, a) if isinstance(a, E.IntImm) else equal(a, b)
    if isinstance(condition, E.NE) and isinstance(constraint, E.LE) and (forward or backward):
        return less(constraint.a, constraint.b)
    return None


class _Differences:
    """Differences of two terms that constraints bound from above. Where the analyzer chains
    inequalities, they are added up along paths from one term to another: x - y <= 2 and y - z <= 3
    make x - z <= 5 (Bellman and Ford)."""

    def __init__(self, analyzer: Facts) -> None:
        self.analyzer = analyzer
        self.edges: list[tuple[Any, Any, int]] = []
        self.different: list[tuple[Any, Any, int]] = []
        for constraint in analyzer.constraints:
            if isinstance(constraint, (E.EQ, E.LT, E.LE)) and is_index_type(constraint.a.dtype):
                self.bound(constraint.a, constraint.b, 1 if isinstance(constraint, E.LT) else 0)
                if isinstance(constraint, E.EQ):
                    self.bound(constraint.b, constraint.a, 0)
            elif isinstance(constraint, E.NE) and is_index_type(constraint.a.dtype):
                terms = self.difference(constraint.a, constraint.b)
                if terms is not None:
                    self.different.append(terms)
        if analyzer.chains_inequalities:
            for variable, domain in analyzer.symbolic_domains.items():
                if not is_index_type(variable.dtype):
                    continue
                self.bound(domain.min, variable, 0)
                self.bound(variable, add(domain.min, domain.extent), 1)

    def bound(self, a: E.PrimExpr, b: E.PrimExpr, margin: int) -> None:
        """Learn that a + margin <= b."""
        terms = self.difference(a, b)
        if terms is not None:
            x, y, constant = terms
            self.edges.append((x, y, -constant - margin))

    def difference(self, a: E.PrimExpr, b: E.PrimExpr) -> tuple[Any, Any, int] | None:
        """(x, y, c) where a - b is x - y + c; x and y are terms, or None for 0. Comparisons inside
        of a or b would ask for their own difference, and so on."""
        if any(isinstance(part, E.ComparisonExpr) for side in (a, b) for part in walk(side)):
            return None
        total = self.analyzer.canonical_sum(subtract(a, b))
        scales = dict(total.items())
        if sorted(scales.values()) not in ([-1, 1], [1], [-1]):
            return None
        ends = {scale: term for term, scale in scales.items()}
        return ends.get(1), ends.get(-1), total.constant

    def distance(self, x: Any, y: Any) -> float:
        """The least bound of x - y."""
        if not self.analyzer.chains_inequalities:
            direct = (length for start, end, length in self.edges if (start, end) == (x, y))
            return min(direct, default=0 if x == y else inf)
        reached: dict[Any, float] = {x: 0}
        for _ in self.edges:
            changed = False
            for start, end, length in self.edges:
                further = reached.get(start, inf) + length
                if further < reached.get(end, inf):
                    reached[end], changed = further, True
            if not changed:
                break
        return reached.get(y, inf)

    def prove(self, condition: Any) -> bool:
        """Whether a comparison follows."""
        terms = self.difference(condition.a, condition.b)
        if terms is None:
            return False
        x, y, constant = terms
        if isinstance(condition, (E.LT, E.LE)):
            return self.distance(x, y) + constant <= (-1 if isinstance(condition, E.LT) else 0)
        if isinstance(condition, E.EQ):
            return constant == 0 and self.is_same(x, y)
        if self.distance(x, y) + constant < 0 or self.distance(y, x) - constant < 0:
            return True
        if not self.analyzer.chains_inequalities:
            return False
        return constant == 0 and any(
            self.is_same(x, one) and self.is_same(y, other)
            for low, high, offset in self.different
            for one, other in ((low, high), (high, low))
            if offset == 0
        )

    def is_same(self, x: Any, y: Any) -> bool:
        """Whether two terms are equal."""
        return x == y or (self.distance(x, y) <= 0 and self.distance(y, x) <= 0)
