"""Solving systems of linear inequalities in integers: `tvm.arith.solve_linear_inequalities`.

Variables are eliminated one after another (Fourier and Motzkin): each pair of a lower and an upper
bound of a variable is an inequality of those that are left. The bounds of a variable are so in
terms of the variables after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import gcd
from typing import NamedTuple

from mlcweb.arith.analyzer import Analyzer, conjuncts
from mlcweb.arith.linear_equations import IntConstraints, IntConstraintsTransform, Ranges
from mlcweb.arith.pattern import detect_linear_equation
from mlcweb.ir.errors import TVMError
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    add,
    const,
    convert,
    floordiv,
    less_equal,
    maximum,
    minimum,
    multiply,
    negate,
    subtract,
)
from mlcweb.tir.buffer import Range
from mlcweb.tir.substitute import substitute, variables_in


class _Inequality(NamedTuple):
    """`sum(factors[i] * variables[i]) + rest <= 0`."""

    factors: tuple[int, ...]
    rest: E.PrimExpr


def solve_linear_inequalities(
    equations: object,
    variables: Sequence[E.Var] | None = None,
    ranges: Ranges | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """Where the integer solutions of inequalities are.

    Args:
        equations: an inequality (`x + y <= 4`), an equation, or a list of them; those that are not
            linear become relations of the result.
        variables: what to solve for, each in terms of those after it; by default all there are.
        ranges: where the variables are.
        deskew_range: give the problem in variables whose ranges begin at 0, too.

    Returns:
        The range of each variable that is bounded on both sides, and the other conditions as
        relations: [False] where they contradict each other. With `deskew_range`, the constraints
        before and after, and the maps between their variables.

    Raises:
        TVMError: something given is no inequality.
    """
    several = equations if isinstance(equations, (list, tuple)) else [equations]
    relations = [part for one in several for part in conjuncts(convert(one))]
    if variables is None:
        named = {var for one in relations for var in variables_in(one)}
        variables = sorted(named, key=lambda var: var.name)
    source = IntConstraints(list(variables), dict(ranges or {}), relations)
    solved = _Elimination(source).solution()
    return _deskewed(source, solved) if deskew_range else solved


class _Elimination:
    def __init__(self, source: IntConstraints) -> None:
        self.source = source
        self.variables = list(source.variables)
        self.analyzer = Analyzer(
            {var: dom for var, dom in source.ranges.items() if var not in self.variables}
        )
        self.inequalities: dict[tuple[tuple[int, ...], str], _Inequality] = {}
        self.relations: list[E.PrimExpr] = []

    def solution(self) -> IntConstraints:
        for relation in self.source.relations:
            self.add_relation(relation)
        for var, domain in self.source.ranges.items():
            if var in self.variables:
                self.add(domain.min, var)
                self.add(var, self.simple(add(domain.min, subtract(domain.extent, 1))))
        ranges = {}
        for index, var in enumerate(self.variables):
            domain = self.eliminate(index, var)
            if domain is not None:
                ranges[var] = domain
        for inequality in self.inequalities.values():
            self.relations.append(less_equal(inequality.rest, const(0, inequality.rest.dtype)))
        return self.result(ranges)

    def result(self, ranges: Ranges) -> IntConstraints:
        simple = [self.simple(relation) for relation in self.relations]
        if any(isinstance(one, E.IntImm) and not one.value for one in simple):
            return IntConstraints(self.variables, {}, [const(False)])
        kept = [one for one in simple if not isinstance(one, E.IntImm)]
        return IntConstraints(self.variables, ranges, kept)

    def add_relation(self, relation: E.PrimExpr) -> None:
        if isinstance(relation, E.IntImm):
            self.relations.append(relation)
        elif isinstance(relation, (E.LE, E.LT)):
            self.add(relation.a, relation.b, strict=isinstance(relation, E.LT), whole=relation)
        elif isinstance(relation, (E.GE, E.GT)):
            self.add(relation.b, relation.a, strict=isinstance(relation, E.GT), whole=relation)
        elif isinstance(relation, E.EQ):
            self.add(relation.a, relation.b, whole=relation)
            self.add(relation.b, relation.a, whole=relation)
        else:
            raise TVMError(f"solve_linear_inequalities takes inequalities (a <= b), not {relation}")

    def add(
        self, a: E.PrimExpr, b: E.PrimExpr, strict: bool = False, whole: E.PrimExpr | None = None
    ) -> None:
        """Enter `a <= b`, or `a < b`; the whole relation stays where that is not linear."""
        difference = subtract(a, b)
        linear = detect_linear_equation(add(difference, int(strict)), self.variables)
        factors = [part.value for part in linear[:-1] if isinstance(part, E.IntImm)]
        if linear and len(factors) == len(self.variables):
            self.enter(factors, linear[-1])
        elif whole is not None:
            self.relations.append(whole)

    def enter(self, factors: Sequence[int], rest: E.PrimExpr) -> None:
        """Divided by the factors' common divisor, which keeps all integer solutions."""
        rest = self.simple(rest)
        divisor = gcd(*factors)
        if divisor > 1:
            rest = self.simple(negate(floordiv(negate(rest), const(divisor, rest.dtype))))
            factors = [factor // divisor for factor in factors]
        new = _Inequality(tuple(factors), rest)
        if not any(factors) and self.analyzer.can_prove(less_equal(rest, const(0, rest.dtype))):
            return
        self.inequalities[new.factors, str(rest)] = new

    def eliminate(self, index: int, var: E.Var) -> Range | None:
        """The range of a variable; what else is known of it becomes relations."""
        with_it = [one for one in self.inequalities.values() if one.factors[index]]
        above = [one for one in with_it if one.factors[index] > 0]
        below = [one for one in with_it if one.factors[index] < 0]
        for one in with_it:
            del self.inequalities[one.factors, str(one.rest)]
        for low in below:
            for high in above:
                self.combine(low, -low.factors[index], high, high.factors[index])
        lows = [self.bound(one, index, negative=True) for one in below]
        highs = [self.bound(one, index, negative=False) for one in above]
        if lows and highs:
            least, greatest = reduce(maximum, lows), reduce(minimum, highs)
            low = self.simple(least)
            return Range(low, self.simple(add(subtract(greatest, least), 1)))
        self.relations += [less_equal(bound, var) for bound in lows]
        self.relations += [less_equal(var, bound) for bound in highs]
        return None

    def combine(self, one: _Inequality, scale: int, other: _Inequality, times: int) -> None:
        """`times * one + scale * other`, which has the variable no more."""
        pairs = zip(one.factors, other.factors, strict=True)
        factors = [times * a + scale * b for a, b in pairs]
        self.enter(factors, add(multiply(one.rest, times), multiply(other.rest, scale)))

    def bound(self, inequality: _Inequality, index: int, negative: bool) -> E.PrimExpr:
        """What a variable is at most, or at least, in terms of the variables after it."""
        total = inequality.rest
        for var, factor in zip(self.variables, inequality.factors, strict=True):
            if factor and var is not self.variables[index]:
                total = add(total, multiply(var, const(factor, var.dtype)))
        scale = const(abs(inequality.factors[index]), total.dtype)
        if negative:
            return self.simple(negate(floordiv(negate(total), scale)))
        return self.simple(floordiv(negate(total), scale))

    def simple(self, expression: E.PrimExpr) -> E.PrimExpr:
        return self.analyzer.simplify(expression)


def _deskewed(source: IntConstraints, solved: IntConstraints) -> IntConstraintsTransform:
    """The same with variables that begin at 0; one of a single value is none any more."""
    analyzer = Analyzer()
    to_new: dict[E.Var, E.PrimExpr] = {}
    to_old: dict[E.Var, E.PrimExpr] = {}
    ranges: dict[E.Var, Range] = {}
    variables: list[E.Var] = []
    if solved.relations and isinstance(solved.relations[0], E.IntImm):
        nothing = IntConstraints([], {}, [const(False)])
        return IntConstraintsTransform(source, nothing, {}, {})
    for var in reversed(solved.variables):
        domain = solved.ranges.get(var)
        if domain is None:
            new = E.Var(var.name, var.dtype)
            to_new[var], to_old[new] = new, var
            variables.insert(0, new)
            continue
        low = analyzer.simplify(substitute(domain.min, to_new))
        extent = analyzer.simplify(substitute(domain.extent, to_new))
        if isinstance(extent, E.IntImm) and extent.value == 1:
            to_new[var] = low
            continue
        new = E.Var(var.name, var.dtype)
        variables.insert(0, new)
        ranges[new] = Range(const(0, var.dtype), extent)
        to_new[var] = analyzer.simplify(add(new, low))
        to_old[new] = analyzer.simplify(subtract(var, domain.min))
    relations = [analyzer.simplify(substitute(one, to_new)) for one in solved.relations]
    return IntConstraintsTransform(
        source, IntConstraints(variables, ranges, relations), to_new, to_old
    )
