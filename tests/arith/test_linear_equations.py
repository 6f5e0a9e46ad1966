"""Systems of linear equations: the solutions found are those that trying all values finds."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from mlcweb import arith, tir
from mlcweb.arith import Analyzer, IntConstraintsTransform
from mlcweb.ir import TVMError
from mlcweb.tir.arithmetic import const, equal
from mlcweb.tir.buffer import Range
from mlcweb.tir.substitute import substitute

X, Y, Z = (tir.Var(name, "int32") for name in "xyz")
N = tir.Var("n", "int32")


def value(expression: tir.PrimExpr, values: dict[tir.Var, int]) -> int:
    constants = {var: const(number) for var, number in values.items()}
    result = Analyzer().simplify(substitute(expression, constants))
    assert isinstance(result, tir.IntImm)
    return result.value


def solutions(solved: IntConstraintsTransform) -> set[tuple[int, ...]]:
    """The values of the old variables, for all values of the new ones."""
    new, old = solved.dst.variables, solved.src.variables
    spans = [
        range(value(domain.min, {}), value(domain.min, {}) + value(domain.extent, {}))
        for domain in (solved.dst.ranges[var] for var in new)
    ]
    found = set()
    for numbers in product(*spans):
        values = dict(zip(new, numbers, strict=True))
        if not all(value(relation, values) for relation in solved.dst.relations):
            continue
        given = {var: value(solved.src_to_dst[var], values) for var in old}
        assert all(value(solved.dst_to_src[var], given) == values[var] for var in new)
        found.add(tuple(given.values()))
    return found


def test_one_solution() -> None:
    solved = arith.solve_linear_equations([equal(X + Y, 20), equal(X - Y, 10)], [X, Y])
    assert [value(solved.src_to_dst[var], {}) for var in (X, Y)] == [15, 5]
    assert (solved.dst.variables, solved.dst.relations, solved.dst_to_src) == ([], [], {})


@pytest.mark.parametrize("second", [equal(X + Y, 4), equal(X * 2 + Y * 2, 7)])
def test_no_solution(second: tir.PrimExpr) -> None:
    solved = arith.solve_linear_equations([equal(X + Y, 3), second], [X, Y])
    assert solved.dst.variables == []
    assert [str(relation) for relation in solved.dst.relations] == ["T.bool(False)"]


def test_what_is_left_to_choose_has_a_range() -> None:
    ranges = {X: Range(const(0), const(10)), Y: Range(const(0), const(4))}
    solved = arith.solve_linear_equations(equal(X, Y * 2 + 1), None, ranges)
    assert len(solved.dst.variables) == 1
    assert solutions(solved) == {(2 * y + 1, y) for y in range(4)}


def test_symbols_stay() -> None:
    solved = arith.solve_linear_equations([equal(X + Y, N), equal(X - Y, 2)], [X, Y])
    for n in (4, 10, -6):
        x, y = (value(solved.src_to_dst[var], {N: n}) for var in (X, Y))
        assert (x + y, x - y) == (n, 2)
        assert all(value(relation, {N: n}) for relation in solved.dst.relations)
    assert not all(value(relation, {N: 5}) for relation in solved.dst.relations)


def test_what_is_no_linear_equation() -> None:
    solved = arith.solve_linear_equations([equal(X * Y, 6), equal(X, 2)], [X, Y])
    assert value(solved.src_to_dst[X], {}) == 2
    assert [str(relation) for relation in solved.dst.relations] == ["x * y == 6"]
    with pytest.raises(TVMError, match=r"takes equations \(a == b\), not x < 3"):
        arith.solve_linear_equations([X < 3], [X])


@pytest.mark.parametrize("seed", range(60))
def test_random_systems_have_the_solutions_that_trying_finds(seed: int) -> None:
    random = Random(seed)
    variables = [X, Y, Z][: random.randint(1, 3)]
    low, extent = random.randint(-4, 1), random.randint(1, 6)
    ranges = {var: Range(const(low), const(extent)) for var in variables}
    rows = [
        ([random.randint(-3, 3) for _ in variables], random.randint(-4, 4))
        for _ in range(random.randint(1, 3))
    ]
    equations = [
        tir.EQ(sum((var * k for var, k in zip(variables, row, strict=True)), const(0)), const(b))
        for row, b in rows
    ]
    solved = arith.solve_linear_equations(equations, variables, ranges)
    expected = {
        numbers
        for numbers in product(range(low, low + extent), repeat=len(variables))
        if all(sum(map(int.__mul__, row, numbers)) == b for row, b in rows)
    }
    if len(solved.dst.variables) == len(solved.dst.ranges):
        assert (solutions(solved) if solved.src_to_dst else set()) == expected
    # Whatever solves the old system is a solution of the new one.
    for numbers in expected:
        old = dict(zip(variables, numbers, strict=True))
        new = {var: value(of, old) for var, of in solved.dst_to_src.items()}
        assert tuple(value(solved.src_to_dst[var], new) for var in variables) == numbers
        assert all(value(relation, new) for relation in solved.dst.relations)
