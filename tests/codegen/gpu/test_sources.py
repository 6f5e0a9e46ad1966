"""Kernels as source in four languages: the course's programs, limits, what is refused."""

from __future__ import annotations

import linecache
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mlcweb
from mlcweb.codegen.gpu.languages import METAL
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.gpu import gpu_device
from mlcweb.script import from_source
from mlcweb.script import tir as T
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import assert_kernels_give, compile_cuda, nvrtc, runners

PROGRAMS = (
    "vector_add", "window_sum_shared", "window_sum_cooperative", "matmul_blocking", "matmul_shared",
)  # fmt: skip
KINDS = ("cuda", "opencl", "metal", "webgpu")


@pytest.fixture(scope="module")
def course():
    """The programs of the course's chapter 6, part 1, by name."""
    names = {"__name__": "course", "tvm": mlcweb, "T": mlcweb.script.tir}
    cells = Path(__file__).parents[2] / "course" / "cells" / "chapter6_part1.txt"
    for number, cell in enumerate(re.split(r"^# %%\n", cells.read_text(), flags=re.M)):
        filename = f"chapter6_sources_{number}.py"
        linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
        exec(compile(cell, filename, "exec"), names)
    return names


def source(program, target):
    return mlcweb.build(program, target=target).imported_modules[0].get_source()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_program_of_the_course_has_source(course, name, kind):
    text = source(course[name], kind)
    assert "main_kernel" in text
    assert text.count("{") == text.count("}")


def test_cuda_is_what_the_course_shows(course):
    text = source(course["window_sum_cooperative"], "cuda")
    assert 'extern "C" __global__ void __launch_bounds__(128) main_kernel(' in text
    # 128 results of three neighbours each need 130 values, not all 1027.
    assert "__shared__ float A_shared[130];" in text
    assert text.index("A_shared[ax0_0 * 128") < text.index("__syncthreads();")
    assert text.index("__syncthreads();") < text.index("B[((int)blockIdx.x) * 128")


def test_a_fetch_of_four_neighbours_is_one_load(course):
    text = source(course["matmul_shared"], "cuda")
    assert text.count("*(float4*)(") == 2
    # A vector has to lie at a multiple of its size.
    assert "alignas(16) __shared__ float A_shared[512];" in text
    assert text.count("__syncthreads();") == 2


@pytest.mark.skipif(nvrtc() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("architecture", ["compute_75", "compute_90", "compute_100"])
def test_cuda_compiles(course, name, architecture):
    assert compile_cuda(source(course[name], "cuda"), architecture) == ""


def test_the_course_runs_on_what_is_here(course):
    mod = mlcweb.build(course["vector_add"], target="nvidia/tesla-p100")
    dev = mlcweb.runtime.cuda(0)
    a, b = np.random.default_rng(3).random((2, 1024)).astype("float32")
    arrays = [mlcweb.nd.array(x, dev) for x in (a, b, np.zeros(1024, "float32"))]
    mod["main"](*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), a + b)
    assert mod.time_evaluator("main", dev, number=1)(*arrays).mean > 0
    assert mod.mod.imports[0].inspect_source("cu") == mod.imported_modules[0].get_source()
    gpu = gpu_device("cuda")
    assert dev.exist == (gpu is not None and gpu.language == "cuda")
    with pytest.raises(TVMError, match="Expected an array on cuda:0 but got one on cpu:0"):
        mod["main"](mlcweb.nd.array(a), *arrays[1:])
    with pytest.raises(TVMError, match='written in "cuda", not in "ptx"'):
        mod.imports[0].get_source("ptx")


