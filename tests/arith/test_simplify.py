"""The simplifier: TVM's texts, and values that never change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer, rewrite, same_expression
from mlcweb.arith.facts import Facts
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Range
from tests.arith.expressions import Chance, Names, assignments, evaluate
from tests.arith.infix import infix
from tests.arith.tvm_texts import CANONICAL, DOMAINS, REWRITTEN, SIMPLIFIED
from tests.strategies import examples


@pytest.mark.parametrize(("text", "expected"), SIMPLIFIED, ids=[text for text, _ in SIMPLIFIED])
def test_text_as_tvm(text: str, expected: str) -> None:
    names = Names()
    analyzer = Analyzer(names.domains(DOMAINS))
    assert infix(analyzer.simplify(names.parse(text))) == expected


@pytest.mark.parametrize(("text", "expected"), REWRITTEN, ids=[text for text, _ in REWRITTEN])
def test_rewritten_text_as_tvm(text: str, expected: str) -> None:
    assert infix(Analyzer().rewrite_simplify(Names().parse(text))) == expected


@pytest.mark.parametrize(("text", "expected"), CANONICAL, ids=[text for text, _ in CANONICAL])
def test_canonical_text_as_tvm(text: str, expected: str) -> None:
    names = Names()
    analyzer = Analyzer(names.domains(DOMAINS))
    assert infix(analyzer.canonical_simplify(names.parse(text))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EQ(x, -2147483648)", "EQ(x, -2147483648)"),
        ("EQ(-2147483648 - x, 0)", "EQ(x, -2147483648)"),
        ("EQ(x - -2147483648, 0)", "EQ(x, -2147483648)"),
        ("x < -2147483648", "False"),
        ("-2147483648 <= x", "True"),
    ],
)
def test_least_integer_has_no_opposite(text: str, expected: str) -> None:
    expression, analyzer = Names().parse(text), Analyzer()
    for form in (analyzer.simplify, analyzer.rewrite_simplify, analyzer.canonical_simplify):
        assert infix(form(expression)) == expected


def test_sum_is_cast_term_by_term_only_where_all_of_it_fits() -> None:
    names = Names()
    x, y = E.Var("x", "int64"), E.Var("y", "int64")
    total = arithmetic.cast("int32", x + y - 100)
    assert same_expression(Analyzer().simplify(total), total)
    fits = Analyzer({x: names.domains({"i": (0, 1000)})[names["i"]], y: Range(const(0), const(9))})
    assert infix(fits.simplify(total)) == "cast(x) + cast(y) - 100"


@examples(400)
@given(st.integers(0, 10**9))
def test_value_is_kept(seed: int) -> None:
    chance, names = Chance(seed), Names()
    expression = names.parse(chance.expression())
    domains = names.domains(chance.domains)
    simple = Analyzer(domains).simplify(expression)
    for values in assignments(domains, 150):
        assert evaluate(simple, values) == evaluate(expression, values)


@examples(400)
@given(st.integers(0, 10**9))
def test_value_of_arithmetic_that_wraps_is_kept(seed: int) -> None:
    chance, names = Chance(seed), Names()
    expression = names.parse(chance.narrow())
    domains = names.domains(chance.domains)
    simple = Analyzer(domains).simplify(expression)
    for values in assignments(domains, 150):
        assert evaluate(simple, values) == evaluate(expression, values)


@examples(400)
@given(st.integers(0, 10**9), st.booleans())
def test_value_of_any_arithmetic_is_kept(seed: int, bound: bool) -> None:
    chance, names = Chance(seed), Names()
    text = chance.comparison() if seed % 4 == 0 else chance.arithmetic()
    expression = names.parse(text)
    domains = names.domains({name: (-5, extent + 7) for name, extent in chance.extents.items()})
    analyzer = Analyzer(domains if bound else {})
    forms = [analyzer.simplify, analyzer.rewrite_simplify, analyzer.canonical_simplify]
    simple = [form(expression) for form in forms]
    integer = expression.dtype != "bool"
    least, greatest = analyzer.const_int_bound(expression) if integer else (0, 1)
    for values in assignments(domains, 60):
        try:
            value = evaluate(expression, values)
        except ZeroDivisionError:
            continue
        assert [evaluate(form, values) for form in simple] == [value] * 3
        if integer:
            assert least <= value <= greatest
            assert analyzer.modular_set(expression).contains(value)


@examples(200)
@given(st.integers(0, 10**9), st.integers(-40, 40), st.integers(-40, 40))
def test_value_is_kept_without_domains(seed: int, first: int, second: int) -> None:
    """Nothing is assumed of unbound variables: negative values divide and compare correctly."""
    chance, names = Chance(seed), Names()
    expression = names.parse(chance.expression())
    simple = Analyzer().simplify(expression)
    values = {names[name]: (first, second)[k % 2] for k, name in enumerate(chance.extents)}
    assert evaluate(simple, values) == evaluate(expression, values)


@examples(200)
@given(st.integers(0, 10**9))
def test_simple_expression_is_returned_itself(seed: int) -> None:
    chance, names = Chance(seed), Names()
    analyzer = Analyzer(names.domains(chance.domains))
    simple = analyzer.simplify(names.parse(chance.fused()))
    assert analyzer.simplify(simple) is simple


def test_unchanged_expression_is_the_same_object() -> None:
    names = Names()
    expression = names.parse("i * 8 + j")
    assert Analyzer().simplify(expression) is expression


def test_unit_domain_is_its_only_value() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (0, 1)}))
    assert infix(analyzer.simplify(names.parse("i * 8 + j"))) == "j"


def test_branches_know_their_condition() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (0, 32)}))
    text = "if_then_else(i < 8, i // 8, i // 32 + (i - 8) // 24)"
    assert infix(analyzer.simplify(names.parse(text))) == "if_then_else(i < 8, 0, 0)"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float16", "float32", "float64"])
def test_other_types_fold_constants_only(dtype: str) -> None:
    x, y = E.Var("x", dtype), E.Var("y", dtype)
    analyzer = Analyzer()
    # x + 200 may wrap around, so that it is not always above x.
    comparison = arithmetic.less(x, x + arithmetic.const(100, dtype))
    assert analyzer.simplify(comparison) is comparison
    difference = (x + y) - y
    assert analyzer.simplify(difference) is difference
    constant = E.Add(arithmetic.const(3, dtype), arithmetic.const(4, dtype))
    assert same_expression(analyzer.simplify(constant), arithmetic.const(7, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_differences_of_floats_and_their_extrema_stay(dtype: str) -> None:
    x, y = E.Var("x", dtype), E.Var("y", dtype)
    top = arithmetic.maximum(x, y)
    for value in (x - top, top - x, top + arithmetic.minimum(x, y), top - arithmetic.maximum(y, x)):
        assert Analyzer().simplify(value) is value


def test_float_comparisons_keep_nan() -> None:
    x, y = E.Var("x", "float32"), E.Var("y", "float32")
    negated = arithmetic.logical_not(x < y)
    assert Analyzer().simplify(negated) is negated


def test_unsigned_division_folds_only_where_nothing_wraps() -> None:
    names = Names()
    analyzer = Analyzer(names.domains({"i": (0, 5), "j": (0, 5)}))
    # 0 - 4 is 2 ** 32 - 4.
    quotient = names.parse("truncdiv(uint32(i) - uint32(j), uint32(10))")
    assert analyzer.simplify(quotient) is quotient
    assert infix(analyzer.simplify(names.parse("truncdiv(uint32(i) + uint32(j), 10)"))) == "0"


def test_casts_of_constants_fold() -> None:
    cast = E.Cast("int64", E.IntImm("int32", 5))
    assert same_expression(Analyzer().simplify(cast), E.IntImm("int64", 5))


def test_indices_of_loads_are_simplified() -> None:
    from mlcweb.tir.buffer import decl_buffer

    names = Names()
    buffer = decl_buffer((128,), "float32", "A")
    analyzer = Analyzer(names.domains({"i": (0, 16), "j": (0, 8)}))
    load = buffer[names.parse("(i * 8 + j) // 8 * 8 + j")]
    simple = analyzer.simplify(load)
    assert isinstance(simple, E.BufferLoad)
    assert infix(simple.indices[0]) == "i * 8 + j"


def steps(expression: E.PrimExpr, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rules are tried to simplify an expression."""
    tried = 0

    def counting(rule: rewrite.Rule) -> rewrite.Rule:
        def apply(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
            nonlocal tried
            tried += 1
            return rule(expression, analyzer)

        return apply

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "_RULES", {k: counting(r) for k, r in rewrite._RULES.items()})
        Analyzer().simplify(expression)
    return tried


