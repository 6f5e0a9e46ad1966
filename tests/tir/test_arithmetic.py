"""Builders of expressions: types, folding, refusals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb import tir
from mlcweb.ir import DiagnosticError
from mlcweb.tir import Broadcast, FloatImm, IntImm, PrimExpr, Var, arithmetic, const
from mlcweb.tir import dtype as dtypes

i, n = Var("i"), Var("n", "int64")
x, h = Var("x", "float32"), Var("h", "float16")
b = Var("b", "bool")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, "bool"), (3, "int32"), (2**40, "int64"), (0.5, "float32")],
)
def test_types_of_constants(value: Any, dtype: str) -> None:
    assert const(value).dtype == dtype


def test_constants_of_a_type() -> None:
    assert arithmetic.cast("int8", const(300)).value == 44
    with pytest.raises(ValueError, match="300 is beyond int8"):
        const(300, "int8")
    assert isinstance(const(3, "float16"), FloatImm)
    vector = const(1, "int32x4")
    assert isinstance(vector, Broadcast)
    assert (vector.dtype, vector.lanes) == ("int32x4", 4)


@pytest.mark.parametrize(
    ("expression", "text", "dtype"),
    [
        (i + 1, "i + 1", "int32"), (1 + i, "1 + i", "int32"), (i + 0, "i", "int32"),
        (i * 1, "i", "int32"), (i * 0, "0", "int32"), (0 * i, "0", "int32"), (i - 0, "i", "int32"),
        (i // 1, "i", "int32"), (i % 1, "0", "int32"), (-i, "i * -1", "int32"),
        (i + n, 'T.Cast("int64", i) + n', "int64"), (i + x, 'T.Cast("float32", i) + x', "float32"),
        (n + 1, "n + T.int64(1)", "int64"), (x * 2, "x * T.float32(2)", "float32"),
        (h + x, 'T.Cast("float32", h) + x', "float32"), (x / 2, "x / T.float32(2)", "float32"),
        (b + i, 'T.Cast("int32", b) + i', "int32"), (i < 3, "i < 3", "bool"),
        (i.equal(3), "i == 3", "bool"), (i << 2, "i << 2", "int32"), (i & 1, "i & 1", "int32"),
        (~i, "~i", "int32"), (~b, "not b", "bool"),
        (x // 2, "T.floor(x / T.float32(2))", "float32"),
        (i.astype("int32"), "i", "int32"), (i.astype("float32"), 'T.Cast("float32", i)', "float32"),
        (const(3).astype("int8"), "T.int8(3)", "int8"),
        (arithmetic.minimum(i, i), "i", "int32"), (arithmetic.maximum(3, 4), "4", "int32"),
    ],
)  # fmt: skip
def test_operators(expression: PrimExpr, text: str, dtype: str) -> None:
    assert (str(expression), expression.dtype) == (text, dtype)


FOLDED: list[tuple[Callable[..., PrimExpr], Callable[[int, int], Any]]] = [
    (arithmetic.add, operator.add), (arithmetic.subtract, operator.sub),
    (arithmetic.multiply, operator.mul), (arithmetic.floordiv, operator.floordiv),
    (arithmetic.floormod, operator.mod), (arithmetic.minimum, min), (arithmetic.maximum, max),
    (arithmetic.less, operator.lt), (arithmetic.greater_equal, operator.ge),
    (arithmetic.equal, operator.eq), (arithmetic.not_equal, operator.ne),
    (arithmetic.bitwise_and, operator.and_), (arithmetic.bitwise_xor, operator.xor),
]  # fmt: skip


@given(
    st.sampled_from(FOLDED),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1).filter(bool),
)
def test_constants_fold_as_in_32_bits(pair: Any, a: int, c: int) -> None:
    build, reference = pair
    result = build(const(a), const(c))
    assert isinstance(result, IntImm)
    assert result.value == dtypes.wrap_integer(int(reference(a, c)), "int32")


@given(st.integers(-1000, 1000), st.integers(-50, 50).filter(bool))
def test_truncated_division(a: int, c: int) -> None:
    quotient = int(arithmetic.truncdiv(a, c))
    remainder = int(arithmetic.truncmod(a, c))
    assert quotient == int(a / c)
    assert quotient * c + remainder == a


def test_logic() -> None:
    condition = i < 3
    assert arithmetic.logical_and(condition, True) is condition
    assert str(arithmetic.logical_and(condition, False)) == "T.bool(False)"
    assert arithmetic.logical_or(False, condition) is condition
    assert str(arithmetic.logical_not(condition)) == "not i < 3"
    assert arithmetic.select(True, i, n).dtype == "int64"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: i / 2, "division of integers is ambiguous"), (lambda: i // 0, "Division by zero"),
        (lambda: i % 0, "Division by zero"), (lambda: x & 1, "bitwise_and needs integers"),
        (lambda: i + "text", "Strings have no arithmetic"),
        (lambda: i + Var("p", "handle"), "No arithmetic between int32 and handle"),
        (lambda: arithmetic.convert(object()), "^a object is not an expression"),
        (lambda: arithmetic.convert(len), "^the function len, which is not called, is not an exp"),
        (lambda: arithmetic.convert(None), r"^None \(NoneType\) is not an expression"),
        (lambda: const(1e39, "float32"), "beyond float32, whose greatest value is 3.40"),
        (lambda: const(-7e4, "float16"), "beyond float16, whose greatest value is 65504"),
    ],
)  # fmt: skip
def test_refusals(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        build()


def test_symbolic_expressions_have_no_truth() -> None:
    with pytest.raises(ValueError, match="has no truth value"):
        bool(i < 3)
    assert bool(const(True))
    assert [10, 20, 30][const(1)] == 20


def test_numbers_on_the_left_of_bitwise_operators() -> None:
    x = Var("x")
    for expression, text in (
        (10 & x, "10 & x"), (10 | x, "10 | x"), (10 ^ x, "10 ^ x"), (10 << x, "10 << x"),
        (10 >> x, "10 >> x"),
    ):  # fmt: skip
        assert str(expression) == text


@pytest.mark.parametrize("amount", [-1, 32])
def test_shifts_stay_within_the_type(amount: int) -> None:
    x = Var("x")
    for shift in (lambda: x << amount, lambda: x >> amount):
        with pytest.raises(DiagnosticError, match="non-negative and less than 32"):
            shift()
    assert str(Var("y", "int64") << 32) == "y << T.int64(32)"


def test_floats_have_no_bits() -> None:
    with pytest.raises(DiagnosticError, match="needs an integer"):
        ~const(1.5)


def test_numbers_of_numpy_keep_their_types() -> None:
    for number in (np.uint8(1), np.int64(1), np.float16(1), np.float64(1), np.bool_(True)):
        assert const(number).dtype == str(number.dtype)


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("int8", "uint8", "uint8"), ("uint32", "int32", "uint32"), ("uint64", "int64", "uint64"),
        ("uint32", "int8", "uint32"), ("uint8", "int32", "int32"), ("uint32", "int64", "int64"),
        ("bool", "uint8", "uint8"), ("uint16", "float16", "float16"),
    ],
)  # fmt: skip
def test_integers_of_both_kinds_have_tvms_common_type(a, b, common):
    """As a real TVM 0.27 says: the wider type, and of two types of one width the unsigned."""
    for x, y in ((Var("x", a), Var("y", b)), (Var("y", b), Var("x", a))):
        assert (x + y).dtype == (x * y).dtype == common
        assert (x < y).a.dtype == (x < y).b.dtype == common


def test_numbers_are_no_conditions():
    """As TVM says; a number that stands for a condition is compared with zero."""
    condition, number = Var("c", "bool"), Var("i")
    for connect in (
        lambda: tir.all(condition, number),
        lambda: tir.any(number, condition),
        lambda: tir.all(condition, 1),
        lambda: arithmetic.logical_not(number),
        lambda: tir.if_then_else(number, 1, 2),
    ):
        with pytest.raises(DiagnosticError, match="is boolean, and"):
            connect()
    assert str(tir.all(condition, number != 0)) == "c and i != 0"


def test_floats_beyond_float32_are_float64() -> None:
    assert [const(value).dtype for value in (3.4e38, 3.402e39, -3.402e39, math.inf, math.nan)] == [
        "float32", "float64", "float64", "float32", "float32",
    ]  # fmt: skip
    digits = 3.38953139e38  # of the greatest bfloat16, which is a little less
    assert const(digits, "bfloat16").value == digits
    with pytest.raises(ValueError, match="beyond bfloat16"):
        const(3.41e38, "bfloat16")