def elementwise(value, dtype="float32"):
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((8, 32), "{dtype}"), B: T.Buffer((8, 32), "{dtype}")):
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            B[i, j] = {value}
"""
    )


X = np.linspace(-3, 3, 256, dtype="float32").reshape(8, 32)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T.exp(A[i, j])", np.exp(X)),
        ("T.sigmoid(A[i, j])", 1 / (1 + np.exp(-X))),
        ("T.sqrt(T.abs(A[i, j])) * T.rsqrt(A[i, j] * A[i, j] + T.float32(1))",
         np.sqrt(abs(X)) / np.sqrt(X * X + 1)),
        ("T.if_then_else(A[i, j] > T.float32(0), A[i, j], T.float32(0.5) * A[i, j])",
         np.where(X > 0, X, X / 2)),
        ("T.reinterpret('float32', T.reinterpret('int32', A[i, j]) & 0x7fffffff)", abs(X)),
        ("T.max(T.min(A[i, j], T.float32(1)), T.float32(-1))", np.clip(X, -1, 1)),
        ("T.round(A[i, j]) + T.floor(A[i, j]) - T.ceil(A[i, j]) * T.trunc(A[i, j])",
         np.rint(X) + np.floor(X) - np.ceil(X) * np.trunc(X)),
        ("A[i, j] - (A[i, j] - T.float32(1)) - (T.float32(2) - A[i, j])", X - (X - 1) - (2 - X)),
        ("A[7 - i, (j * 5 - 3) % 32]",
         X[::-1][:, (np.arange(32) * 5 - 3) % 32]),
        ("A[(i - 4) // 3 + 2, j] + T.cast((i - 4) // 3, 'float32')",
         X[(np.arange(8) - 4) // 3 + 2] + ((np.arange(8) - 4) // 3)[:, None]),
        ("T.cast(T.truncmod(i - 4, 3) * j, 'float32')",
         np.fmod(np.arange(8) - 4, 3)[:, None] * np.arange(32)),
        ("T.cast(T.cast(A[i, j] * T.float32(1e9), 'uint32'), 'float32')",
         np.clip(X * np.float32(1e9), 0, None).astype("uint32")),
        ("T.cast(T.shift_right(j, i) & 5, 'float32')",
         np.array([[(j >> i) & 5 for j in range(32)] for i in range(8)])),
    ],
)  # fmt: skip
def test_operators(value, expected):
    assert_kernels_give(elementwise(value), [X], np.asarray(expected, "float32"))


def test_float64_is_computed_in_float64():
    """The functions of CUDA that end in f are those of float32."""
    func = elementwise("T.sigmoid(A[i, j]) + T.pow(T.exp(A[i, j]), A[i, j]) + T.nearbyint(A[i, j])",
                       "float64")  # fmt: skip
    x = np.linspace(-3, 3, 256).reshape(8, 32)
    expected = 1 / (1 + np.exp(-x)) + np.exp(x) ** x + np.rint(x)
    if COMPILER is not None:
        out = np.zeros_like(x)
        run_cuda_on_cpu(func, [x, out])
        np.testing.assert_allclose(out, expected, rtol=1e-14)
    if (runner := runners().get("opencl")) is not None:
        out = np.zeros_like(x)
        runner(func, [x, out])
        np.testing.assert_allclose(out, expected, rtol=1e-14)
    assert compile_cuda(source(func, "cuda")) == ""


@pytest.mark.parametrize("value", ["T.infinity('float16')", "T.erf(A[i, j])"])
def test_float16_in_wgsl(value):
    text = source(elementwise(value, "float16"), "webgpu")
    assert "f16(-special_" in text or "f16(special_" in text or "f16(erf_(f32(A" in text
    if gpu_device("webgpu") is not None and "shader-f16" in gpu_device("webgpu").features:
        dev = mlcweb.runtime.device("webgpu")
        a, b = (mlcweb.nd.array(X.astype("float16"), dev) for _ in range(2))
        mlcweb.build(elementwise(value, "float16"), target="webgpu")(a, b)
        assert np.isinf(b.numpy()).all() if "inf" in value else abs(b.numpy()).max() <= 1


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_leading_zeros(dtype):
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "int32")):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        B[i] = T.clz(A[i])
"""
    )
    bits = np.iinfo(dtype).bits
    a = np.array([-1, 1, *(1 << i * bits // 16 for i in range(1, 15))]).astype(dtype)
    mask = (1 << bits) - 1
    expected = np.array([bits - (int(x) & mask).bit_length() for x in a], "int32")
    if dtype in ("int32", "uint32"):
        assert_kernels_give(func, [a], expected)
    watched = mlcweb.nd.array(np.zeros(16, "int32"))
    mlcweb.build(func, target="simulated")(mlcweb.nd.array(a), watched)
    np.testing.assert_array_equal(watched.numpy(), expected)
    if (runner := runners().get("opencl")) is not None:
        out = np.zeros(16, "int32")
        runner(func, [a, out])
        np.testing.assert_array_equal(out, expected)
    assert compile_cuda(source(func, "cuda")) == ""


def test_leading_zeros_of_64_bits_are_not_counted_in_32():
    text = "T.cast(T.clz(T.cast(i, 'int64')), 'float32')"
    with pytest.raises(TVMError, match="counts 64 bits"):
        source(elementwise(text), "webgpu")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "value",
    ["T.max(A[i, j], A[i, 0])", "T.exp(A[i, j]) * A[i, j]", "T.floormod(A[i, j], A[i, 0])",
     "T.Select(T.isnan(A[i, j]) or T.isinf(A[i, j]), A[i, 0], A[i, j])"],
)  # fmt: skip
def test_cuda_has_functions_of_halves(dtype, value):
    assert compile_cuda(source(elementwise(value, dtype), "cuda"), "compute_80") == ""


def test_what_wgsl_has_no_function_for():
    assert "ldexp(A[" in source(elementwise("T.ldexp(A[i, j], i)"), "webgpu")
    with pytest.raises(TVMError, match="nextafter"):
        source(elementwise("T.nextafter(A[i, j], A[i, 0])"), "webgpu")


def test_products_in_fixed_point():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        B[i] = T.q_multiply_shift(A[i], 1389247123, 31, -2)
""")
    a = np.array([*range(-8, 0), 10**9, -(10**9), 7, 77, 777, 7777, 1, 0], "int32")
    out = np.zeros(16, "int32")
    if (runner := runners().get("opencl")) is not None:
        runner(func, [a, out])
        assert out.tolist() == [(x * 1389247123 + (1 << 32)) >> 33 for x in a.tolist()]
    assert compile_cuda(source(func, "cuda")) == ""
    with pytest.raises(TVMError, match="beyond the 32 bits"):
        source(func, "webgpu")


@pytest.mark.parametrize("name", ["uniform", "storage", "read_write", "workgroup", "trunc"])
def test_words_of_wgsl_name_no_buffers(name):
    func = from_source(f"""
@T.prim_func
def main({name}: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        B[i] = T.trunc({name}[i])
""")
    a = np.linspace(-3, 3, 16, dtype="float32")
    assert_kernels_give(func, [a], np.trunc(a))


def test_functions_of_llvm():
    value = 'T.call_llvm_pure_intrin("float32", "llvm.fabs.f32", A[i, j])'
    assert_kernels_give(elementwise(value), [X], abs(X))


@pytest.mark.parametrize(
    ("vector", "expected"),
    [("T.ramp(31, -1, 32)", X[:, ::-1]), ("T.broadcast(i, 32)", X[:, :8].diagonal()[:, None])],
)
def test_a_vector_of_indices_has_a_name(vector, expected):
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        v = {vector}
        B[i, 0:32] = A[i, v]
"""
    )
    assert_kernels_give(func, [X], np.broadcast_to(expected, (8, 32)).copy())


def test_a_vector_that_has_a_name_keeps_its_value():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i, 0:4] = A[i, 0:4]
        v = B[i, 0:4]
        B[i, 0:4] = T.broadcast(T.float32(1), 4)
        B[i, 0:4] = B[i, 0:4] + v
"""
    )
    assert_kernels_give(func, [X[:, :4].copy()], X[:, :4] + 1)


def test_arrays_begin_at_their_first_element():
    """A buffer that may begin elsewhere, and may have other strides, is given whole arrays."""
    func = from_source(
        """
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8, 32), "float32", offset_factor=1)
    B = T.match_buffer(b, (8, 32), "float32", strides=("s", "t"), offset_factor=1)
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for j in range(32):
            B[i, j] = A[i, j]
