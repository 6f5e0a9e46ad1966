"""Solving systems of linear equations in integers: `tvm.arith.solve_linear_equations`.

The equations are `A x = b`, `A` a matrix of constants, `b` of whatever the variables are not in.
Operations on columns that have an inverse in integers make `A` triangular: with `x = U y`, the
first elements of `y` follow one after another from `b`, and the others may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.pattern import detect_linear_equation
from mlcweb.ir.errors import TVMError
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    add,
    const,
    convert,
    equal,
    floordiv,
    floormod,
    less,
    less_equal,
    maximum,
    minimum,
    multiply,
    negate,
    subtract,
)
from mlcweb.tir.buffer import Range
from mlcweb.tir.substitute import variables_in

Ranges = Mapping[E.Var, Range]


@dataclass(frozen=True, slots=True, eq=False)
class IntConstraints:
    """Integer variables, the ranges they are known to be in, and conditions that hold."""

    variables: Sequence[E.Var]
    ranges: Ranges
    relations: Sequence[E.PrimExpr]


@dataclass(frozen=True, slots=True, eq=False)
class IntConstraintsTransform:
    """Constraints and others of the same meaning in fewer variables, and the maps between them."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: Mapping[E.Var, E.PrimExpr]
    dst_to_src: Mapping[E.Var, E.PrimExpr]


def solve_linear_equations(
    equations: Any, variables: Sequence[E.Var] | None = None, ranges: Ranges | None = None
) -> IntConstraintsTransform:
    """All integer solutions of equations, by as few new variables as there are choices left.

    Args:
        equations: an equation (`x + y == 4`, or `T.EQ`) or a list of them; those that are not
            linear become relations of the result.
        variables: what to solve for; by default all that the equations have.
        ranges: where the variables are.

    Returns:
        The new variables are called n0, n1, …, their ranges follow from those given. Without a
        solution the relations are [False] and there are no variables.

    Raises:
        TVMError: something given is no equation.
    """
    items = equations if isinstance(equations, (list, tuple)) else [equations]
    relations = [convert(equation) for equation in items]
    if variables is None:
        variables = [*dict.fromkeys(var for one in relations for var in _in_order(one))]
    source = IntConstraints(list(variables), dict(ranges or {}), relations)
    return _System(source).solution()


def _in_order(expression: E.PrimExpr) -> list[E.Var]:
    return sorted(variables_in(expression), key=lambda var: var.name)


