"""Sums of products of narrow integers, two to a lane."""

from collections import Counter

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import BaseFunc, IRModule
from mlcweb.script import from_source


def product(left: str, right: str, depth: int) -> IRModule | BaseFunc:
    rows = f"T.Buffer((5, {depth}), '{left}')", f"T.Buffer((7, {depth}), '{right}')"
    return from_source(f"""
@T.prim_func
def main(A: {rows[0]}, B: {rows[1]}, C: T.Buffer((5, 7), "int32")):
    for i, j, k in T.grid(5, 7, {depth}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 3
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])
""")


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """The least and the greatest number of the type are often among them."""
    limits, random = np.iinfo(dtype), np.random.default_rng(seed)
    drawn = random.integers(limits.min, limits.max, shape, endpoint=True)
    extreme = random.choice([limits.min, limits.max], shape)
    return np.where(random.random(shape) < 0.5, drawn, extreme).astype(dtype)


@pytest.mark.parametrize("depth", [4, 7, 8, 16, 37, 64, 77, 200])
@pytest.mark.parametrize(
    ("left", "right"),
    [("int8", "int8"), ("uint8", "int8"), ("int16", "int16"), ("int16", "uint8")],
)
def test_sums_of_any_length(left: str, right: str, depth: int) -> None:
    kernel = tvm.build(product(left, right, depth), target="wasm", name="main")["main"]
    a, b = numbers(left, (5, depth), depth), numbers(right, (7, depth), depth + 1)
    c = tvm.nd.empty((5, 7), "int32")
    kernel(tvm.nd.array(a), tvm.nd.array(b), c)
    wanted = a.astype("int64") @ b.T.astype("int64") + 3
    np.testing.assert_array_equal(c.numpy(), wanted.astype("int32"))  # which wraps, as ours does
    count = Counter(kernel.kernel.source.split())["i32x4.dot_i16x8_s"]
    assert (count > 0) == (depth >= 8)
    if depth >= 64:
        assert count >= 4  # as many sums side by side


@pytest.mark.parametrize(("left", "right"), [("uint16", "int16"), ("int32", "int8")])
def test_numbers_that_16_bits_cannot_hold_are_multiplied_one_by_one(left: str, right: str) -> None:
    kernel = tvm.build(product(left, right, 40), target="wasm", name="main")["main"]
    assert "dot_i16x8" not in kernel.kernel.source
    a, b = numbers(left, (5, 40), 1), numbers(right, (7, 40), 2)
    c = tvm.nd.empty((5, 7), "int32")
    kernel(tvm.nd.array(a), tvm.nd.array(b), c)
    wanted = a.astype("int64") @ b.T.astype("int64") + 3
    np.testing.assert_array_equal(c.numpy(), wanted.astype("int32"))


def test_a_symbolic_length() -> None:
    func = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, C: T.Buffer((1,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int8")
    B = T.match_buffer(b, (n,), "int8")
    C[0] = 0
    for k in range(n):
        C[0] = C[0] + T.Cast("int32", A[k]) * T.Cast("int32", B[k])
""")
    kernel = tvm.build(func, target="wasm", name="main")["main"]
    for length in (1, 5, 8, 23, 100):
        a, b = numbers("int8", (length,), length), numbers("int8", (length,), length + 1)
        c = tvm.nd.empty((1,), "int32")
        kernel(tvm.nd.array(a), tvm.nd.array(b), c)
        assert c.numpy()[0] == a.astype("int32") @ b.astype("int32")


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
def test_a_program_may_name_the_instruction(target: str) -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int16"), B: T.Buffer((8,), "int16"), C: T.Buffer((4,), "int32")):
    C[0:4] = C[0:4] + T.call_llvm_pure_intrin("int32x4", "llvm.wasm.dot", A[0:8], B[0:8])
""")
    kernel = tvm.build(func, target=target, name="main")["main"]
    if target == "wasm":
        assert "i32x4.dot_i16x8_s" in kernel.kernel.source
    a, b = numbers("int16", (8,), 3), numbers("int16", (8,), 4)
    c = tvm.nd.array(np.arange(4, dtype="int32"))
    kernel(tvm.nd.array(a), tvm.nd.array(b), c)
    pairs = (a.astype("int64") * b).reshape(4, 2).sum(1) + np.arange(4)
    np.testing.assert_array_equal(c.numpy(), pairs.astype("int32"))
