"""float16 is rounded after each operation and each store, on every target and by every schedule."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb.script import tir as T

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
