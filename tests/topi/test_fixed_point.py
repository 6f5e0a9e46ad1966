"""Products of quantized models, and logarithms that say how many bits a number takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mlcweb import te, topi

SUMS = np.array([[0, 1, -1, 999], [12345, -12345, 10**9, -(10**9)], [3, 5, -3, -5]], "int32")


def rescaled(x: np.ndarray, multiplier: np.ndarray, shift: np.ndarray) -> np.ndarray:
    exact = np.vectorize(lambda a, m, s: math.floor(a * m / 2.0 ** (31 - s) + 0.5), otypes="q")
    return exact(x, multiplier, shift)


@pytest.mark.parametrize(("multiplier", "shift"), [(1 << 30, 1), (1 << 30, -2), (1389247123, -3)])
def test_sums_are_rescaled(run, multiplier, shift):
    got = run(lambda a: topi.fixed_point_multiply(a, multiplier, shift), SUMS)
    np.testing.assert_array_equal(got, rescaled(SUMS, np.int64(multiplier), np.int64(shift)))


@pytest.mark.parametrize("is_shifted", [True, False])
def test_channels_are_rescaled(run, is_shifted):
    factors = np.array([1 << 30, 1389247123, 1 << 29, 987654321], "int32")
    left, right = np.array([1, 2, 0, 1], "int32"), np.array([0, 0, 3, 1], "int32")
    got = run(
        lambda a, y, l, r: topi.fixed_point_multiply_per_axis(a, y, l, r, is_shifted, True, [1]),
        SUMS // 8, factors, left, right,
    )  # fmt: skip
    shift = (left if is_shifted else 0) - right.astype("int64")
    np.testing.assert_array_equal(got, rescaled(SUMS // 8, factors.astype("int64"), shift))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_logarithms_rounded_up(run, dtype):
    x = np.array([1, 2, 3, 4, 5, 1023, 1024, 1025, 2**31 - 1], dtype)
    got = run(lambda a: te.compute(a.shape, lambda i: topi.ceil_log2(a[i])), x)
    assert got.tolist() == [0, 1, 2, 2, 3, 10, 10, 11, 31] and got.dtype == dtype
