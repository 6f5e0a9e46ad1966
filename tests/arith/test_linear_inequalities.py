"""Systems of linear inequalities: the solutions found are those that trying all values finds."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from mlcweb import arith, tir
from mlcweb.arith import IntConstraints, IntConstraintsTransform
from mlcweb.ir import TVMError
from mlcweb.tir.arithmetic import const, equal
from mlcweb.tir.buffer import Range
from tests.arith.test_linear_equations import N, X, Y, Z, value

AROUND = range(-6, 7)


def solutions(found: IntConstraints, variables: list[tir.Var]) -> set[tuple[int, ...]]:
    """The values that are in all ranges and for which all relations hold."""

    def holds(values: dict[tir.Var, int]) -> bool:
        for var, domain in found.ranges.items():
            low = value(domain.min, values)
            if not low <= values[var] < low + value(domain.extent, values):
                return False
        return all(value(relation, values) for relation in found.relations)

    everything = product(AROUND, repeat=len(variables))
    tried = (dict(zip(variables, numbers, strict=True)) for numbers in everything)
    return {tuple(values.values()) for values in tried if holds(values)}


@pytest.mark.parametrize("seed", range(12))
def test_random_systems(seed: int) -> None:
    random = Random(seed)
    names = [X, Y, Z][: random.randint(2, 3)]
    given = [
        sum((var * random.randint(-3, 3) for var in names), const(0)) <= random.randint(-6, 9)
        for _ in range(random.randint(1, 4))
    ]
    ranges = {var: Range(const(-6), const(13)) for var in names}
    solved = arith.solve_linear_inequalities(given, names, ranges)
    assert isinstance(solved, IntConstraints)
    expected = solutions(IntConstraints(names, {}, given), names)
    assert solutions(solved, names) == expected
    skewed = arith.solve_linear_inequalities(given, names, ranges, deskew_range=True)
    assert isinstance(skewed, IntConstraintsTransform)
    for numbers in expected:
        old = dict(zip(names, numbers, strict=True))
        new = {var: value(skewed.dst_to_src[var], old) for var in skewed.dst.variables}
        for var, domain in skewed.dst.ranges.items():
            assert 0 <= new[var] < value(domain.extent, new)
        assert {var: value(skewed.src_to_dst[var], new) for var in names} == old


def test_bounds_are_in_terms_of_the_variables_after() -> None:
    solved = arith.solve_linear_inequalities([X <= Y, X >= 0, Y < N], [X, Y])
    assert isinstance(solved, IntConstraints)
    assert str(solved.ranges[X].extent) == "Y + 1".replace("Y", "y")
    assert str(solved.ranges[Y].extent) == "n"


def test_one_side_alone_is_a_relation() -> None:
    solved = arith.solve_linear_inequalities(X * 2 >= 5, [X])
    assert isinstance(solved, IntConstraints)
    assert solved.ranges == {}
    assert [str(relation) for relation in solved.relations] == ["3 <= x"]


def test_a_contradiction() -> None:
    solved = arith.solve_linear_inequalities([X + Y > 4, equal(X + Y, 3)], [X, Y])
    assert isinstance(solved, IntConstraints)
    assert [str(relation) for relation in solved.relations] == ["T.bool(False)"]


def test_what_is_no_inequality_is_refused() -> None:
    with pytest.raises(TVMError, match="takes inequalities"):
        arith.solve_linear_inequalities(X + 1, [X])
