"""Products in fixed point, on all targets, by Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", "wasm", "llvm", "simulated"]
NUMBERS = np.array([0, 1, -1, 2, -2, 3, -3, 12345, -12345, 10**6, -(10**6), 2**31 - 1,
                    -(2**31), 7, -7, 2**30], "int32")  # fmt: skip
MULTIPLIERS = np.array([1 << 30, 12345678, -(1 << 30), 2**31 - 1] * 4, "int32")
LEFT, RIGHT = (np.array(shifts * 4, "int32") for shifts in ([2, 0, 0, 1], [0, 0, 5, 1]))


def product(x: int, multiplier: int, left: int, right: int) -> int:
    """x · multiplier · 2^(left - right - 31), halves rounded up, and the low 32 bits of that."""
    right += 31
    whole = ((x << left) * multiplier + (1 << right - 1)) >> right
    return (whole + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("multiplier", [1 << 30, 1395864371, -12345678])
def test_multiplied_by_a_constant(target: str, multiplier: int, shift: int) -> None:
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(4):
        for j in T.vectorized(4):
            B[i * 4 + j] = T.q_multiply_shift(A[i * 4 + j], {multiplier}, 31, {shift})
""")
    a, b = tvm.nd.array(NUMBERS), tvm.nd.array(np.zeros(16, "int32"))
    tvm.build(func, target)["main"](a, b)
    left, right = max(shift, 0), max(-shift, 0)
    assert b.numpy().tolist() == [product(x, multiplier, left, right) for x in NUMBERS.tolist()]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shifts", [True, False])
def test_multiplied_by_numbers_of_channels(target: str, shifts: bool) -> None:
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), Y: T.Buffer((16,), "int32"), L: T.Buffer((16,), "int32"),
         R: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        B[i] = T.Call("int32", "tir.q_multiply_shift_per_axis",
                      [A[i], Y[i], L[i], R[i], 31, T.bool({shifts}), T.bool(True)])
""")
    arrays = (NUMBERS, MULTIPLIERS, LEFT, RIGHT, np.zeros(16, "int32"))
    *inputs, b = map(tvm.nd.array, arrays)
    tvm.build(func, target)["main"](*inputs, b)
    expected = [
        product(x, y, left if shifts else 0, right)
        for x, y, left, right in zip(*(part.tolist() for part in arrays[:4]), strict=True)
    ]
    assert b.numpy().tolist() == expected
