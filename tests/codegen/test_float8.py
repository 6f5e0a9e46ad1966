"""Floats of 8 bits: in arrays, computed in float32 and rounded at each step, and legalized."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, tir
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from mlcweb.tir import transform

INFINITY, NAN = math.inf, math.nan


def number(bits: int, dtype: str) -> float:
    """What a byte means, by the formats' definition (OCP 8-bit floating point)."""
    fraction, bias = (3, 7) if dtype == "float8_e4m3fn" else (2, 15)
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, digits = divmod(bits & 0x7F, 1 << fraction)
    if dtype == "float8_e4m3fn" and bits & 0x7F == 0x7F:
        return NAN
    if dtype == "float8_e5m2" and exponent == 31:
        return NAN if digits else sign * INFINITY
    if exponent == 0:
        return sign * digits * 2.0 ** (1 - bias - fraction)
    return sign * (1 + digits / (1 << fraction)) * 2.0 ** (exponent - bias)


NUMBERS = {
    dtype: np.array([number(bits, dtype) for bits in range(256)], "float32")
    for dtype in ("float8_e4m3fn", "float8_e5m2")
}
dtypes = pytest.mark.parametrize("dtype", NUMBERS)


def nearest(value: float, dtype: str) -> float:
    """The number nearest to a value, of two the even one, by looking at all of them. What is as
    near to the next power of two as to the greatest number is rounded as if that was there, too."""
    if math.isnan(value):
        return NAN
    finite = [n for n in NUMBERS[dtype][:128].tolist() if math.isfinite(n)]
    beyond = NAN if dtype == "float8_e4m3fn" else INFINITY
    scale = [*finite, 2 * finite[-1] - finite[-2]]
    magnitude = min(abs(value), scale[-1])
    _, _, place = min((abs(magnitude - n), place % 2, place) for place, n in enumerate(scale))
    return math.copysign(beyond if place == len(finite) else finite[place], value)


def samples(dtype: str) -> np.ndarray[Any, Any]:
    """All numbers of the type, what is half way between two, and much else."""
    numbers = NUMBERS[dtype]
    with np.errstate(all="ignore"):
        halves = (numbers[1:] + numbers[:-1]) / 2
    random = np.random.default_rng(3)
    spread = random.standard_normal(500) * 10.0 ** random.integers(-7, 7, 500)
    special = [0.0, -0.0, 464, 464.1, 480, 61440, 61439, 65536, 1e38, INFINITY, -INFINITY, NAN]
    return np.concatenate([numbers, halves, spread, special]).astype("float32")


def rounded(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    return np.array([nearest(value, dtype) for value in values.tolist()], "float32")


@dtypes
def test_arrays_hold_the_nearest_numbers(dtype: str) -> None:
    values = samples(dtype)
    array = tvm.nd.empty(values.shape, dtype).copyfrom(values)
    np.testing.assert_array_equal(array.numpy(), rounded(values, dtype))
    assert len(array.tobytes()) == len(values)
    every = tvm.nd.empty((256,), dtype).copyfrom(NUMBERS[dtype])
    np.testing.assert_array_equal(every.numpy(), NUMBERS[dtype])
    assert np.signbit(array.numpy()[values == 0]).any()


def program(dtype: str, count: int) -> tir.PrimFunc:
    shape = f"({count},)"
    func = from_source(
        f"""@T.prim_func
def main(X: T.Buffer({shape}, "float32"), A: T.Buffer({shape}, "{dtype}"),
         B: T.Buffer({shape}, "float32"), C: T.Buffer({shape}, "{dtype}")):
    for i in range({count}):
        A[i] = T.Cast("{dtype}", X[i])
        B[i] = T.Cast("float32", A[i])
        C[i] = T.max(A[i] * A[i] + T.{dtype}(1.5), T.{dtype}(-2))
"""
    )
    assert isinstance(func, tir.PrimFunc)
    return func


@dtypes
@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
def test_each_operation_is_rounded(dtype: str, target: str) -> None:
    x = samples(dtype)
    a, b, c = (tvm.nd.empty(x.shape, t) for t in (dtype, "float32", dtype))
    tvm.build(program(dtype, len(x)), target=target)(tvm.nd.array(x), a, b, c)
    narrow = rounded(x, dtype)
    np.testing.assert_array_equal(a.numpy(), narrow)
    np.testing.assert_array_equal(b.numpy(), narrow)
    with np.errstate(all="ignore"):
        squares = rounded(narrow * narrow, dtype)
        sums = rounded(squares + np.float32(1.5), dtype)
    np.testing.assert_array_equal(c.numpy(), sums)


@dtypes
def test_other_floats_of_eight_bits_are_refused(dtype: str) -> None:
    func = from_source(program(dtype, 4).script().replace(dtype, "float8_e3m4"))
    with pytest.raises(TVMError, match="No target here computes with float8_e3m4"):
        tvm.build(func, target="wasm")


def handles(dtype: str) -> IRModule:
    source = f"""@T.prim_func
def main(a: T.handle("{dtype}"), d: T.handle("{dtype}")):
    A = T.decl_buffer((256,), "{dtype}", data=a)
    D = T.decl_buffer((256,), "{dtype}", data=d)
    C = T.decl_buffer((256,), "{dtype}")
    for i in range(256):
        C[i] = A[i] + A[i]
        D[i] = C[i] * T.{dtype}(0.25)
"""
    return IRModule({"main": from_source(source)})


@dtypes
def test_legalizing_computes_in_float32_and_stores_bytes(dtype: str) -> None:
    computed = transform.FP8ComputeLegalize()(handles(dtype))
    assert "C = T.decl_buffer((256,))" in computed.script()
    tvm.ir.assert_structural_equal(transform.FP8ComputeLegalize()(computed), computed)
    stored = transform.FP8StorageLegalize()(computed)
    assert "float8" not in stored.script()
    assert 'a: T.handle("uint8"), d: T.handle("uint8")' in stored.script()
    with pytest.raises(TVMError, match="computed in float32 here, not in float16"):
        transform.FP8ComputeLegalize("float16")


@dtypes
def test_targets_that_know_the_type_keep_it(dtype: str) -> None:
    bound = transform.BindTarget(Target({"kind": "cuda", "arch": "sm_90"}))(handles(dtype))
    tvm.ir.assert_structural_equal(transform.FP8ComputeLegalize()(bound), bound)
