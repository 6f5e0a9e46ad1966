"""Reductions in which threads of a warp read each other's registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from mlcweb.tir import PrimFunc
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import assert_kernels_give, compile_cuda, nvrtc

ON_CPU = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def rows(
    columns: int, dtype: str = "float32", combine: str = "{} + {}", start: str = "0"
) -> PrimFunc:
    """Rows of a matrix, reduced."""
    func: Any = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((6, {columns}), "{dtype}"), B: T.Buffer((6,), "{dtype}")):
    for i, k in T.grid(6, {columns}):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.{dtype}({start})
            B[vi] = {combine.format("B[vi]", "A[vi, vk]")}
"""
    )
    return func


def bound(func: PrimFunc, x: int, y: int = 1, rows_along_y: bool = True) -> PrimFunc:
    """Columns over x threads, and rows over y, or columns over both."""
    sch = mlcweb.tir.Schedule(func)
    i, k = sch.get_loops("B")
    k, inner = sch.split(k, [None, x])
    if y > 1:
        outer, other = sch.split(i if rows_along_y else k, [None, y])
        i = outer if rows_along_y else i
        sch.bind(other, "threadIdx.y")
    sch.bind(i, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return sch.mod["main"]


def data(columns: int, dtype: str = "float32"):
    return np.random.default_rng(columns).integers(-8, 8, (6, columns)).astype(dtype)


def cuda_gives(func, x, expected):
    """The source in CUDA C, after it has given what it should."""
    out = np.full(expected.shape, 77, expected.dtype)
    source = run_cuda_on_cpu(func, [x, out])
    np.testing.assert_array_equal(out, expected)
    return source


@ON_CPU
@pytest.mark.parametrize(
    ("x", "y", "shuffles", "barriers"),
    [
        (32, 1, 5, 0),  # one warp
        (8, 1, 3, 0),  # a part of a warp
        (16, 3, 4, 0),  # two rows in a warp, and half a warp
        (32, 2, 5, 0),  # a warp for each row
        (96, 1, 5, 1),  # three warps, whose first lanes then go on in shared memory
        (24, 2, 3, 1),  # rows begin within a warp, at a multiple of eight lanes
        (9, 1, 0, 2),  # not even two lanes
    ],
)
def test_threads_of_a_warp_reduce_without_barriers(x, y, shuffles, barriers):
    values = data(288)
    source = cuda_gives(bound(rows(288), x, y), values, values.sum(1))
    assert source.count("__shfl_xor_sync(0xffffffff, ") == shuffles
    assert source.count("__syncthreads();") == barriers
    assert ("__shared__" in source) == (barriers > 0)


@ON_CPU
@pytest.mark.parametrize(("x", "y", "shuffles"), [(16, 4, 5), (4, 2, 3), (3, 4, 2)])
def test_threads_along_two_axes_are_lanes_in_their_order(x, y, shuffles):
    values = data(192)
    source = cuda_gives(bound(rows(192), x, y, False), values, values.sum(1))
    assert source.count("__shfl_xor_sync") == shuffles


@ON_CPU
def test_threads_with_others_between_them_reduce_in_shared_memory():
    sch = mlcweb.tir.Schedule(rows(64))
    i, k = sch.get_loops("B")
    i, other = sch.split(i, [None, 2])
    _, inner = sch.split(k, [None, 32])
    sch.bind(i, "blockIdx.x")
    sch.bind(other, "threadIdx.x")
    sch.bind(inner, "threadIdx.y")
    values = data(64)
    source = cuda_gives(sch.mod["main"], values, values.sum(1))
    assert "__shfl" not in source
    assert "__syncthreads" in source


@ON_CPU
def test_virtual_threads_are_no_lanes():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6,), "float32")):
    for i in T.thread_binding(6, thread="threadIdx.x"):
        for k in T.thread_binding(8, thread="vthread.x"):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""
    )
    assert "__shfl" not in cuda_gives(func, data(8), data(8).sum(1))


