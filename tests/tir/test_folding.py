"""Builders fold constants and neutral operands, and never change a value: at every type."""

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