"""
    )
    assert_kernels_give(func, [X], X)


def test_wgsl_has_no_remainder_of_negative_numbers():
    """What Vulkan makes of one differs from driver to driver."""
    text = source(elementwise("T.cast(T.truncmod(i - 4, 3) + j % 5, 'float32')"), "webgpu")
    assert text.count("%") == 1
    assert "truncmod_i32(" in text


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_numbers_beyond_a_small_integer_give_its_nearest_end(dtype):
    value = f"T.cast(T.cast(A[i, j] * T.float32(30000), '{dtype}'), 'float32')"
    ends = np.iinfo(dtype)
    expected = np.clip(np.trunc(X * np.float32(30000)), ends.min, ends.max)
    func = elementwise(value)
    assert compile_cuda(source(func, "cuda")) == ""
    if (runner := runners().get("opencl")) is None:
        pytest.skip("no OpenCL is installed")
    out = np.zeros_like(X)
    runner(func, [X.copy(), out])
    np.testing.assert_array_equal(out, expected)


def test_constants_keep_their_value():
    text = source(elementwise("A[i, j] + T.min_value('float32') + T.float32(0.1)"), "cuda")
    assert "-3.402823466e+38f" in text
    assert "0.1f" in text


def test_reductions_over_threads():
    @T.prim_func
    def rows(A: T.Buffer((8, 96), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 96):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk] * A[vi, vk]

    x = np.random.default_rng(1).integers(-8, 8, (8, 96)).astype("float32")
    for threads in (32, 24, 96, 3, 10):
        sch = mlcweb.tir.Schedule(rows)
        i, k = sch.get_loops("B")
        _, inner = sch.split(k, [None, threads])
        sch.bind(i, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        assert_kernels_give(sch.mod["main"], [x], (x * x).sum(1))


def test_each_thread_reduces_what_is_its_own_first():
    @T.prim_func
    def rows(A: T.Buffer((8, 4, 96), "float32"), B: T.Buffer((8,), "float32")):
        for i, j, k in T.grid(8, 4, 96):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                with T.init():
                    B[vi] = T.float32(5)
                B[vi] = B[vi] + A[vi, vj, vk]

    sch = mlcweb.tir.Schedule(rows)
    i, _, k = sch.get_loops("B")
    _, inner = sch.split(k, [None, 32])
    sch.bind(i, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    x = np.random.default_rng(4).integers(-8, 8, (8, 4, 96)).astype("float32")
    assert_kernels_give(sch.mod["main"], [x], x.sum((1, 2)) + 5)
    text = source(sch.mod, "cuda")
    # Twelve values in a register, then those of the 32 threads, once.
    assert "B_own[0] = B_own[0] + A[" in text
    assert text.index("B_own[0] + A[") < text.index("__shfl_xor_sync(")
    assert text.count("__shfl_xor_sync(") == 5
    text = source(sch.mod, "opencl")
    # 32, 8 and 2 values in shared memory.
    assert text.index("B_own[0] + A[") < text.index("barrier(CLK")
    assert text.count("barrier(CLK") == 3


def test_a_sum_that_begins_anew_in_each_iteration_is_not_taken_for_one():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((1,), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for k in range(4):
            with T.block("B"):
                vt = T.axis.reduce(32, t)
                vk = T.axis.spatial(4, k)
                with T.init():
                    B[0] = T.float32(0)
                B[0] = B[0] + A[vk, vt]
"""
    )
    x = np.random.default_rng(5).integers(-8, 8, (4, 32)).astype("float32")
    assert_kernels_give(func, [x], x[3].sum().reshape(1))


