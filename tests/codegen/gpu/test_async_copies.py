"""Asynchronous copies to shared memory: the instructions of NVIDIA's GPUs, and plain copies
elsewhere."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mlcweb as tvm
from benchmarks.kernels.on_cuda import HALF_MATMUL, tensor_cores
from benchmarks.kernels.workload import scheduled
from mlcweb.codegen.gpu.kernels import kernels_of
from mlcweb.codegen.gpu.languages import LANGUAGES
from mlcweb.codegen.gpu.printer import write_kernels
from mlcweb.ir.visitor import walk
from mlcweb.script import from_source
from mlcweb.tir.operators import operator_name
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import assert_kernels_give, compile_cuda
from tests.lower.test_software_pipeline import MATMULS, matmul

USED = {"config": {"tir.use_async_copy": True}}


def cuda(func):
    return write_kernels(kernels_of(func, "main", asynchronous=True)[1], LANGUAGES["cuda"])


def copied(dtype="float32", lanes=1, value="A[tx, i * {lanes} + j]", scope="shared"):
    """B = A, a row for each thread, by way of shared memory."""
    value = value.format(lanes=lanes)
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((32, 128), "{dtype}"), B: T.Buffer((32, 128), "{dtype}")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("copy"):
            S = T.alloc_buffer((32, 128), "{dtype}", scope="{scope}")
            with T.attr(0, "async_scope", 1):
                for i in range({128 // lanes}):
                    for j in T.vectorized({lanes}):
                        S[tx, i * {lanes} + j] = {value}
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            for i in range(128):
                B[tx, i] = S[tx, i]
"""
    )


def calls(func, name):
    return [node for node in walk(func.body) if operator_name(node) == name]


@pytest.mark.parametrize(
    ("dtype", "lanes", "size"),
    [
        ("float32", 1, 4), ("float32", 4, 16), ("float16", 8, 16), ("float16", 4, 8),
        ("float16", 2, 4), ("float16", 1, None), ("int8", 16, 16), ("float32", 8, None),
    ],
)  # fmt: skip
def test_copies_of_4_8_or_16_bytes_are_asynchronous(dtype, lanes, size):
    func = copied(dtype, lanes)
    for run in ("LowerOpaqueBlock", "FlattenBuffer", "VectorizeLoop", "InjectPTXAsyncCopy"):
        func = getattr(tvm.tir.transform, run)()(tvm.IRModule({"main": func}))["main"]
    sizes = [int(call.args[4]) for call in calls(func, "ptx_cp_async")]
    assert sizes == ([] if size is None else [size])
    text = cuda(copied(dtype, lanes))
    assert (f"cp_async_<{size}>(S + " in text) == (size is not None)
    assert "cp_async_commit_();\n  cp_async_wait_<0>();" in text
    for architecture in ("compute_75", "compute_80", "compute_90"):
        assert compile_cuda(text, architecture) == ""


def test_what_a_condition_leaves_out_is_zero():
    text = cuda(copied(value="T.if_then_else(i < 100, A[tx, i], T.float32(0))"))
    assert "* 128 + i, i < 100);" in text
    assert compile_cuda(text, "compute_80") == ""
    # Another value than zero, and what is not from global memory, is stored.
    assert "cp_async_<" not in cuda(copied(value="T.if_then_else(i < 9, A[tx, i], T.float32(1))"))
    assert "cp_async_<" not in cuda(copied(value="A[tx, i] * T.float32(2)"))


def test_instructions_that_a_program_writes():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32, 4), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("copy"):
            T.reads(A[tx, 0:4])
            T.writes(B[tx, 0:4])
            S = T.alloc_buffer((32, 4), "float32", scope="shared")
            T.evaluate(T.ptx_cp_async("float32", S.data, tx * 4, A.data, tx * 4, 16))
            T.evaluate(T.ptx_commit_group())
            T.evaluate(T.ptx_wait_group(0))
            for i in range(4):
                B[tx, i] = S[31 - tx, i]
"""
    )
    text = cuda(func)
    assert "cp_async_<16>(S + ((int)threadIdx.x) * 4, A + ((int)threadIdx.x) * 4);" in text
    assert text.index("cp_async_wait_<0>();") < text.index("__syncthreads();")
    x = np.arange(128, dtype="float32").reshape(32, 4)
    for target in ("interpreter", "numpy", "wasm", "llvm", "simulated"):
        arrays = [tvm.nd.array(x), tvm.nd.array(np.zeros_like(x))]
        tvm.build(func, target=target)(*arrays)
        np.testing.assert_array_equal(arrays[1].numpy(), x[::-1])
    assert_kernels_give(func, [x], x[::-1])


@pytest.mark.parametrize("name", MATMULS)
def test_pipelined_kernels(name):
    func = matmul(*MATMULS[name])
    rng = np.random.default_rng(1)
    x, y = rng.random((32, 64), "float32"), rng.random((64, 32), "float32")
    assert_kernels_give(func, [x, y], x @ y)
    assert "cp_async" not in cuda(func)
    with tvm.transform.PassContext(**USED):
        text = cuda(func)
        assert ("cp_async_<4>(" in text) == (len(MATMULS[name]) > 2 and bool(MATMULS[name][2]))
        assert compile_cuda(text, "compute_80") == ""
        if COMPILER is not None:
            arrays = [x, y, np.zeros((32, 32), "float32")]
            run_cuda_on_cpu(func, arrays)
            np.testing.assert_allclose(arrays[2], x @ y, rtol=1e-5)


@pytest.mark.parametrize("ahead", [1, 3])
def test_fragments_are_multiplied_while_tiles_arrive(ahead):
    """The program that is compared with cuBLAS."""
    tiles = partial(tensor_cores, warps=(1, 2), tiles=(2, 1), depth=1, ahead=ahead)
    module = scheduled(HALF_MATMUL, tiles, n=64)
    with tvm.transform.PassContext(**USED):
        library = tvm.build(module, target="cuda")
        simulated = tvm.build(module, target="simulated")
    text = library.imported_modules[0].get_source()
    assert text.count("cp_async_<16>(") == 4  # of A and B, before the loop and in it
    waits = [int(part.split(">")[0]) for part in text.split("cp_async_wait_<")[1:]]
    assert waits == [*range(ahead, -1, -1)]
    assert "mma_sync(" in text
    for architecture in ("compute_80", "compute_90", "compute_100"):
        assert compile_cuda(text, architecture) == ""
    a, b = np.random.default_rng(3).integers(-4, 5, (2, 64, 64)).astype("float16")
    c = tvm.nd.array(np.full((64, 64), 77, "float32"))
    simulated["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_array_equal(c.numpy(), a.astype("float32") @ b.astype("float32"))


def test_a_wait_counts_the_groups_in_flight():
    with tvm.transform.PassContext(**USED):
        text = cuda(matmul(*MATMULS["asynchronous"]))
    waits = [int(part.split(">")[0]) for part in text.split("cp_async_wait_<")[1:]]
    # In the body both tiles of three iterations but for one; then fewer, written out one by one.
    assert waits == [5, 2, 1, 0]
    parts = text.split("cp_async_wait_<5>();")
    assert parts[0].count("cp_async_commit_();") == 3 and parts[1].count("cp_async_commit_();") == 1
    with tvm.transform.PassContext(**USED):
        text = cuda(matmul(*MATMULS["two queues"]))
    # The hardware has one queue.
    assert "cp_async_wait_<0>();" in text and "cp_async_wait_<1>" not in text