def least_of_greatest(x: E.PrimExpr, level: int) -> E.PrimExpr:
    a, b = E.Var(f"a{level}", "int32"), E.Var(f"b{level}", "int32")
    return arithmetic.minimum(x, arithmetic.maximum(a, b))


def least_in_a_sum(x: E.PrimExpr, level: int) -> E.PrimExpr:
    a = E.Var(f"a{level}", "int32")
    return least_of_greatest(x * 2 + a, level)


def compared_twice(x: E.PrimExpr, level: int) -> E.PrimExpr:
    a = E.Var(f"a{level}", "int32")
    return E.Cast("int32", arithmetic.less(arithmetic.maximum(x, 1), arithmetic.minimum(x, a)))


def used_twice(x: E.PrimExpr, level: int) -> E.PrimExpr:
    digit = arithmetic.floormod(x, 7 + level)
    return arithmetic.floordiv(digit * 3 + arithmetic.minimum(x, 5), 2)


@pytest.mark.parametrize("nest", [least_of_greatest, least_in_a_sum, compared_twice, used_twice])
def test_deep_nests_take_few_steps(
    nest: Callable[[E.PrimExpr, int], E.PrimExpr], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that look at operands again must not double the work at every level."""

    def nested(depth: int) -> E.PrimExpr:
        result: E.PrimExpr = E.Var("x", "int32")
        for level in range(depth):
            result = nest(result, level)
        return result

    shallow, deep = (steps(nested(depth), monkeypatch) for depth in (6, 18))
    assert deep < 12 * shallow