def test_reductions_over_threads_that_do_not_divide():
    @T.prim_func
    def rows(A: T.Buffer((10, 90), "float32"), B: T.Buffer((10,), "float32")):
        for i, k in T.grid(10, 90):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(-1)
                B[vi] = T.max(B[vi], A[vi, vk])

    x = np.random.default_rng(2).integers(-8, 8, (10, 90)).astype("float32")
    sch = mlcweb.tir.Schedule(rows)
    i, k = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 4])
    k0, k1 = sch.split(k, [None, 32])
    sch.reorder(i0, i1, k0, k1)
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    sch.bind(k1, "threadIdx.x")
    func = sch.mod["main"]
    assert_kernels_give(func, [x], np.maximum(x.max(1), -1))
    # Rows 10 and 11 are in the last block, and nowhere else.
    assert re.search(r"if \(.*threadIdx.y\)\) < 10\) \{", source(func, "cuda"))


def test_two_kernels_and_memory_between_them():
    @T.prim_func
    def both(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), "float32")
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("S"):
                vi = T.axis.spatial(64, i)
                S[vi] = A[vi] + T.float32(1)
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = S[63 - vi] * T.float32(2)

    x = np.arange(64, dtype="float32")
    assert_kernels_give(both, [x], (x[::-1] + 1) * 2)
    text = source(both, "cuda")
    assert "both_kernel(" in text
    assert "both_kernel_1(" in text


