"""What TVM 0.27 makes, and refuses to make, of numbers and nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mlcweb import tir
from mlcweb.ir import InternalError

x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
f = tir.Var("f", "float32")
b = tir.decl_buffer((4, 4), "float32", "b")
nothing = tir.Evaluate(0)

IN_RANGE = [
    ("int8", -128), ("int8", 127), ("uint8", 255), ("int4", 7), ("uint1", 1), ("bool", 1),
    ("int32", -(2**31)), ("int64", 2**63 - 1), ("uint64", 2**63),
]  # fmt: skip
BEYOND = [
    ("int8", -129), ("int8", 128), ("uint8", -1), ("uint8", 256), ("int4", 8), ("uint1", 2),
    ("bool", 2), ("bool", -1), ("int32", 2**31), ("int64", 2**63), ("float32", 1), ("int32x4", 1),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "value"), IN_RANGE)
def test_integers_of_a_type(dtype: str, value: int) -> None:
    assert tir.IntImm(dtype, value).value == tir.const(value, dtype).value == value


@pytest.mark.parametrize(("dtype", "value"), BEYOND)
def test_integers_beyond_a_type(dtype: str, value: int) -> None:
    with pytest.raises(ValueError, match=r"is beyond|is no type of integers"):
        tir.IntImm(dtype, value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float16", 70000.0), ("float32", 1e40), ("float32", -3.5e38), ("float8_e4m3fn", 500.0),
        ("float8_e5m2", 60000.0), ("int32", 1.0), ("float32x4", 1.0),
    ],
)  # fmt: skip
def test_floats_beyond_a_type(dtype: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"is beyond|is no type of floats"):
        tir.FloatImm(dtype, value)


def test_floats_that_are_no_numbers() -> None:
    for dtype in ("float16", "float32", "float64", "float8_e4m3fn"):
        assert tir.FloatImm(dtype, float("inf")).value == float("inf")
        assert tir.FloatImm(dtype, float("nan")).value != tir.FloatImm(dtype, 0.0).value


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tir.And(x, x), "int32 is no condition"),
        (lambda: tir.Not(x), "int32 is no condition"),
        (lambda: tir.Select(x, 1, 2), "int32 is no condition"),
        (lambda: tir.AssertStmt(x, "m", nothing), "int32 is no condition"),
        (lambda: tir.Ramp(x, 1, 1), "more than one lane, not 1"),
        (lambda: tir.Broadcast(x, 0), "more than one lane, not 0"),
        (lambda: tir.Ramp(tir.Ramp(x, 1, 4), 1, 4), "scalars, not of int32x4"),
        (lambda: tir.Shuffle([x], []), "vectors and indices"),
        (lambda: tir.Shuffle([x, f], [0]), "not of float32 and int32"),
        (lambda: tir.Let(x, tir.const(1.5), x), "a int32 cannot be a float32"),
        (lambda: tir.Cast("int32x4", x), "int32 has not the lanes of int32x4"),
        (lambda: tir.SeqStmt([]), "two statements and more"),
        (lambda: tir.SeqStmt([nothing]), "two statements and more"),
        (lambda: tir.BufferLoad(b, [0]), r"2 dimension\(s\), not 1"),
        (lambda: tir.BufferLoad(b, [tir.Ramp(0, 1, 4), 0]), "only the last index"),
        (lambda: tir.BufferStore(b, 1.0, [0]), r"2 dimension\(s\), not 1"),
        (lambda: tir.BufferStore(b, tir.const(1), [0, 0]), "a int32 is stored where float32 is"),
        (lambda: tir.BufferStore(b, 1.0, [0, tir.Ramp(0, 1, 4)]), "where float32x4 is"),
        (lambda: tir.For(x, tir.const(1.5), 4, 0, nothing), "over integers, not float32"),
        (lambda: tir.For(3, 0, 4, 0, nothing), "3 is no Var"),
        (lambda: tir.PrimFunc([3], nothing), "is no Var"),
        (lambda: tir.PrimFunc([x], x), "is no Stmt"),
        (lambda: tir.Var(3, "int32"), "3 is no name"),
        (lambda: tir.Var("x", "nosuch"), 'Unknown data type "nosuch"'),
        (lambda: tir.decl_buffer((1.5,)), "integers, not"),
        (lambda: tir.decl_buffer((2,), "nosuch"), 'Unknown data type "nosuch"'),
        (lambda: tir.decl_buffer((2,), data=x), "a pointer, not of int32"),
        (lambda: b.vload([0]), "1 index"),
        (lambda: b.vload([0, 0], "int32"), "has no int32"),
        (lambda: b.offset_of([0]), "1 index"),
        (lambda: tir.Broadcast(x, tir.vscale()), "or T.vscale\\(\\) times a number"),
        (lambda: tir.const(2**31, "int32"), "is beyond int32"),
        (lambda: tir.const(-1, "uint8"), "is beyond uint8"),
        (lambda: tir.infinity("int32"), "int32 has no infinity"),
        (lambda: tir.max_value("handle"), "handle has no numbers"),
    ],
)
def test_nodes_that_no_program_can_have(make: Callable[[], Any], reason: str) -> None:
    with pytest.raises(InternalError, match=reason):
        make()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (tir.const(3.7).astype("int32"), "3"),
        (tir.const(-3.7).astype("int32"), "-3"),
        (tir.floor(tir.const(2.5)), "T.float32(2)"),
        (tir.ceil(tir.const(2.5)), "T.float32(3)"),
        (tir.trunc(tir.const(-2.5)), "T.float32(-2)"),
        (tir.round(tir.const(3.5)), "T.float32(4)"),
        (tir.nearbyint(tir.const(2.5)), "T.float32(2)"),
        (tir.abs(tir.const(-2.5)), "T.float32(2.5)"),
        (tir.floor(x), "x"),
        (tir.round(x), "x"),
        (tir.reinterpret("float32", f), "f"),
    ],
)
def test_folded_calls(expression: tir.PrimExpr, text: str) -> None:
    assert str(expression) == text


def test_bits_of_numbers_are_those_of_the_other_operand() -> None:
    narrow = tir.Var("c", "int8")
    assert (narrow & 1).dtype == (1 | narrow).dtype == (narrow << 1).dtype == "int8"
    assert (tir.const(1, "int8x2") >> 1).dtype == "int8x2"
    assert (narrow & x).dtype == "int32"


def test_undefined_values_are_int32_by_default() -> None:
    assert tir.undef().dtype == "int32"


def test_sequences_take_expressions() -> None:
    assert str(tir.stmt_seq(1, tir.Evaluate(x))) == "T.evaluate(1)\nT.evaluate(x)"
