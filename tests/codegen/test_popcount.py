"""`T.popcount` counts the bits of integers, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb
from mlcweb import tir
from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import from_source
from mlcweb.tir import expr as E
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import assert_kernels_give

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def counting(dtype: str, header: str) -> Any:
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}")):
    for i in {header}:
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.popcount(A[vi])
"""
    )


def numbers(dtype: str) -> Any:
    limits = np.iinfo(dtype)
    numbers = np.random.default_rng(0).integers(limits.min, limits.max, 16, dtype, endpoint=True)
    numbers[:3] = [limits.min, limits.max, 1]
    return numbers


def bits(array: Any) -> Any:
    mask = (1 << 8 * array.itemsize) - 1
    return np.array([(int(x) & mask).bit_count() for x in array], array.dtype)


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_type_of_integers(dtype: str, target: str) -> None:
    a = numbers(dtype)
    for header in ("range(16)", "T.vectorized(16)"):
        b = mlcweb.nd.array(np.zeros_like(a))
        mlcweb.build(counting(dtype, header), target=target)["main"](mlcweb.nd.array(a), b)
        np.testing.assert_array_equal(b.numpy(), bits(a))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64"])
def test_kernels(dtype: str) -> None:
    """The instruction is the language's own."""
    a = numbers(dtype)
    func = counting(dtype, 'T.thread_binding(16, thread="threadIdx.x")')
    source = mlcweb.build(func, target="cuda").imports[0].get_source()
    assert "popcount_(A[" in source and "__popc(" in source
    if dtype == "int32":
        assert_kernels_give(func, [a], bits(a))
    if COMPILER is not None:
        b = np.zeros_like(a)
        run_cuda_on_cpu(func, [a, b])
        np.testing.assert_array_equal(b, bits(a))


def test_constants_are_folded_and_floats_refused() -> None:
    assert tir.popcount(E.IntImm("int8", -1)).value == 8
    assert tir.popcount(E.Var("x", "int64")).dtype == "int64"
    with pytest.raises(DiagnosticError, match="bits of an integer, not of a float32"):
        tir.popcount(E.Var("x", "float32"))