def reversed_rows(scope, size):
    """64 rows of 256 floats the other way round, through so many floats of shared memory."""
    step = size // 256
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((64, 256), "float32"), B: T.Buffer((64, 256), "float32")):
    for b in T.thread_binding(64, thread="blockIdx.x"):
        for t in T.thread_binding(256, thread="threadIdx.x"):
            with T.block("B"):
                vb, vt = T.axis.remap("SS", [b, t])
                S = T.alloc_buffer(({size},), scope="{scope}")
                H = T.alloc_buffer((255,), "float16", scope="shared.dyn")
                S[vt * {step}] = A[vb, vt]
                if vt < 255:
                    H[vt] = T.Cast("float16", A[vb, vt])
                B[vb, vt] = S[(255 - vt) * {step}] + T.if_then_else(
                    vt < 255, T.Cast("float32", H[vt]), T.float32(0))
"""
    )


def test_dynamic_shared_memory_is_one_piece():
    func = reversed_rows("shared.dyn", 16384)
    text = mlcweb.build(func, target="nvidia/nvidia-a100").imported_modules[0].get_source()
    assert "  extern __shared__ __align__(128) unsigned char dynamic_shared[];\n" in text
    assert "  half* const H = (half*)(dynamic_shared);\n" in text
    # After 510 bytes, at the next multiple of 128.
    assert "  float* const S = (float*)(dynamic_shared + 512);\n" in text
    for architecture in ("compute_75", "compute_80", "compute_100"):
        assert compile_cuda(text, architecture) == ""
    assert "threadgroup float S[" in source(reversed_rows("shared.dyn", 2048), "metal")
    x = np.arange(64 * 256, dtype="float32").reshape(64, 256) % 97
    expected = x[:, ::-1] + x
    expected[:, 255] = x[:, 0]
    b = mlcweb.nd.array(np.zeros_like(x))
    mlcweb.build(func, target="simulated")["main"](mlcweb.nd.array(x), b)
    np.testing.assert_array_equal(b.numpy(), expected)
    if COMPILER is not None:
        arrays = [x, np.zeros_like(x)]
        run_cuda_on_cpu(func, arrays)
        np.testing.assert_array_equal(arrays[1], expected)


@pytest.mark.parametrize(
    ("scope", "size", "target", "reason"),
    [
        ("shared", 16384, "nvidia/nvidia-a100", r'\("S"\), and "cuda" has 49152; .*"shared.dyn"'),
        ("shared", 16384, "cuda", r'\("S"\), and "cuda" has 49152; .*"shared.dyn"'),
        (
            "shared",
            16384,
            "nvidia/tesla-p100",
            "has 49152; .* at a loop further inside$",
        ),
        ("shared.dyn", 16384, "nvidia/tesla-p100", 'and "cuda" has 49152'),
        ("shared.dyn", 49152, "nvidia/nvidia-a100", 'and "cuda" has 166912'),
        ("shared.dyn", 16384, "nvidia/nvidia-a100", None),
        ("shared.dyn", 49152, "nvidia/nvidia-h100", None),
        ("shared.dyn", 49152, "cuda", None),
        ("shared.dyn", 65536, "cuda", 'and "cuda" has 232448'),
    ],
)
def test_how_much_shared_memory_a_block_has(scope, size, target, reason):
    if reason is None:
        mlcweb.build(reversed_rows(scope, size), target=target)
        return
    with pytest.raises(TVMError, match=reason):
        mlcweb.build(reversed_rows(scope, size), target=target)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ({"kind": "cuda", "max_threads_per_block": 16}, "32 threads in a block, and .* 16 at most"),
        ({"kind": "cuda", "max_shared_memory_per_block": 64}, "shares 1024 bytes"),
    ],
)
def test_limits_of_a_device(target, reason):
    @T.prim_func
    def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
        for i in T.thread_binding(8, thread="blockIdx.x"):
            with T.block("i"):
                vi = T.axis.spatial(8, i)
                S = T.alloc_buffer((256,), "float32", scope="shared")
                for j in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(8):
                        S[k * 32 + j] = A[vi, j]
                for j in T.thread_binding(32, thread="threadIdx.x"):
                    B[vi, j] = S[255 - j] + S[j]

    with pytest.raises(TVMError, match=reason):
        mlcweb.build(main, target=target)


@pytest.mark.parametrize(
    ("program", "target", "reason"),
    [
        ("for i in range(8):\n        A[i] = T.float32(1)", "cuda", "outside of any thread"),
        ('for i in T.thread_binding(8, thread="threadIdx.x"):\n        A[i] = T.float32(1)\n'
         '    for i in T.thread_binding(8, thread="threadIdx.x"):\n'
         '        A[i] = T.cast(T.cast(A[i], "float64") + T.float64(1), "float32")',
         "webgpu", "float64, which webgpu has not"),
    ],
)  # fmt: skip
def test_what_is_refused(program, target, reason):
    func = from_source(f'@T.prim_func\ndef main(A: T.Buffer((8,), "float32")):\n    {program}\n')
    with pytest.raises(TVMError, match=reason):
        mlcweb.build(func, target=target)


def test_axes_agree_within_a_kernel():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            A[i] = T.float32(1)
        for i in T.thread_binding(32, thread="threadIdx.x"):
            A[i] = T.float32(2)
"""
    )
    with pytest.raises(TVMError, match=r'"threadIdx\.x" has extent 64 at loop "i" and 32'):
        mlcweb.build(func, target="cuda")


