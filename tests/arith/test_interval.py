"""Interval arithmetic: no value lies outside, whether a result is exact or wraps around."""

from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import Analyzer, ConstIntBound
from mlcweb.arith.interval import RULES, ValueRanges
from mlcweb.lower.optimize.indices import Indices
from mlcweb.tir import Var
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const, floordiv, floormod, maximum, minimum
from tests.arith.expressions import Chance, Names, assignments, evaluate, truncdiv
from tests.strategies import examples

i, j = Var("i"), Var("j")
byte = Var("b", "int8")

EXACT = {
    E.Add: lambda a, b: a + b,
    E.Sub: lambda a, b: a - b,
    E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b,
    E.FloorMod: lambda a, b: a % b,
    E.Div: truncdiv,
    E.Mod: lambda a, b: a - b * truncdiv(a, b),
    E.Min: min,
    E.Max: max,
    "shift_right": lambda a, b: a >> b,
    "bitwise_and": lambda a, b: a & b,
    E.Select: lambda a, b: a,
    "if_then_else": lambda a, b: b,
}


@pytest.fixture
def ranges():
    known = ValueRanges()
    known.bind(i, 0, 9)
    known.bind(j, -4, 3)
    return known


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (i + j, (-4, 12)),
        (i - j, (-3, 13)),
        (i * j, (-36, 27)),
        (floordiv(j, const(2)), (-2, 1)),
        (floormod(j, const(4)), (0, 3)),
        (floormod(i, const(16)), (0, 9)),
        (minimum(i, const(3)), (0, 3)),
        (maximum(j, const(0)), (0, 3)),
    ],
)
def test_bounds(ranges, expression, expected):
    assert ranges.interval(expression) == expected
    assert not ranges.can_overflow(expression)


def test_what_is_told_of_a_variable_later_counts(ranges):
    k = Var("k")
    everything = ranges.interval(k)
    assert ranges.interval(floormod(i + k, const(16))) == (0, 15)
    ranges.bind(k, 0, 3)
    assert ranges.interval(k) == (0, 3) != everything
    assert ranges.interval(floormod(i + k, const(16))) == (0, 12)


def test_unknown_variables_have_all_values_of_their_type(ranges):
    assert ranges.interval(byte) == (-128, 127)
    assert ranges.can_overflow(byte + const(1, "int8"))
    assert ranges.interval(byte + const(1, "int8")) == (-128, 127)


def test_the_least_value_divided_by_minus_one_overflows(ranges):
    assert ranges.can_overflow(floordiv(byte, const(-1, "int8")))
    assert ranges.can_overflow(E.Div(byte, const(-1, "int8")))
    assert not ranges.can_overflow(floordiv(byte, const(2, "int8")))


@pytest.mark.parametrize("operation", RULES, ids=str)
def test_rules_hold_all_exact_results(operation):
    """Of all intervals between -4 and 4."""
    by_zero = {E.FloorDiv, E.FloorMod, E.Div, E.Mod}
    bounds = [ConstIntBound(*ends) for ends in combinations_with_replacement(range(-4, 5), 2)]
    for a, b in product(bounds, bounds):
        found = RULES[operation](a, b)
        if found is None or (operation == "tir.shift_right" and b[0] < 0):
            continue
        for x, y in product(range(a[0], a[1] + 1), range(b[0], b[1] + 1)):
            if y != 0 or operation not in by_zero:
                assert found[0] <= EXACT[operation](x, y) <= found[1]


@examples(400)
@given(st.integers(0, 10**9), st.booleans())
def test_no_value_lies_outside(seed: int, narrow: bool) -> None:
    chance, names = Chance(seed), Names()
    expression = names.parse(chance.narrow() if narrow else chance.index(3))
    domains = names.domains(chance.domains)
    known = [Analyzer(domains).const_int_bound(expression)]
    for ranges in (ValueRanges(), Indices()):
        for variable, domain in domains.items():
            ranges.bind(variable, int(domain.min), int(domain.min) + int(domain.extent) - 1)
        known.append(ranges.interval(expression))
    for values in assignments(domains, 150):
        value = evaluate(expression, values)
        assert all(low <= value <= high for low, high in known)
