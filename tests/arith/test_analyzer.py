"""Bounds, modular sets, proofs and constraints of the analyzer."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer, ConstIntBound, ModularSet, const_int_bound
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, floormod
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import Cast, IntImm, Var
from tests.arith.expressions import Chance, Names, assignments, evaluate
from tests.strategies import examples

DOMAINS = {"i": (0, 16), "j": (0, 8), "k": (2, 5)}


def analyzer_and_names() -> tuple[Analyzer, Names]:
    names = Names()
    return Analyzer(names.domains(DOMAINS)), names


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("i * 8 + j", 0, 127),
        ("i - j", -7, 15),
        ("i * -3", -45, 0),
        ("(i + 5) // 4", 1, 5),
        ("i % 5", 0, 4),
        ("k % 10", 2, 6),
        ("(k + 10) % 5", 0, 4),
        ("(k + 8) % 16", 10, 14),
        ("(i * 4) % 8", 0, 4),
        ("min(i, 9)", 0, 9),
        ("max(i, k)", 2, 15),
        ("Select(i < 3, k, 40)", 2, 40),
        ("if_then_else(i < 3, k, -1)", -1, 6),
        ("truncdiv(i - 4, 3)", -1, 3),
        ("truncmod(n * 64 + 3, 256)", -253, 195),
        ("truncmod(i * 64 + 3, 256)", 3, 195),
        ("truncmod(i * 64 - 963, 256)", -195, -3),
        ("truncmod(k - 9, 20)", -7, -3),
        ("(n * 320 + 255) % 256", 63, 255),
        ("(i * 4 + 50) % 16", 2, 14),
        ("i * n", -15 * 2**31, 15 * (2**31 - 1)),
    ],
)
def test_const_int_bound(text: str, low: int, high: int) -> None:
    analyzer, names = analyzer_and_names()
    assert analyzer.const_int_bound(names.parse(text)) == ConstIntBound(low, high)


def test_bounds_of_types() -> None:
    analyzer = Analyzer()
    assert analyzer.const_int_bound(Var("n", "int8")) == ConstIntBound(-128, 127)
    assert analyzer.const_int_bound(Var("n", "uint8")) == ConstIntBound(0, 255)
    assert analyzer.const_int_bound(Var("n", "int64")) == ConstIntBound(-inf, inf)
    x = Var("x", "int32")
    analyzer.bind(x, ConstIntBound(-(2**11), 2**11))
    for dtype, low, high in (
        ("float16", -(2**11), 2**11),
        ("bfloat16", -(2**31), 2**31 - 1),
        ("float32", -(2**11), 2**11),
    ):
        there_and_back = Cast("int32", Cast(dtype, x))
        assert analyzer.const_int_bound(there_and_back) == ConstIntBound(low, high)
    difference = Cast("int32", Var("a", "uint8") - Var("b", "uint8"))
    assert analyzer.const_int_bound(difference) == ConstIntBound(0, 255)


def test_const_int_bound_over_domains() -> None:
    names = Names()
    domains = names.domains(DOMAINS)
    assert const_int_bound(names.parse("i * 2 + k"), domains) == ConstIntBound(2, 36)


@pytest.mark.parametrize(
    ("text", "coeff", "base"),
    [
        ("n * 4 + 3", 4, 3),
        ("n * 6 - m * 4", 2, 0),
        ("n * 6 * 2", 12, 0),
        ("(n * 12 + 8) // 4", 3, 2),
        ("(n * 12 + 7) % 6", 6, 1),
        ("n * 4 << 2", 16, 0),
        ("(n * 4 + 2) >> 1", 2, 1),
        ("n * 16 + m * 4 & 31", 4, 0),
        ("n * 16 + m * 4 & 17", 1, 0),
        ("(n * 4 + 7) % 6", 2, 1),
        ("min(n * 4, m * 6 + 2)", 2, 0),
        ("7", 0, 7),
    ],
)
def test_modular_set(text: str, coeff: int, base: int) -> None:
    analyzer, names = analyzer_and_names()
    assert analyzer.modular_set(names.parse(text)) == ModularSet(coeff, base)


@pytest.mark.parametrize(
    "text",
    [
        "i * 8 + j < 128",
        "i * 8 + j >= 0",
        "EQ((i * 8 + j) // 8, i)",
        "And(i < 16, j <= 7)",
        "Or(i < 3, i >= 3)",
        "n // 4 * 4 <= n",
        "(n + 31) // 32 * 32 < n + 32",
        "EQ(n * 16 % 8, 0)",
    ],
)
def test_can_prove(text: str) -> None:
    analyzer, names = analyzer_and_names()
    assert analyzer.can_prove(names.parse(text))


@pytest.mark.parametrize("text", ["i * 8 + j < 127", "i >= 1", "EQ(i, j)", "n < 5", "n * 2 > n"])
def test_can_not_prove(text: str) -> None:
    analyzer, names = analyzer_and_names()
    assert not analyzer.can_prove(names.parse(text))


def test_can_prove_with_symbolic_extents() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (0, "n"), "j": (0, 4), "k": ("i * 8", 8)}))
    assert analyzer.can_prove(names.parse("i < n"))
    assert analyzer.can_prove(names.parse("i * 4 + j < n * 4"))
    assert analyzer.can_prove(names.parse("k < i * 8 + 8"))
    assert not analyzer.can_prove(names.parse("i * 4 + j < n * 4 - 1"))
    assert not analyzer.can_prove(names.parse("i < n - 1"))


def test_quotients_by_symbols_have_upper_limits() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (0, "n * 32"), "j": (0, "m * 32"), "n": (0, 100)}))
    assert analyzer.can_prove(names.parse("i // n < 32"))
    assert analyzer.can_prove(names.parse("(i + n * 3) // n <= 34"))
    assert not analyzer.can_prove(names.parse("i // n < 31"))
    assert not analyzer.can_prove(names.parse("i // m < 32"))
    # m may be negative, where a domain of negative extent has no value to prove anything of.
    assert not analyzer.can_prove(names.parse("j // m < 32"))


def test_convenient_proofs() -> None:
    analyzer, names = analyzer_and_names()
    assert analyzer.can_prove_equal(names.parse("i * 2 + i"), names.parse("3 * i"))
    assert not analyzer.can_prove_equal(names.parse("i"), names.parse("j"))
    assert analyzer.can_prove_equal(names.parse("n * m * 32"), names.parse("m * n * 32"))
    assert not analyzer.can_prove_equal(names.parse("n * m * 32"), names.parse("m * n * 16"))
    assert not analyzer.can_prove_equal(names.parse("n * m * 32"), names.parse("m * k * 32"))
    assert analyzer.can_prove_less(names.parse("i * 8 + j"), 128)
    assert not analyzer.can_prove_less(names.parse("i * 8 + j"), 127)
    assert analyzer.can_prove_greater_equal(names.parse("k - 2"), 0)
    assert analyzer.can_prove_multiple(names.parse("n * 12"), arithmetic.const(4))
    assert analyzer.can_prove_multiple(names.parse("n * m * 6"), names.parse("m * 3"))
    assert not analyzer.can_prove_multiple(names.parse("n * 6"), arithmetic.const(4))
    assert analyzer.can_disprove(names.parse("i >= 16"))


def test_constraint_holds_only_inside() -> None:
    analyzer, names = analyzer_and_names()
    condition = names.parse("n < 10")
    assert not analyzer.can_prove(condition)
    with analyzer.constraint(names.parse("And(n < 10, 3 <= n)")):
        assert analyzer.can_prove(condition)
        assert analyzer.const_int_bound(names["n"]) == ConstIntBound(3, 9)
        with analyzer.constraint(names.parse("n < 4")):
            assert analyzer.const_int_bound(names["n"]) == ConstIntBound(3, 3)
        assert analyzer.can_prove(names.parse("n + 1 <= 10"))
    assert not analyzer.can_prove(condition)


def test_bound_variable_stands_for_its_value() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (3, 1)}))
    result = analyzer.simplify(names.parse("i * 2 + 1"))
    assert isinstance(result, IntImm)
    assert result.value == 7
    analyzer.bind(names["a"], names.parse("n * 4"))
    assert analyzer.can_prove(names.parse("EQ(a % 4, 0)"))


def test_binding_anew_forgets_old_answers() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (0, 16)}))
    expression = names.parse("i // 8")
    assert analyzer.const_int_bound(expression) == ConstIntBound(0, 1)
    analyzer.bind(names["i"], ConstIntBound(0, 7))
    assert analyzer.can_prove_equal(expression, 0)


@examples(200)
@given(st.integers(0, 10**9), st.booleans())
def test_bounds_and_modular_sets_hold(seed: int, wraps: bool) -> None:
    chance, names = Chance(seed), Names()
    expression = names.parse(chance.narrow() if wraps else chance.index(3))
    domains = names.domains(chance.domains)
    analyzer = Analyzer(domains)
    low, high = analyzer.const_int_bound(expression)
    coeff, base = analyzer.modular_set(expression)
    for values in assignments(domains, 150):
        value = evaluate(expression, values)
        assert low <= value <= high
        assert value == base if coeff == 0 else (value - base) % coeff == 0


def test_constraints_on_remainders_are_joined() -> None:
    analyzer, x = Analyzer(), Var("x", "int32")
    with analyzer.constraint(floormod(x, 12).equal(1)):
        assert analyzer.modular_set(x) == ModularSet(12, 1)
        with analyzer.constraint(floormod(x, 7).equal(2)):
            assert analyzer.modular_set(x) == ModularSet(84, 37)
            assert analyzer.modular_set(x * 4 + 1) == ModularSet(336, 149)
        with analyzer.constraint(floormod(x, 8).equal(2)):  # which no number fulfils
            assert analyzer.modular_set(x) == ModularSet(12, 1)
    assert analyzer.modular_set(x) == ModularSet(1, 0)


def test_bounds_of_vectors_and_of_bound_values() -> None:
    analyzer = Analyzer()
    x, y = Var("x", "int32"), Var("y", "int32")
    analyzer.bind(x, Range(const(0), const(9)))
    assert analyzer.const_int_bound(E.Ramp(x, const(2), 4)) == ConstIntBound(0, 14)
    assert analyzer.const_int_bound(E.Broadcast(x, 4)) == ConstIntBound(0, 8)
    assert analyzer.const_int_bound(E.Let(y, x + 1, y * 2)) == ConstIntBound(2, 18)


def test_what_follows_from_a_variable_follows_it_when_it_is_bound_anew() -> None:
    analyzer = Analyzer()
    x, y, i = Var("x", "int32"), Var("y", "int32"), Var("i", "int32")
    analyzer.bind(y, Range(const(0), const(10)))
    analyzer.bind(x, y * 4 + 5)
    analyzer.bind(i, Range(const(0), y))
    assert analyzer.const_int_bound(x) == ConstIntBound(5, 41)
    assert analyzer.const_int_bound(i) == ConstIntBound(0, 8)
    analyzer.bind(y, Range(const(200), const(100)))
    assert analyzer.const_int_bound(x) == ConstIntBound(805, 1201)
    assert analyzer.const_int_bound(i) == ConstIntBound(0, 298)
    assert not analyzer.can_prove(x < 42)
    assert analyzer.can_prove(x >= 805)
    assert analyzer.modular_set(x) == ModularSet(4, 1)


def test_binding_anew_forgets_the_value() -> None:
    analyzer, x = Analyzer(), Var("x", "int32")
    analyzer.bind(x, const(4))
    analyzer.bind(x, Range(const(0), const(10)))
    assert isinstance(analyzer.simplify(x + 1), E.Add)
    assert analyzer.const_int_bound(x + 1) == ConstIntBound(1, 10)
    assert analyzer.modular_set(x) == ModularSet(1, 0)


def test_bounds_of_a_variable_that_depends_on_itself() -> None:
    analyzer, x, y = Analyzer(), Var("x", "int32"), Var("y", "int32")
    analyzer.bind(x, Range(const(0), y))
    analyzer.bind(y, Range(x, const(8)))
    assert analyzer.const_int_bound(x).min_value == 0


def test_what_a_constraint_says_of_a_bound_variable_ends_with_it() -> None:
    analyzer, x, y = Analyzer(), Var("x", "int32"), Var("y", "int32")
    with analyzer.constraint(y < 5):
        analyzer.bind(x, y + 5)
        assert analyzer.can_prove(x < 10)
    assert not analyzer.can_prove(x < 10)
