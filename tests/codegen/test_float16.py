"""float16 is rounded after each operation and each store, on every target and by every schedule."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.wasm.pipeline import lower_for_wasm
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.ir.transform import PassContext
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.script import tir as T
from mlcweb.tir.stmt import AllocBuffer, find_statements

TARGETS = ("interpreter", "numpy", "wasm")


@T.prim_func
def total(A: T.Buffer((4096,), "float16"), B: T.Buffer((1,), "float16")):
    for k in range(4096):
        with T.block("B"):
            vk = T.axis.reduce(4096, k)
            with T.init():
                B[0] = T.float16(0)
            B[0] = B[0] + A[vk]


@T.prim_func
def wide_total(A: T.Buffer((4096,), "float16"), B: T.Buffer((1,), "float32")):
    for k in range(4096):
        with T.block("B"):
            vk = T.axis.reduce(4096, k)
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] + T.Cast("float32", A[vk])


@T.prim_func
def matmul(
    A: T.Buffer((16, 32), "float16"),
    B: T.Buffer((32, 16), "float16"),
    C: T.Buffer((16, 16), "float16"),
):
    for i, j, k in T.grid(16, 16, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float16(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@pytest.mark.parametrize("target", TARGETS)
def test_a_float16_sum_of_ones_ends_at_2048(target):
    """2048 + 1 is 2049, which float16 does not have: it rounds to 2048."""
    ones = mlcweb.nd.array(np.ones(4096, "float16"))
    narrow, wide = mlcweb.nd.empty((1,), "float16"), mlcweb.nd.empty((1,), "float32")
    mlcweb.build(total, target=target, name="main")(ones, narrow)
    mlcweb.build(wide_total, target=target, name="main")(ones, wide)
    assert narrow.numpy() == [2048]
    assert wide.numpy() == [4096]


def plain(sch):
    pass


def sums_in_lanes(sch):
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    sch.vectorize(sch.split(j, [None, 8])[1])


def sums_in_registers(sch):
    _, j, k = sch.get_loops("C")
    outer, inner = sch.split(j, [None, 8])
    sch.reorder(outer, k, inner)
    sch.vectorize(inner)
    sch.decompose_reduction("C", k)


def sums_in_a_local_buffer(sch):
    local = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(local, sch.get_loops("C")[1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "schedule", [plain, sums_in_lanes, sums_in_registers, sums_in_a_local_buffer]
)
def test_schedules_and_targets_round_alike(schedule, target):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((16, 32)).astype("float16")
    b = rng.standard_normal((32, 16)).astype("float16")
    expected = np.zeros((16, 16), "float16")
    for k in range(32):  # NumPy rounds arrays of float16 after each operation
        expected = expected + a[:, k : k + 1] * b[k : k + 1]
    sch = mlcweb.tir.Schedule(matmul)
    schedule(sch)
    out = mlcweb.nd.empty((16, 16), "float16")
    mlcweb.build(sch.mod, target=target)["main"](mlcweb.nd.array(a), mlcweb.nd.array(b), out)
    np.testing.assert_array_equal(out.numpy(), expected)


ALL = np.arange(1 << 16, dtype="uint16").view("float16")
"""Every float16: subnormal ones, infinities and NaNs, too."""


@T.prim_func
def widen(A: T.Buffer((65536,), "float16"), B: T.Buffer((65536,), "float32")):
    for i in range(65536):
        B[i] = T.Cast("float32", A[i])


@T.prim_func
def narrow(A: T.Buffer((65536,), "float32"), B: T.Buffer((65536,), "float16")):
    for i in range(65536):
        B[i] = T.Cast("float16", A[i])


@T.prim_func
def product_and_sum(
    A: T.Buffer((65536,), "float16"),
    B: T.Buffer((65536,), "float16"),
    C: T.Buffer((65536,), "float16"),
):
    for i in range(65536):
        C[i] = A[i] * B[i] + A[i]


def assert_same_bits(actual, expected):
    """The same numbers, zeros of the same sign, and NaNs in the same places."""
    numbers = ~np.isnan(expected)
    bits = f"uint{8 * expected.itemsize}"
    np.testing.assert_array_equal(np.isnan(actual), ~numbers)
    np.testing.assert_array_equal(actual.view(bits)[numbers], expected.view(bits)[numbers])


def computed(func, target, dtype, *arrays):
    result = mlcweb.nd.empty((65536,), dtype)
    lib = mlcweb.build(func, target=target, name="main")
    lib(*map(mlcweb.nd.array, arrays), result)
    return result.numpy()


@pytest.mark.parametrize("target", ["wasm", "llvm", "llvm -mcpu=x86-64"])
def test_every_float16_is_converted_exactly(target):
    assert_same_bits(computed(widen, target, "float32", ALL), ALL.astype("float32"))
    with np.errstate(all="ignore"):
        exact = ALL.astype("float32")
        halfway = ((exact.astype("float64") + np.roll(exact, -1)) / 2).astype("float32")
        above, below = (np.nextafter(halfway, np.float32(limit)) for limit in (np.inf, -np.inf))
        any_bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16).astype("uint32")
        for values in (exact, halfway, above, below, any_bits.view("float32")):
            converted = computed(narrow, target, "float16", values)
            assert_same_bits(converted, values.astype("float16"))


@T.prim_func
def sum_and_difference(
    A: T.Buffer((65536,), "float16"),
    B: T.Buffer((65536,), "float32"),
    C: T.Buffer((65536,), "float16"),
):
    for i in range(65536):
        C[i] = A[i] + T.Cast("float16", B[i]) - A[65535 - i]


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("target", ["wasm", "llvm", "llvm -mcpu=x86-64"])
def test_products_and_sums_of_float16_are_those_of_numpy(target, scalar):
    other = np.random.default_rng(1).permutation(ALL)
    # NaNs with all bits, of which float16 lacks the last.
    wide = np.where(np.isnan(other), np.uint32(0x7FFFFFFF).view("float32"), other.astype("float32"))
    with np.errstate(all="ignore"):
        expected = ALL * other + ALL
        difference = ALL + other - ALL[::-1]
    with PassContext(config={"tir.disable_vectorize": scalar}):
        assert_same_bits(computed(product_and_sum, target, "float16", ALL, other), expected)
        actual = computed(sum_and_difference, target, "float16", ALL, wide)
    assert_same_bits(actual, difference)


def test_registers_hold_float16_in_float32():
    """A sum is not packed into 16 bits after each term."""
    lowered = lower_for_wasm(matmul, Options(), [], True)
    registers = [
        part.buffer.dtype
        for part in find_statements(lowered.body, AllocBuffer)
        if part.buffer.scope() == REGISTER_SCOPE
    ]
    assert registers == ["float32"]


def test_webassembly_computes_float16_in_vectors():
    text = mlcweb.build(product_and_sum, target="wasm", name="main").get_source()
    assert "f32x4.mul" in text
    assert "f32.mul" not in text
