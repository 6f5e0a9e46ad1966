"""Intrinsic calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te, tir
from mlcweb.ir import DiagnosticError
from mlcweb.ir.op import Op
from mlcweb.tir import Var, const, intrinsics

i, x, u = Var("i"), Var("x", "float32"), Var("u", "uint8")


def test_functions_of_floats() -> None:
    call = intrinsics.exp(x)
    assert (str(call), call.dtype) == ("T.exp(x)", "float32")
    assert str(intrinsics.sqrt(i)) == 'T.sqrt(T.Cast("float32", i))'
    assert intrinsics.tanh(Var("d", "float64")).dtype == "float64"


def test_absolute_values() -> None:
    assert str(intrinsics.absolute(x)) == "T.fabs(x)"
    assert str(intrinsics.absolute(i)) == "T.abs(i)"
    assert intrinsics.absolute(u) is u
    assert str(intrinsics.absolute(const(-3))) == "3"


def test_functions_of_two_values_match_types() -> None:
    assert str(intrinsics.power(x, 2)) == "T.pow(x, T.float32(2))"


def test_choices() -> None:
    choice = intrinsics.if_then_else(i < 3, x, 0)
    assert (str(choice), choice.dtype) == ("T.if_then_else(i < 3, x, T.float32(0))", "float32")
    assert intrinsics.if_then_else(True, x, 0.0) is x


def test_bits_and_limits() -> None:
    assert intrinsics.reinterpret("int32", x).dtype == "int32"
    with pytest.raises(DiagnosticError, match="widths differ"):
        intrinsics.reinterpret("int64", x)
    assert str(intrinsics.min_value("int8")) == "T.int8(-128)"
    assert intrinsics.max_value("int").value == 2**31 - 1
    assert intrinsics.isnan(x).dtype == "bool"


def test_integers_are_neither_nan_nor_infinite() -> None:
    for value in (i, u, i < 3):
        assert str(intrinsics.isnan(value)) == str(intrinsics.isinf(value)) == "T.bool(False)"
        assert str(intrinsics.isfinite(value)) == "T.bool(True)"


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
@pytest.mark.parametrize("namespace", [te, tir])
def test_finite_numbers(target: str, namespace: Any) -> None:
    numbers = np.array([1.5, np.inf, -np.inf, np.nan, -3.4e38, 0.0], "float32")
    A = te.placeholder((6,), "float32", name="A")
    B = te.compute((6,), lambda i: namespace.isfinite(A[i]), name="B")
    out = tvm.nd.empty((6,), "bool")
    tvm.build(te.create_prim_func([A, B]), target=target)["main"](tvm.nd.array(numbers), out)
    np.testing.assert_array_equal(out.numpy(), np.isfinite(numbers))


def test_external_calls_have_effects() -> None:
    call = intrinsics.call_extern("int32", "f", i)
    assert isinstance(call.op, Op)
    assert not call.op.pure
    assert Op.get("tir.exp").pure
    assert str(intrinsics.call_packed("f", 1)) == 'T.call_packed("f", 1)'


def test_builtins_as_tvm_calls_them():
    vectors = tir.Var("a", "int8x4"), tir.Var("b", "int8x4")
    assert tir.dp4a(*vectors, tir.Var("sum", "int32")).dtype == "int32"
    x = tir.Var("x", "int32")
    assert str(tir.assume(cond=x > 3)) == "T.assume(x > 3)"