@ON_CPU
@pytest.mark.parametrize(
    ("dtype", "combine", "start", "reference", "shuffles"),
    [
        ("float32", "T.max({}, {})", "-100", np.max, 5),
        ("float64", "{} + {}", "0", np.sum, 5),
        ("int32", "T.min({}, {})", "100", np.min, 5),
        ("int64", "{} + {}", "0", np.sum, 0),
        ("int8", "T.max({}, {})", "-100", np.max, 0),
    ],
)
def test_types_and_reductions(dtype, combine, start, reference, shuffles):
    values = data(100, dtype)
    func = bound(rows(100, dtype, combine, start), 32)
    source = cuda_gives(func, values, reference(values, 1).astype(dtype))
    assert source.count("__shfl_xor_sync") == shuffles


@ON_CPU
def test_a_row_that_ends_within_a_warp():
    values = data(50)
    source = cuda_gives(bound(rows(50), 32, 4), values, values.sum(1))
    assert source.count("__shfl_xor_sync") == 5
    assert "__syncthreads" not in source


@ON_CPU
def test_results_that_all_threads_go_on_with():
    """Each row less its mean: the first thread of a row shares what the others need."""
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((6, 64), "float32"), B: T.Buffer((6, 64), "float32")):
    total = T.alloc_buffer((6,))
    for i, k in T.grid(6, 64):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + A[vi, vk]
    for i, k in T.grid(6, 64):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] - total[vi] * T.float32(0.015625)
"""
    )
    sch = mlcweb.tir.Schedule(func)
    row, _ = sch.get_loops("B")
    sch.bind(row, "blockIdx.x")
    sch.compute_at("total", row)
    sch.set_scope("total", 0, "shared")
    for name in ("total", "B"):
        _, thread = sch.split(sch.get_loops(name)[-1], [None, 32])
        sch.bind(thread, "threadIdx.x")
    values = data(64)
    func = sch.mod["main"]
    expected = values - values.mean(1, keepdims=True)
    source = cuda_gives(func, values, expected)
    assert source.count("__shfl_xor_sync") == 5
    assert source.count("__syncthreads();") == 1
    assert_kernels_give(func, [values], expected)


@pytest.mark.skipif(nvrtc() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("architecture", ["compute_75", "compute_80", "compute_90", "compute_100"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint32"])
def test_what_lanes_exchange_compiles(dtype, architecture):
    lib = mlcweb.build(bound(rows(96, dtype), 96), target="cuda -device=simulated")
    source = lib.imported_modules[0].get_source()
    assert source.count("__shfl_xor_sync") == 5
    assert compile_cuda(source, architecture) == ""


def test_metal_exchanges_within_the_warp_of_the_target():
    def source(target):
        lib = mlcweb.build(bound(rows(96), 32), target=f"{target} -device=simulated")
        return lib.imported_modules[0].get_source()

    text = source("metal -thread_warp_size=32")
    for bit in (16, 8, 4, 2, 1):
        assert text.count(f"simd_shuffle_xor(B_own[0], ushort({bit}))") == 1
    assert "threadgroup_barrier" not in text
    # What a target does not say is taken for 16, as Intel's GPUs have it.
    assert source("metal").count("simd_shuffle_xor") == 4
    assert source("metal -thread_warp_size=1").count("simd_shuffle_xor") == 0


@pytest.mark.parametrize("target", ["opencl", "webgpu", "vulkan"])
def test_languages_whose_lanes_are_not_laid_down_use_shared_memory(target):
    lib = mlcweb.build(bound(rows(96), 32), target=f"{target} -device=simulated")
    text = lib.imported_modules[0].get_source()
    assert "shuffle" not in text
    assert "arrier(" in text


def test_no_lane_is_missing_where_others_exchange():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        if A[t] > T.float32(0):
            for k in range(2):
                with T.block("B"):
                    vt = T.axis.reduce(64, t)
                    vk = T.axis.reduce(2, k)
                    with T.init():
                        B[0] = T.float32(0)
                    B[0] = B[0] + A[vt]
            B[0] = B[0] + T.float32(1)
"""
    )
    with pytest.raises(ThreadError, match="not all of them come"):
        mlcweb.build(func, target="cuda")