class _System:
    """`columns` has for each element of `y` the column of `U`, `inverse` the row of its inverse."""

    def __init__(self, source: IntConstraints) -> None:
        self.source = source
        self.analyzer = Analyzer(source.ranges)
        size = len(source.variables)
        self.columns = [[int(i == j) for i in range(size)] for j in range(size)]
        self.inverse = [[int(i == j) for i in range(size)] for j in range(size)]
        self.solved: list[E.PrimExpr] = []
        self.relations: list[E.PrimExpr] = []

    def solution(self) -> IntConstraintsTransform:
        for equation in self.source.relations:
            self.add(equation)
        variables = self.source.variables
        dtypes = [var.dtype for var in variables]
        count = len(variables) - len(self.solved)
        dtype = dtypes[0] if dtypes else "int32"
        new = [E.Var(f"n{i}", dtype) for i in range(count)]
        values = [*self.solved, *new]
        to_new = {
            var: self.simple(_scaled_sum([column[i] for column in self.columns], values, var.dtype))
            for i, var in enumerate(variables)
        }
        to_old = {
            var: self.simple(_scaled_sum(row, variables, dtype))
            for var, row in zip(new, self.inverse[len(self.solved) :], strict=True)
        }
        ranges = self.ranges_of(new, to_new)
        relations = self.relations_of(to_new, ranges)
        if any(_is(relation, False) for relation in relations):
            nothing = IntConstraints([], {}, [const(False)])
            return IntConstraintsTransform(self.source, nothing, {}, {})
        target = IntConstraints(new, ranges, relations)
        return IntConstraintsTransform(self.source, target, to_new, to_old)

    def add(self, equation: E.PrimExpr) -> None:
        """Solve one more equation for an element of `y`."""
        if isinstance(equation, E.IntImm):
            self.relations.append(equation)
            return
        if not isinstance(equation, E.EQ):
            raise TVMError(f"solve_linear_equations takes equations (a == b), not {equation}")
        linear = detect_linear_equation(
            subtract(equation.a, equation.b), list(self.source.variables)
        )
        numbers = [part.value for part in linear[:-1] if isinstance(part, E.IntImm)]
        if not linear or len(numbers) < len(linear) - 1:
            self.relations.append(equation)
            return
        row = [sum(a * u for a, u in zip(numbers, column, strict=True)) for column in self.columns]
        first = len(self.solved)
        self.reduce(row, first)
        dtype = equation.a.dtype
        rest = self.simple(negate(add(linear[-1], _scaled_sum(row[:first], self.solved, dtype))))
        if first == len(row) or not row[first]:
            self.relations.append(equal(rest, const(0, dtype)))
            return
        divisor = const(row[first], dtype)
        self.relations.append(equal(floormod(rest, divisor), const(0, dtype)))
        self.solved.append(self.simple(floordiv(rest, divisor)))

    def reduce(self, row: list[int], first: int) -> None:
        """Change the columns from `first` on so that of `row` there only the first is not 0, and
        not negative."""
        while others := [j for j in range(first, len(row)) if row[j]]:
            least = min(others, key=lambda j: abs(row[j]))
            _swap(row, first, least)
            _swap(self.columns, first, least)
            _swap(self.inverse, first, least)
            if row[first] < 0:
                row[first] = -row[first]
                self.columns[first] = [-value for value in self.columns[first]]
                self.inverse[first] = [-value for value in self.inverse[first]]
            if len(others) == 1:
                return
            for j in range(first + 1, len(row)):
                self.subtract_column(row, j, first, row[j] // row[first])

    def subtract_column(self, row: list[int], column: int, other: int, factor: int) -> None:
        row[column] -= factor * row[other]
        pairs = zip(self.columns[column], self.columns[other], strict=True)
        self.columns[column] = [one - factor * two for one, two in pairs]
        pairs = zip(self.inverse[other], self.inverse[column], strict=True)
        self.inverse[other] = [one + factor * two for one, two in pairs]

    def ranges_of(self, new: Sequence[E.Var], values: Mapping[E.Var, E.PrimExpr]) -> Ranges:
        """What the ranges of the old variables say of each new one that alone is in one of them."""
        ranges: dict[E.Var, Range] = {}
        for var in new:
            bounds = [self.bounds(var, old, values[old], new) for old in self.source.ranges]
            intervals = [bound for bound in bounds if bound is not None]
            if intervals:
                low = self.simple(reduce(maximum, [bound[0] for bound in intervals]))
                high = self.simple(reduce(minimum, [bound[1] for bound in intervals]))
                ranges[var] = Range(low, self.simple(add(subtract(high, low), 1)))
        return ranges

    def bounds(
        self, var: E.Var, old: E.Var, value: E.PrimExpr, new: Sequence[E.Var]
    ) -> tuple[E.PrimExpr, E.PrimExpr] | None:
        """The least and greatest value of a variable with which another is in its range."""
        if [other for other in new if other in variables_in(value)] != [var]:
            return None
        factor, base = detect_linear_equation(value, [var])
        assert isinstance(factor, E.IntImm)
        scale = factor.value
        domain = self.source.ranges[old]
        low = subtract(domain.min, base)
        high = subtract(subtract(add(domain.min, domain.extent), 1), base)
        if scale < 0:
            low, high, scale = negate(high), negate(low), -scale
        return floordiv(add(low, scale - 1), scale), floordiv(high, scale)

    def relations_of(self, values: Mapping[E.Var, E.PrimExpr], ranges: Ranges) -> list[E.PrimExpr]:
        """The conditions that the ranges of the new variables do not say already."""
        analyzer = Analyzer({**self.source.ranges, **ranges})
        relations = [*self.relations]
        for old, domain in self.source.ranges.items():
            relations.append(less_equal(domain.min, values[old]))
            relations.append(less(values[old], add(domain.min, domain.extent)))
        relations += [less(const(0, r.extent.dtype), r.extent) for r in ranges.values()]
        simple = (analyzer.simplify(relation) for relation in relations)
        return [relation for relation in simple if not _is(relation, True)]

    def simple(self, expression: E.PrimExpr) -> E.PrimExpr:
        return self.analyzer.simplify(expression)


def _swap(table: list[Any], one: int, other: int) -> None:
    table[one], table[other] = table[other], table[one]


def _scaled_sum(scales: Sequence[int], values: Sequence[E.PrimExpr], dtype: str) -> E.PrimExpr:
    total: E.PrimExpr = const(0, dtype)
    for scale, value in zip(scales, values, strict=True):
        if scale:
            total = add(total, multiply(value, const(scale, value.dtype)))
    return total


def _is(relation: E.PrimExpr, value: bool) -> bool:
    return isinstance(relation, E.IntImm) and bool(relation.value) is value
