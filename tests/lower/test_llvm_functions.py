"""LLVM's functions that any processor has, on all targets."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", "wasm", "llvm"]
INTEGERS = np.array([0, 1, -1, 8, 200, -200, 2**31 - 1, -(2**31)], "int32")
BITS = INTEGERS.view("uint32")
FLOATS = np.array([0.0, 0.25, 1.5, 2.5, 3.0, 7.75, 16.0, 100.0], "float32")

CASES = {
    "llvm.ctlz.i32": ("A[i], T.bool(False)", [32 - int(x).bit_length() for x in BITS]),
    "llvm.cttz": ("A[i], T.bool(False)", [(int(x) & -int(x)).bit_length() - 1 for x in BITS]),
    "llvm.ctpop.i32": ("T.uint32(1), A[i]", [int(x).bit_count() for x in BITS]),
    "llvm.umax.i32": ("A[i], 9", np.maximum(BITS, 9).view("int32")),
    "llvm.smin": ("A[i], 9", np.minimum(INTEGERS, 9)),
    "llvm.sadd.sat.i32": ("A[i], 100", np.minimum(INTEGERS.astype("int64") + 100, 2**31 - 1)),
    "llvm.usub.sat.i32": (
        "A[i], 100",
        np.maximum(BITS.astype("int64") - 100, 0).astype("uint32").view("int32"),
    ),
}
CASES["llvm.cttz"][1][0] = 32


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_functions_of_integers(target: str, name: str) -> None:
    arguments, expected = CASES[name]
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = T.call_llvm_pure_intrin("int32", "{name}", {arguments})
""")
    a, b = tvm.nd.array(INTEGERS), tvm.nd.array(np.zeros(8, "int32"))
    tvm.build(func, target)["main"](a, b)
    assert b.numpy().tolist() == list(expected)


@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_vectors_of_floats(target: str) -> None:
    """Those without a result say something to the compiler, and compute nothing."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.call_llvm_intrin("", "llvm.assume", T.bool(True))
    T.evaluate(T.Call("void", "tir.prefetch", [T.address_of(A[0]), 0, 3, 1]))
    for i in range(2):
        B[i * 4:i * 4 + 4] = T.call_llvm_pure_intrin(
            "float32x4", "llvm.fmuladd.v4f32", A[i * 4:i * 4 + 4],
            T.call_llvm_pure_intrin("float32x4", "llvm.sqrt.v4f32", A[i * 4:i * 4 + 4]),
            T.call_llvm_pure_intrin("float32x4", "llvm.floor.v4f32", A[i * 4:i * 4 + 4]))
""")
    a, b = tvm.nd.array(FLOATS), tvm.nd.array(np.zeros(8, "float32"))
    tvm.build(func, target)["main"](a, b)
    expected = FLOATS * np.sqrt(FLOATS) + np.floor(FLOATS)
    np.testing.assert_allclose(b.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_round_of_llvm_rounds_halves_away_from_zero(target: str) -> None:
    """That of TensorIR rounds them to the even number."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        away: T.float32 = T.call_llvm_pure_intrin("float32", "llvm.round", A[i])
        B[i] = away * T.float32(10) + T.round(A[i])
""")
    numbers = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 1.2], "float32")
    a, b = tvm.nd.array(numbers), tvm.nd.array(np.zeros(6, "float32"))
    tvm.build(func, target)["main"](a, b)
    assert b.numpy().tolist() == [10, 22, 32, -10, -32, 11]
