"""Random kernels of all types, and of threads that exchange data: what they compute on the devices
that are here is what the interpreter computes, or threads in lockstep; and their CUDA compiles."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlcweb as tvm
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import PrimFunc
from tests.gpu import compile_cuda, runners
from tests.lower.lockstep import Race, run_lockstep
from tests.lower.random_threads import RandomThreads
from tests.random_programs.values import INTEGERS, Array, Index, Values
from tests.strategies import examples

TYPES = {
    "opencl": (*INTEGERS, "float32", "float64"),
    "cuda": (*INTEGERS, "float32", "float64"),
    "webgpu": ("int32", "uint32", "float32"),
}
BLOCKS, THREADS, INNER = 2, 6, 2
NAMES = "ABC"


def elementwise(random: Random, types: tuple[str, ...]) -> tuple[PrimFunc, list[Array], str]:
    """A function that computes each element of its last parameter from any of the others."""
    arrays = [
        Array(name, (random.randint(3, 7), random.randint(3, 7)), random.choice(types))
        for name in NAMES
    ]
    indices = [Index("b", 0, BLOCKS - 1), Index("t", 0, THREADS - 1), Index("i", 0, INNER - 1)]
    values = Values(random, arrays, indices, exact=True, small=False, loaded=[], types=types)
    dtype = random.choice(types)
    parameters = [f'{a.name}: T.Buffer({a.shape}, "{a.dtype}")' for a in arrays]
    length = BLOCKS * THREADS * INNER
    text = f"""
@T.prim_func
def main({", ".join(parameters)}, D: T.Buffer(({length},), "{dtype}")):
    for b in T.thread_binding({BLOCKS}, thread="blockIdx.x"):
        for t in T.thread_binding({THREADS}, thread="threadIdx.x"):
            for i in range({INNER}):
                D[(b * {THREADS} + t) * {INNER} + i] = {values.value(dtype, 3)}
"""
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    return func, arrays, dtype


def numbers(rng: np.random.Generator, array: Array) -> np.ndarray[Any, Any]:
    """Small ones, or all that a small type has."""
    low, high = (0, 20) if array.dtype.startswith("uint") else (-20, 20)
    if array.dtype in ("int8", "uint8", "int16", "uint16"):
        ends = np.iinfo(array.dtype)
        low, high = int(ends.min), int(ends.max)
    return rng.integers(low, high + 1, array.shape).astype(array.dtype)


@T.prim_func
def small_integers(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "uint8")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        B[t] = T.min(A[t] - T.uint8(5), (A[t] + T.uint8(200)) // T.uint8(3))


def test_small_integers_wrap_at_each_step() -> None:
    a = np.arange(0, 256, 4).astype("uint8")
    expected = np.minimum(a - np.uint8(5), (a + np.uint8(200)) // np.uint8(3))
    source = tvm.build(small_integers, target="cuda").imports[0].inspect_source()
    assert "((unsigned char)(A[((int)threadIdx.x)] - 5))" in source
    if (runner := runners().get("opencl")) is None:
        pytest.skip("no OpenCL is here")
    out = np.zeros_like(a)
    runner(small_integers, [a.copy(), out])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", TYPES)
@examples(12, 75)
@given(seed=st.integers(0, 2**30))
def test_kernels_compute_what_the_interpreter_does(kind: str, seed: int) -> None:
    func, arrays, dtype = elementwise(Random(seed), TYPES[kind])
    assert compile_cuda(tvm.build(func, target="cuda").imports[0].inspect_source()) == ""
    if (runner := runners().get(kind)) is None:
        pytest.skip(f"no {kind} is here")
    rng = np.random.default_rng(seed)
    inputs = [numbers(rng, array) for array in arrays]
    wanted = tvm.nd.array(np.zeros(BLOCKS * THREADS * INNER, dtype))
    tvm.build(func, target="interpreter")(*map(tvm.nd.array, inputs), wanted)
    out = np.full(wanted.shape, 77).astype(dtype)
    runner(func, [*inputs, out])
    np.testing.assert_allclose(out, wanted.numpy(), rtol=1e-5, atol=1e-5, err_msg=func.script())


@pytest.mark.parametrize("kind", ["cuda", "webgpu"])
def test_threads_exchange_data_as_in_lockstep(kind: str) -> None:
    """Not on OpenCL: pocl stops the process at some conditions around barriers."""
    runner, ran = runners().get(kind), 0
    for seed in range(60):
        text = RandomThreads(seed).program()
        data = np.arange(16, dtype="int32") ** 2 % 23
        arrays = [data[:8], data[8:], data[4:12]]
        try:
            expected = run_lockstep(text, arrays)
            func = from_source("@T.prim_func\n" + text)
            source = tvm.build(func, target=kind).imports[0].inspect_source()
        except (Race, ThreadError):
            continue
        if kind == "cuda":
            assert compile_cuda(source) == "", text
        results = [array.copy() for array in arrays]
        if runner is not None:
            runner(func, results)
            for result, array in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result, array, text)
        ran += 1
    assert ran >= 5
