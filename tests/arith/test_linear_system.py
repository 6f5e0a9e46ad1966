"""Systems of linear constraints against counting all values."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.arith import linear_system
from mlcweb.arith.linear_system import LinearSystem, digit_units, number
from mlcweb.tir import Var
from tests.strategies import examples


@examples(200)
@given(seed=st.integers(0, 2**30))
def test_the_answer_is_that_of_all_values(seed):
    random = Random(seed)
    domains = [(random.randrange(-4, 2), random.randrange(1, 6)) for _ in range(3)]
    system = LinearSystem()
    forms = [system.variable(*domain) for domain in domains]
    constraints = []
    for _ in range(random.randrange(1, 4)):
        scales = [random.choice((-6, -3, -2, -1, 0, 1, 2, 4, 16)) for _ in domains]
        low = random.randrange(-9, 9)
        high = low + random.choice((0, 0, 1, 4))
        constraints.append((scales, low, high))
        total = forms[0].times(scales[0])
        for form, scale in zip(forms[1:], scales[1:], strict=True):
            total = total.plus(form, scale)
        system.require(total, low, high)
    if random.random() < 0.5:
        system.eliminate({0})
    possible = any(
        all(
            low <= sum(map(int.__mul__, scales, point)) <= high for scales, low, high in constraints
        )
        for point in product(*(range(low, high + 1) for low, high in domains))
    )
    assert (system.solution() is not None) == possible


@pytest.mark.parametrize("width", [1, 7, 16])
def test_quotient_and_remainder_are_digits_of_one_number(width):
    system = LinearSystem()
    start, step = system.variable(0, 255), system.variable(1, 255)
    f = Var("f", "int32")
    one, other = {f: start}, {f: start.plus(step)}
    for digit in (f // width, f % width):
        system.require(system.form(digit, one).plus(system.form(digit, other), -1), 0, 0)
    assert system.solution() is None


def test_a_digit_of_a_remainder_is_a_digit_of_the_whole():
    system = LinearSystem()
    f = Var("f", "int32")
    values = {f: system.variable(0, 4095)}
    parts = f // 784 * 4 + f % 784 // 196, f // 196
    whole, quotient = (system.form(part, values) for part in parts)
    difference = whole.plus(quotient, -1)
    assert (difference.terms, difference.constant) == ({}, 0)


@examples(200)
@given(seed=st.integers(0, 2**30))
def test_digits_are_those_of_their_number(seed):
    random = Random(seed)
    f = Var("f", "int32")
    low, extent = random.randrange(-9, 5), random.randrange(1, 40)
    divisors = [random.choice((2, 3, 4, 6, 8, 12)) for _ in range(3)]
    digits = [f // divisors[0], f % divisors[1], f % divisors[1] // divisors[2]]
    values = [
        lambda n: n // divisors[0],
        lambda n: n % divisors[1],
        lambda n: n % divisors[1] // divisors[2],
    ]
    number_of = random.randrange(low, low + extent)
    shift = [random.choice((0, 0, 0, 1)) for _ in digits]
    system = LinearSystem()
    form = number(system.digits(low, low + extent - 1, digit_units(digits).get(f, ())))
    for digit, value, more in zip(digits, values, shift, strict=True):
        wanted = value(number_of) + more
        system.require(system.form(digit, {f: form}), wanted, wanted)
    possible = any(
        all(value(n) == value(number_of) + more for value, more in zip(values, shift, strict=True))
        for n in range(low, low + extent)
    )
    assert (system.solution() is not None) == possible


def test_what_counts_in_the_digits_of_a_variable():
    f, g = Var("f", "int32"), Var("g", "int32")
    units = digit_units([f // 8 % 4 * 16 + g, f % 2, f % 3, (f + g) // 5, g // f])
    assert units == {f: [2, 8, 32]}


def test_tiles_of_different_iterations_are_seen_to_be_apart_at_once(monkeypatch):
    monkeypatch.setattr(linear_system, "MAX_HALVINGS", 0)
    f = Var("f", "int32")
    row, column = f // 64 * 64 + f % 32 // 8 * 16, f % 64 // 32 * 64 + f % 8 * 8
    system = LinearSystem()
    units = digit_units([row, column])[f]
    one, other = (system.digits(0, 127, units) for _ in range(2))
    step = system.variable(1, 127)
    moves = {unit: system.variable() for unit in one}
    for unit, move in moves.items():
        system.require(other[unit].plus(one[unit], -1).plus(move, -1), 0, 0)
    system.require(number(moves).plus(step, -1), 0, 0)
    for index, width in ((row, 16), (column, 8)):
        start, end = (
            system.form(index, {f: number(digits)}).plus(system.variable(0, width - 1))
            for digits in (one, other)
        )
        system.require(end.plus(start, -1), 0, 0)
    system.eliminate({v for move in (step, *moves.values()) for v in move.terms})
    assert system.solution() is None


def test_numbers_beyond_those_of_floats_are_exact():
    system = LinearSystem()
    x = system.variable(2**53, 2**53 + 1)
    system.require(x.times(3), 3 * 2**53 + 1, 3 * 2**53 + 3)
    assert system.solution() == [(2**53 + 1, 2**53 + 1)]