def tiled_sum(extent):
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((8, {extent}, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("all"):
            vt = T.axis.spatial(8, t)
            L = T.alloc_buffer((4,), "float32", scope="local")
            for i in T.unroll(4):
                L[i] = T.float32(0)
            for k in T.unroll({extent}):
                for i in T.unroll(4):
                    L[i] = L[i] + A[vt, k, i]
            for i in T.unroll(4):
                B[vt, i] = L[i]
"""
    )


@pytest.mark.parametrize("extent", [3, 100])
def test_unrolled_loops_are_written_out_where_a_language_cannot_ask_for_it(extent):
    func = tiled_sum(extent)
    x = np.random.default_rng(5).integers(-9, 9, (8, extent, 4)).astype("float32")
    assert_kernels_give(func, [x], x.sum(1))
    assert source(func, "cuda").count("#pragma unroll") == 4
    text = source(func, "webgpu")
    assert "L[3] = L[3] + A[" in text
    # Four hundred copies would be too many.
    assert text.count("for (var ") == (0 if extent == 3 else 1)


@pytest.mark.parametrize(
    ("dtype", "lanes", "vector"),
    [("int8", 4, "uint"), ("int16", 8, "uint4"), ("float32", 2, "float2"), ("uint8", 8, "uint2"),
     ("int16", 3, ""), ("uint8", 2, "")],
)  # fmt: skip
def test_copies_of_neighbours_are_vectors_of_any_type(dtype, lanes, vector):
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16, {lanes}), "{dtype}"), B: T.Buffer((16, {lanes}), "{dtype}")):
    S = T.alloc_buffer((16, {lanes}), "{dtype}", scope="shared")
    for t in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.vectorized({lanes}):
            S[t, i] = A[t, i]
        for i in range({lanes}):
            B[t, i] = S[15 - t, i]
"""
    )
    text = source(func, "opencl")
    assert (f"*(__local {vector}*)(S" in text) == bool(vector)
    assert ("aligned(16)" in text) == bool(vector)
    x = np.arange(16 * lanes).reshape(16, lanes).astype(dtype)
    assert compile_cuda(source(func, "cuda")) == ""
    if (runner := runners().get("opencl")) is not None:
        out = np.zeros_like(x)
        runner(func, [x, out])
        np.testing.assert_array_equal(out, x[::-1])


@pytest.mark.parametrize(("step", "unrolled"), [(0, 0), (16, 3), (64, 4)])
def test_small_loops_are_unrolled_as_an_annotation_says(step, unrolled):
    sch = mlcweb.tir.Schedule(tiled_sum(8).with_attr("global_symbol", "main"))
    text = sch.mod["main"].script().replace("T.unroll", "range")
    sch = mlcweb.tir.Schedule(from_source(text))
    if step:
        sch.annotate(sch.get_loops("all")[0], "pragma_auto_unroll_max_step", step)
    x = np.random.default_rng(5).integers(-9, 9, (8, 8, 4)).astype("float32")
    assert_kernels_give(sch.mod["main"], [x], x.sum(1))
    assert source(sch.mod, "cuda").count("#pragma unroll") == unrolled


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_metal_converts_floats_beyond_the_range_as_all_targets_do(dtype, tmp_path):
    """The helper that does it is C++ but for its header, and runs here."""
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "{dtype}")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        B[t] = T.Cast("{dtype}", A[t])
"""
    )
    text = source(func, "metal")
    kind = METAL.types[dtype]
    assert f"B[((int)threadIdx.x)] = saturated_<{kind}>(A[" in text
    x = np.array([1e20, -1e20, np.nan, -1.5, 3.9, -0.0, np.inf, -np.inf], "float32")
    given = mlcweb.nd.array(np.zeros(8, dtype))
    mlcweb.build(func, target="interpreter")["main"](mlcweb.nd.array(x), given)
    own = {"uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned"}.get(kind, kind)
    values = "1e20f, -1e20f, NAN, -1.5f, 3.9f, -0.0f, INFINITY, -INFINITY"
    program = tmp_path / "saturated.cc"
    program.write_text(
        "#include <cmath>\n#include <cstdio>\n#include <initializer_list>\n#include <limits>\n"
        "using namespace std;\n"
        f"{METAL.functions['saturated_']}\n"
        f'int main() {{ for (float x : {{{values}}}) printf("%lld ", '
        f"(long long)saturated_<{own}>(x)); }}\n"
    )
    binary = str(tmp_path / "saturated")
    subprocess.run(["g++", str(program), "-o", binary], check=True)
    found = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    assert list(map(int, found.split())) == given.numpy().tolist()
