"""What constraints say of conditions, tried on all small values of the variables."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer, Extension, const_int_bound
from mlcweb.ir import assert_structural_equal
from mlcweb.tir import ceil, log2, shift_left
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Range
from mlcweb.tir.logic import all as all_of
from mlcweb.tir.substitute import substitute

X, Y, Z = (E.Var(name, "int32") for name in "xyz")
VALUES = range(-3, 4)

COMPARE: dict[str, Callable[[Any, Any], E.PrimExpr]] = {
    "<": E.LT, "<=": E.LE, ">": E.GT, ">=": E.GE, "==": E.EQ, "!=": E.NE,
}  # fmt: skip


def comparison(a: E.PrimExpr, sign: str, b: E.PrimExpr, shift: int = 0) -> E.PrimExpr:
    return COMPARE[sign](a, b + shift)


def value(expression: E.PrimExpr, at: tuple[int, ...]) -> int:
    numbers = dict(zip((X, Y, Z), map(const, at), strict=True))
    result = Analyzer().simplify(substitute(expression, numbers))
    assert isinstance(result, E.IntImm)
    return result.value


conditions = st.builds(
    comparison,
    st.sampled_from([X, Y, Z]),
    st.sampled_from(sorted(COMPARE)),
    st.sampled_from([X, Y, Z, const(0), const(1)]),
    st.integers(-2, 2),
)


@given(st.lists(conditions, min_size=1, max_size=3), conditions, st.booleans())
def test_a_condition_keeps_its_value_where_the_constraints_hold(
    known: list[E.PrimExpr], condition: E.PrimExpr, chained: bool
) -> None:
    analyzer = Analyzer()
    if chained:
        analyzer.enabled_extensions |= Extension.TransitivelyProveInequalities
    with analyzer.constraint(all_of(*known)):
        simple = analyzer.simplify(condition)
    for at in itertools.product(VALUES, repeat=3):
        if all(value(each, at) for each in known):
            assert value(simple, at) == value(condition, at)


@pytest.mark.parametrize(
    ("known", "condition", "expected"),
    [
        (X <= Y, Y <= X, "y == x"),
        (X <= Y, E.NE(Y, X), "x < y"),
        (E.NE(X, Y), X <= Y, "x < y"),
        (E.NE(X, const(0)), X <= 0, "x < 0"),
        (X < Y, X <= Y, "T.bool(True)"),
        (X < Y, E.EQ(Y, X), "T.bool(False)"),
        (E.EQ(X, Y), X < Y, "T.bool(False)"),
        (all_of(X < Y, Y < Z), X < Z, "x < z"),
        (X < Y + 5, X < Y + 10, "T.bool(True)"),
        (X <= Y + 5, Y + 6 <= X, "T.bool(False)"),
        (X < Y + 10, X < Y + 5, "x < y + 5"),
        (all_of(E.EQ(X, Y), E.NE(Y, Z)), E.NE(X, Z), "x != z"),
    ],
)
def test_comparisons_under_another_one(
    known: E.PrimExpr, condition: E.PrimExpr, expected: str
) -> None:
    analyzer = Analyzer()
    with analyzer.constraint(known):
        assert str(analyzer.simplify(condition)) == expected
    assert not isinstance(analyzer.simplify(condition), E.IntImm)


@pytest.mark.parametrize(
    ("known", "condition", "holds"),
    [
        (all_of(X < Y, Y < Z), X < Z, True),
        (all_of(X < Y + 5, Y < Z + 7), X < Z + 11, True),
        (all_of(X < Y + 5, Y < Z + 7), X < Z + 10, None),
        (all_of(X < Y, E.EQ(Y, Z)), Z <= X, False),
        (all_of(E.EQ(X, Y), E.NE(Y, Z)), E.NE(X, Z), True),
        (all_of(X < Y, E.NE(Y, Z)), X < Z, None),
    ],
)
def test_inequalities_are_chained_where_that_is_asked_for(
    known: E.PrimExpr, condition: E.PrimExpr, holds: bool | None
) -> None:
    analyzer = Analyzer()
    analyzer.enabled_extensions |= Extension.TransitivelyProveInequalities
    with analyzer.constraint(known):
        simple = analyzer.simplify(condition)
    assert (bool(simple.value) if isinstance(simple, E.IntImm) else None) == holds


def test_bounds_of_shifts_and_of_rounded_logarithms() -> None:
    domain = {X: Range(const(0), const(16))}
    assert const_int_bound(shift_left(31, X), domain) == (31, 31 << 15)
    assert const_int_bound(shift_left(-X, 4), domain)[0] < -(15 << 4)  # unknown, as in TVM
    power = E.Cast("int32", ceil(log2(E.Cast("float64", X + 1025))))
    assert const_int_bound(power, domain) == (11, 11)
    assert const_int_bound(power, {X: Range(const(-1), const(1000))}) == (10, 11)


def test_choices_by_the_condition_that_decides_them():
    """Comparing what they choose asks for the condition itself."""
    x = E.Var("x", "int32")
    choice = E.Select(x < 2, 2 - x, x - 2)
    analyzer = Analyzer()
    with analyzer.constraint(choice < 4):
        assert_structural_equal(analyzer.simplify(E.Select(choice < 4, choice, 3 - choice)), choice)
