"""Bounds by interval arithmetic, with the wrap-around of integer types."""

import pytest

from mlcweb.codegen.interpreter.ranges import Ranges
from mlcweb.tir import Var
from mlcweb.tir.arithmetic import const, floordiv, floormod, maximum, minimum

i, j = Var("i"), Var("j")
byte = Var("b", "int8")


@pytest.fixture
def ranges():
    known = Ranges()
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
    assert ranges.of(expression) == expected
    assert not ranges.can_overflow(expression)


def test_unknown_variables_have_all_values_of_their_type(ranges):
    assert ranges.of(byte) == (-128, 127)
    assert ranges.can_overflow(byte + const(1, "int8"))
    assert ranges.of(byte + const(1, "int8")) == (-128, 127)
