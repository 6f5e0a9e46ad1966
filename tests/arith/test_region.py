"""Integer sets and regions: what is touched while loops run."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import (
    Analyzer,
    IntervalSet,
    IntSet,
    bounding_box,
    estimate_region,
    estimate_region_upper_bound,
    eval_set,
    intersect,
    union,
)
from mlcweb.tir import Var
from mlcweb.tir.arithmetic import const, constant_value
from mlcweb.tir.buffer import Range
from tests.arith.expressions import Chance, Names, assignments, evaluate
from tests.arith.infix import infix
from tests.strategies import examples


def ends(found: IntSet) -> tuple[str, str]:
    low, high = found
    return (
        "-inf" if low is None else infix(low),
        "inf" if high is None else infix(high),
    )


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("x * 8 + i", "x * 8", "x * 8 + 15"),
        ("x - i", "x - 15", "x"),
        ("i * -2 + x", "x - 30", "x"),
        ("(x * 16 + i) // 4", "x * 4", "x * 4 + 3"),
        ("(x * 16 + i) % 16", "0", "15"),
        ("(x + i) % 16", "0", "15"),
        ("min(x + i, 31)", "min(x, 31)", "min(x + 15, 31)"),
        ("max(i - 1, x)", "max(-1, x)", "max(14, x)"),
        ("Select(x < 3, i, 20)", "0", "20"),
        ("if_then_else(i < 3, i, -4)", "-4", "15"),
        ("x * y", "x * y", "x * y"),
        ("i * x", "-inf", "inf"),
        ("i // x", "-inf", "inf"),
    ],
)
def test_eval_set(text: str, low: str, high: str) -> None:
    names = Names()
    domains = names.domains({"i": (0, 16)})
    assert ends(eval_set(names.parse(text), domains, Analyzer(domains))) == (low, high)


def test_domains_may_mention_each_other() -> None:
    names = Names()
    domains = names.domains({"i": (0, 4), "j": ("i * 8", 8)})
    assert ends(eval_set(names.parse("j + x"), domains, Analyzer())) == ("x", "x + 31")


def test_each_end_of_a_long_chain_of_domains_is_found_once() -> None:
    chain = [Var(f"x{n}", "int32") for n in range(40)]
    domains = {a: IntSet(b - 1, b + 1) for a, b in pairwise(chain)}
    domains[chain[-1]] = IntSet(const(0), const(100))
    assert ends(eval_set(chain[0], domains, Analyzer())) == ("-39", "139")


def test_domains_that_mention_themselves_stay() -> None:
    x, y = Var("x", "int32"), Var("y", "int32")
    domains = {x: IntSet(y, y), y: IntSet(x, x + 1)}
    assert ends(eval_set(x, domains, Analyzer())) == ("y", "y")


def test_infinite_ends_equal_themselves_alone() -> None:
    analyzer = Analyzer()
    ends_of_all = IntervalSet(None, None)
    assert analyzer.can_prove_equal(ends_of_all.min_value, ends_of_all.min_value)
    assert not analyzer.can_prove_equal(ends_of_all.min_value, ends_of_all.max_value)
    assert not analyzer.can_prove_equal(ends_of_all.min_value, 0)


def test_union_and_intersection() -> None:
    names, analyzer = Names(), Analyzer()
    a = IntSet(names.parse("x * 4"), names.parse("x * 4 + 7"))
    b = IntSet(names.parse("x * 4 - 2"), names.parse("x * 4 + 3"))
    assert ends(union([a, b], analyzer)) == ("x * 4 - 2", "x * 4 + 7")
    assert ends(intersect(a, b, analyzer)) == ("x * 4", "x * 4 + 3")
    unlimited = IntSet(None, names.parse("x"))
    assert ends(union([a, unlimited], analyzer)) == ("-inf", "max(x * 4 + 7, x)")
    assert ends(intersect(unlimited, IntSet(None, None), analyzer)) == ("-inf", "x")


def test_cover_range() -> None:
    names, analyzer = Names(), Analyzer()
    limit = Range(names.parse("0"), names.parse("128"))
    covered = IntSet(names.parse("x * 4"), names.parse("x * 4 + 7")).cover_range(limit, analyzer)
    assert (infix(covered.min), infix(covered.extent)) == ("x * 4", "8")
    assert IntSet(None, names.parse("x")).cover_range(limit, analyzer) is limit
    point = IntSet.point(names.parse("x")).cover_range(limit, analyzer)
    assert (infix(point.min), infix(point.extent)) == ("x", "1")


@pytest.mark.parametrize(
    ("text", "extent", "low", "size"),
    [
        ("x * 4 + i", 1, "x * 4", "16"),
        ("x * 8 + i + j", 1, "x * 8", "19"),
        ("(x * 4 + i) * 2 + j", 1, "x * 8", "34"),
        ("x * 4 + i", 3, "x * 4", "18"),
        ("x + i * 2", 2, "x", "32"),
        ("x + 3", 1, "x + 3", "1"),
        ("i // 4 + x", 1, "x", "4"),
    ],
)
def test_exact_region(text: str, extent: int, low: str, size: str) -> None:
    names = Names()
    domains = names.domains({"i": (0, 16), "j": (0, 4)})
    found = estimate_region([Range(names.parse(text), names.parse(extent))], domains)
    assert found is not None
    assert (infix(found[0].min), infix(found[0].extent)) == (low, size)


@pytest.mark.parametrize("texts", [["x + i * 2"], ["i", "i"], ["i * j"], ["min(i, 3)"]])
def test_region_that_is_no_box(texts: list[str]) -> None:
    names = Names()
    domains = names.domains({"i": (0, 16), "j": (0, 4)})
    region = [Range(names.parse(text), names.parse(1)) for text in texts]
    assert estimate_region(region, domains) is None


def test_a_region_is_over_all_domains_where_one_depends_on_another() -> None:
    names = Names()
    domains = names.domains({"k": (0, 4), "i": ("k + 1", "4 - k")})
    region = [Range(names.parse("i + x"), names.parse(1))]
    assert estimate_region(region, domains) is None
    assert ends(bounding_box(region, domains)[0]) == ("x + 1", "x + 4")


def test_predicate_shortens_a_region() -> None:
    names = Names()
    domains = names.domains({"i": (0, 3), "j": (0, 4)})
    region = [Range(names.parse("i * 4 + j"), names.parse(1))]
    found = estimate_region(region, domains, names.parse("i * 4 + j < 10"))
    assert found is not None
    assert (infix(found[0].min), infix(found[0].extent)) == ("0", "10")


def test_upper_bound_takes_what_it_can_exactly() -> None:
    names = Names()
    domains = names.domains({"i": (0, 16), "j": (0, 4)})
    region = [Range(names.parse(text), names.parse(1)) for text in ("i", "i + x", "i * i + y")]
    found = estimate_region_upper_bound(region, domains)
    assert [ends(item) for item in found] == [("0", "15"), ("x", "x + 15"), ("-inf", "inf")]


@examples(200)
@given(st.integers(0, 10**9), st.integers(0, 6), st.integers(0, 6))
def test_upper_bound_holds_everything(seed: int, x: int, y: int) -> None:
    chance, names = Chance(seed), Names()
    region = [Range(names.parse(low), names.parse(size)) for low, size in chance.region()]
    predicate = names.parse(chance.predicate())
    domains = names.domains(chance.domains)
    outside = {names["x"]: x, names["y"]: y}
    box = estimate_region_upper_bound(region, domains, predicate)
    for inside in assignments(domains, 120):
        values = {**inside, **outside}
        if not evaluate(predicate, values):
            continue
        for dimension, (low, high) in zip(region, box, strict=True):
            first = evaluate(dimension.min, values)
            last = first + evaluate(dimension.extent, values) - 1
            assert low is None or evaluate(low, outside) <= first
            assert high is None or last <= evaluate(high, outside)


@examples(300)
@given(st.integers(0, 10**9))
def test_set_of_arithmetic_that_wraps_holds_everything(seed: int) -> None:
    chance, names = Chance(seed), Names()
    expression = names.parse(chance.narrow())
    domains = names.domains(chance.domains)
    low, high = eval_set(expression, domains, Analyzer())
    for values in assignments(domains, 150):
        value = evaluate(expression, values)
        assert low is None or evaluate(low, {}) <= value
        assert high is None or value <= evaluate(high, {})


def test_set_of_the_least_value_divided_by_minus_one_is_the_whole_type() -> None:
    names = Names()
    domains = names.domains({"i": (0, 256)})
    quotient = names.parse("int8(i) // int8(-1)")
    assert ends(eval_set(quotient, domains, Analyzer())) == ("-128", "127")
    assert Analyzer(domains).const_int_bound(quotient) == (-128, 127)
    assert ends(eval_set(names.parse("int8(i) // 2"), domains, Analyzer())) == ("-64", "63")


@pytest.mark.parametrize(
    ("start", "extent", "low", "end"),
    [("15 - i", 1, 0, 16), ("15 - i", 3, 0, 18), ("30 - i * 2", 2, 0, 32)],
)
def test_estimate_region_of_a_falling_index(start: str, extent: int, low: int, end: int) -> None:
    names = Names()
    region = [Range.from_min_extent(names.parse(start), extent)]
    (found,) = estimate_region(region, names.domains({"i": (0, 16)})) or []
    assert (infix(found.min), infix(found.extent)) == (str(low), str(end - low))


def test_a_falling_index_with_gaps_is_no_box() -> None:
    names = Names()
    region = [Range.from_min_extent(names.parse("30 - i * 2"), 1)]
    assert estimate_region(region, names.domains({"i": (0, 16)})) is None


def test_a_predicate_on_a_part_of_its_sum_leaves_no_box() -> None:
    i, j = Var("i", "int32"), Var("j", "int32")
    domains = {i: Range(const(0), const(4)), j: Range(const(0), const(4))}
    side = Range(i, const(1))
    # i is 0 or 1 there, and no other bound says so.
    assert estimate_region([side], domains, i * 4 + j < 6) is None
    assert estimate_region([side], domains, j * 4 + i < 6) is None
    low, high = estimate_region_upper_bound([side], domains, i * 4 + j < 6)[0]
    assert low is not None and high is not None
    assert (constant_value(low), constant_value(high)) == (0, 3)
    # A bound of other loops leaves it alone.
    whole = estimate_region([side], domains, j < 2)
    assert whole is not None and constant_value(whole[0].extent) == 4
    # The digits of a loop that make up the loop are the loop.
    digits = i // 2 * 2 + i % 2 < 3
    part = estimate_region([side], domains, digits)
    assert part is not None and constant_value(part[0].extent) == 3


def test_a_bound_that_perhaps_no_iteration_keeps_leaves_no_box() -> None:
    i, j, n = Var("i", "int32"), Var("j", "int32"), Var("n", "int32")
    domains = {i: Range(const(0), const(4)), j: Range(const(0), const(2))}
    side = Range(i, const(1))
    for bound in (j < n, n * 2 + j < 1, j + n < 2):
        assert estimate_region([side], domains, bound) is None
    # Where it has iterations, it has all of the other loop.
    assert estimate_region([side], domains, j < 1) is not None
    # Of the loop itself it leaves what it says.
    part = estimate_region([side], domains, i < n)
    assert part is not None and constant_value(part[0].min) == 0
