"""Builders fold constants and neutral operands, and never change a value: at every type."""

import math
import random
from itertools import product

import pytest

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import Var, arithmetic, folding
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from tests.arith.expressions import INTEGERS, evaluate

ARITHMETIC = {
    "add": E.Add, "subtract": E.Sub, "multiply": E.Mul, "minimum": E.Min, "maximum": E.Max,
    "equal": E.EQ, "not_equal": E.NE, "less": E.LT, "less_equal": E.LE, "greater": E.GT,
    "greater_equal": E.GE,
}  # fmt: skip
DIVISIONS = {"floordiv": E.FloorDiv, "floormod": E.FloorMod, "truncdiv": E.Div, "truncmod": E.Mod}


def numbers(dtype: str) -> list[int] | list[float]:
    """Neutral ones, the ends of the type, and some by chance."""
    if dtypes.is_float(dtype):
        return [0.0, 1.0, -1.0, 2.5, -3.0, 64.0]
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    rng = random.Random(dtype)
    some = [0, 1, -1, low, high, *(rng.randint(low, high) for _ in range(4))]
    return sorted({value for value in some if low <= value <= high})


CASES = [
    *product([*ARITHMETIC, *DIVISIONS], INTEGERS),
    *product(ARITHMETIC, ["float16", "float32", "float64"]),
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_folding_keeps_the_value(name: str, dtype: str) -> None:
    x, y = Var("x", dtype), Var("y", dtype)
    cls = (ARITHMETIC | DIVISIONS)[name]
    for a, b in product(numbers(dtype), numbers(dtype)):
        if b == 0 and name in DIVISIONS:
            continue
        constants = folding.const(a, dtype), folding.const(b, dtype)
        expected = evaluate(cls(x, y), {x: a, y: b})
        for left, right in product((x, constants[0]), (y, constants[1])):
            for builders in (folding, arithmetic):
                built = getattr(builders, name)(left, right)
                assert built.dtype == cls(x, y).dtype
                assert evaluate(built, {x: a, y: b}) == expected
        assert isinstance(getattr(folding, name)(*constants), (E.IntImm, E.FloatImm))


@pytest.mark.parametrize("name", DIVISIONS)
def test_division_by_zero_is_refused(name: str) -> None:
    with pytest.raises(DiagnosticError, match="Division by zero"):
        getattr(folding, name)(Var("x"), folding.const(0))


def test_conditions() -> None:
    p, q = Var("p", "bool"), Var("q", "bool")
    values = (False, True)
    for a, b in product(values, values):
        for left, right in product((p, folding.const(a)), (q, folding.const(b))):
            known = {p: a, q: b}
            assert evaluate(folding.logical_and(left, right), known) == (a and b)
            assert evaluate(folding.logical_or(left, right), known) == (a or b)
            assert evaluate(folding.logical_not(left), known) == (not a)
            assert evaluate(folding.select(left, right, p), known) == (b if a else a)


@pytest.mark.parametrize(
    ("built", "value"),
    [
        (lambda: arithmetic.cast("float16", folding.const(65531, "uint16")), math.inf),
        (lambda: arithmetic.cast("float16", folding.const(65510, "uint16")), 65504.0),
        (lambda: arithmetic.cast("float16", folding.const(65519.0, "float64")), 65519.0),
        (lambda: arithmetic.cast("float32", folding.const(2**60 + 2**36 + 1, "int64")),
         2.0**60 + 2.0**37),
        (lambda: _float16(65504.0) + _float16(8.0), 65504.0),
        (lambda: _float16(65504.0) + _float16(16.0), math.inf),
        (lambda: _float16(2049.0) + _float16(1.0), 2048.0),
        (lambda: folding.const(16777217.0) + folding.const(1.0), 16777216.0),
        (lambda: folding.const(0.1) + folding.const(0.2), 0.30000001192092896),
        (lambda: arithmetic.equal(_float16(2049.0), _float16(2048.0)), 1),
        (lambda: arithmetic.divide(_float16(1.0), _float16(3.0)), 0.333251953125),
    ],
)  # fmt: skip
def test_constants_are_rounded_as_their_type_rounds(built, value) -> None:
    assert built().value == value


def test_a_literal_keeps_its_digits_when_it_is_converted() -> None:
    assert arithmetic.cast("float64", folding.const(0.1)).value == 0.1
    assert (Var("x", "float16") * 0.1).b.value == 0.1


def test_a_literal_beyond_the_other_operand_is_refused() -> None:
    with pytest.raises(DiagnosticError, match="70000 is beyond float16"):
        Var("x", "float16") + 70000


def _float16(value: float) -> E.PrimExpr:
    return folding.const(value, "float16")
