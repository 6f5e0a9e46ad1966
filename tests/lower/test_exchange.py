"""Programs whose threads exchange data, against a machine that runs all threads in lockstep."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb
from mlcweb.ir.errors import TVMError
from mlcweb.lower import lower
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from tests.lower.lockstep import Race, run_lockstep
from tests.lower.random_threads import RandomThreads

TARGETS = ("interpreter", "numpy", "wasm", "simulated", "llvm -mcpu=host")
DATA = np.arange(16, dtype="int32") ** 2 % 23


def assert_runs_in_lockstep(source):
    """On every target; `source` is the body of a function of A and B, 16 integers each."""
    text = _function(source)
    arrays = [DATA, np.arange(16, dtype="int32") + 100]
    expected = run_lockstep(text, arrays)
    func = from_source("@T.prim_func\n" + text)
    for target in TARGETS:
        given = [mlcweb.nd.array(array) for array in arrays]
        mlcweb.build(func, target=target, name="main")(*given)
        for result, array in zip(given, expected, strict=True):
            np.testing.assert_array_equal(result.numpy(), array, target)


def _function(source):
    lines = source.strip("\n").splitlines()
    return "\n".join(
        ['def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):', *lines, ""]
    )


CASES = {
    "a buffer is written, read and written again": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    L = T.alloc_buffer((1,), "int32", scope="local")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        S[tx] = A[tx]
        L[0] = S[15 - tx]
        S[tx] = L[0] * 2
        B[tx] = S[(tx + 5) % 16] + L[0]
""",
    "threads store what is their own, as a condition on memory says": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(A[3] % 5):
            if k * 8 + tx < A[7]:
                for v in range(2):
                    S[tx * 2 + v] = A[tx * 2 + v] + k
            else:
                for v in range(2):
                    S[tx * 2 + v] = k
            for v in range(2):
                B[tx * 2 + v] = S[15 - tx * 2 - v]
""",
    "threads of two axes, the inner one first": """
    S = T.alloc_buffer((4, 4), "int32", scope="shared")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            S[ty, tx] = A[ty * 4 + tx]
            B[ty * 4 + tx] = S[tx, ty]
""",
    "an exchange in serial loops": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        B[tx] = 0
        for i in range(3):
            for j in range(2):
                S[tx] = A[tx] + B[tx] * 3 + i
                B[tx] = S[(tx + i + j) % 16]
""",
    "some threads store, all wait": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        S[tx] = 7
        if tx % 2 == 0:
            S[tx] = A[tx]
        else:
            B[tx] = A[tx]
        B[tx] = S[15 - tx] + B[tx]
""",
    "blocks of virtual threads": """
    S = T.alloc_buffer((8,), "int32", scope="shared")
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for vx in T.thread_binding(2, thread="vthread.x"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                S[vx * 4 + tx] = A[bx * 8 + vx * 4 + tx]
                B[bx * 8 + vx * 4 + tx] = S[7 - vx * 4 - tx]
""",
    "global memory and a barrier by hand": """
    W = T.alloc_buffer((16,), "int32", scope="global")
    tx = T.launch_thread("threadIdx.x", 16)
    W[tx] = A[tx]
    T.evaluate(T.tvm_storage_sync("shared"))
    B[tx] = W[15 - tx]
    T.evaluate(T.tvm_storage_sync("global"))
    W[tx] = B[(tx + 3) % 16]
""",
    "a warp": """
    W = T.alloc_buffer((16,), "int32", scope="warp")
    tx = T.launch_thread("threadIdx.x", 16)
    W[tx] = A[tx]
    B[tx] = W[15 - tx]
""",
    "each row of threads is a warp, with memory of its own": """
    W = T.alloc_buffer((4,), "int32", scope="warp")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for ty in T.thread_binding(2, thread="threadIdx.y"):
            for vz in T.thread_binding(2, thread="vthread.z"):
                W[tx] = A[vz * 8 + ty * 4 + tx]
                B[vz * 8 + ty * 4 + tx] = W[3 - tx]
""",
    "threads write the same value to one element": """
    S = T.alloc_buffer((8,), "int32", scope="shared")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        S[tx // 2] = A[tx // 2] + tx // 2
        B[tx] = S[7 - tx // 2]
""",
    "tiles overlap": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    L = T.alloc_buffer((1,), "int32", scope="local")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for j in range(3):
            S[tx + j] = A[tx + j] * 2
        for j in range(3):
            L[0] = A[tx + j + 2]
            S[tx + j + 2] = L[0] * 3
        B[tx] = S[8 - tx]
""",
    "a loop over thread blocks inside of one over threads": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            S[tx] = A[bx * 8 + tx]
            B[bx * 8 + tx] = S[7 - tx]
""",
    "one thread, not the first, stores what all would": """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        S[tx] = tx
        if tx >= 15:
            S[0] = A[7]
        if tx > 3:
            if tx < 5:
                S[1] = A[3]
        B[tx] = S[15 - tx]
""",
    "a buffer of one element": """
    S = T.alloc_buffer((), "int32", scope="shared")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        if tx == 3:
            S[()] = A[tx]
        B[tx] = S[()]
""",
    "warps in a serial loop": """
    W = T.alloc_buffer((8,), "int32", scope="warp")
    for ty in T.thread_binding(2, thread="threadIdx.y"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            W[tx] = A[ty * 8 + tx]
            for i in range(4):
                B[ty * 8 + tx] = W[(tx + 3) % 8] + i
                W[tx] = B[ty * 8 + tx]
""",
}


@pytest.mark.parametrize("name", CASES)
def test_threads_run_as_in_lockstep(name):
    assert_runs_in_lockstep(CASES[name])


@pytest.mark.parametrize("threads", [64, 12])
def test_more_threads_than_a_warp_are_refused(threads):
    source = f"""
    W = T.alloc_buffer(({threads},), "int32", scope="warp")
    for tx in T.thread_binding({threads}, thread="threadIdx.x"):
        W[tx] = tx
        B[tx % 16] = W[{threads - 1} - tx]
"""
    with pytest.raises(TVMError, match=f"of which 32 is a multiple; here is a loop of {threads}"):
        lower(from_source("@T.prim_func\n" + _function(source)))


def test_a_warp_without_its_axis_is_refused():
    source = """
    W = T.alloc_buffer((16,), "int32", scope="warp")
    for ty in T.thread_binding(16, thread="threadIdx.y"):
        W[ty] = A[ty]
        B[ty] = W[15 - ty]
"""
    with pytest.raises(TVMError, match="of one loop over threadIdx"):
        lower(from_source("@T.prim_func\n" + _function(source)))


@pytest.mark.parametrize("scope", ["shared", "global"])
def test_threads_that_write_different_values_at_once_are_refused(scope):
    source = f"""
    S = T.alloc_buffer((8,), "int32", scope="{scope}")
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        S[tx // 2] = A[tx] + 1
        B[tx] = S[7 - tx // 2]
"""
    with pytest.raises(TVMError, match='write different values to one element of "S"'):
        lower(from_source("@T.prim_func\n" + _function(source)))


def test_two_loops_over_one_axis_that_a_statement_uses_both_are_refused():
    source = """
    S = T.alloc_buffer((16,), "int32", scope="shared")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for t2 in T.thread_binding(4, thread="threadIdx.x"):
            S[tx * 4 + t2] = A[tx * 4 + t2]
        B[tx] = S[3 - tx]
"""
    with pytest.raises(TVMError, match='The loops "tx" and "t2" inside it are both over'):
        lower(from_source("@T.prim_func\n" + _function(source)))


SUM = """
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 16), "float32")):
    S = T.alloc_buffer(({size},), scope="{scope}")
    for ty in T.thread_binding(4, thread="threadIdx.y"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            for k in range(4):
                with T.block("sum"):
                    vi = T.axis.spatial(4, ty)
                    vk = T.axis.reduce(64, k * 16 + tx)
                    with T.init():
                        S[{index}] = T.float32(0)
                    S[{index}] = S[{index}] + A[vi, vk]
            with T.block("add"):
                vi = T.axis.spatial(4, ty)
                vj = T.axis.spatial(16, tx)
                B[vi, vj] = S[{index}]
"""


@pytest.mark.parametrize("scope", ["shared", "local", "global", "warp"])
def test_threads_read_the_sum_of_all(scope):
    a = np.arange(256, dtype="float32").reshape(4, 64)
    func = from_source(SUM.format(size=4, index="vi", scope=scope))
    for target in TARGETS:
        out = mlcweb.nd.empty((4, 16))
        mlcweb.build(func, target=target, name="main")(mlcweb.nd.array(a), out)
        np.testing.assert_array_equal(out.numpy(), np.repeat(a.sum(1, keepdims=True), 16, 1))
    kernel = mlcweb.build(func, target="cuda").imports[0].inspect_source()
    assert "__shared__ float S[" in kernel and "S[1]" not in kernel
    between = kernel[kernel.rindex("\n    S[") : kernel.rindex("\n  B[")]
    assert "__syncthreads();" in between


@pytest.mark.parametrize("scope", ["shared", "local", "global"])
def test_rows_of_threads_that_sum_into_one_element_are_refused(scope):
    with pytest.raises(TVMError, match='reads an element of "S" that another may write'):
        lower(from_source(SUM.format(size=1, index="0", scope=scope)))


@pytest.mark.parametrize("start", range(0, 240, 60))
def test_random_programs_run_as_in_lockstep_or_are_refused(start):
    """Those that mean something: no thread reads what another may have written or not."""
    ran = refused = 0
    for seed in range(start, start + 60):
        text = RandomThreads(seed).program()
        arrays = [DATA[:8], DATA[8:], DATA[4:12]]
        try:
            expected = run_lockstep(text, arrays)
        except Race:
            continue
        func = from_source("@T.prim_func\n" + text)
        for target in TARGETS:
            given = [mlcweb.nd.array(array) for array in arrays]
            try:
                kernel = mlcweb.build(func, target=target, name="main")
            except ThreadError:
                refused += 1
                break
            kernel(*given)
            for result, array in zip(given, expected, strict=True):
                np.testing.assert_array_equal(result.numpy(), array, f"{target}, seed {seed}")
        ran += 1
    assert ran - refused >= 5


PARAMETERS = """
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        B[tx] = A[tx] + 1
        A[tx] = B[15 - tx] * 2
        B[tx] = B[tx] + A[(tx + 3) % 16]
"""


@pytest.mark.parametrize("target", TARGETS)
def test_threads_exchange_data_through_parameters(target):
    a, b = mlcweb.nd.array(DATA), mlcweb.nd.empty((16,), "int32")
    mlcweb.build(from_source("@T.prim_func\n" + _function(PARAMETERS)), target)["main"](a, b)
    doubled = 2 * (DATA + 1)[::-1]
    assert a.numpy().tolist() == doubled.tolist()
    assert b.numpy().tolist() == (DATA + 1 + np.roll(doubled, -3)).tolist()


def test_a_view_has_as_many_elements_as_a_value_that_is_bound_first():
    func = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "float32")
    B = T.match_buffer(b, (4, n), "float32")
    size: T.int32 = n * 4
    flat = T.decl_buffer((size,), data=A.data)
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        S = T.decl_buffer((4,), scope="shared")
        S[tx] = flat[tx * n]
        T.tvm_storage_sync("shared")
        B[tx, 0] = S[3 - tx]
""")
    a = np.arange(12, dtype="float32").reshape(4, 3)
    for target in ("interpreter", "numpy", "wasm", "llvm"):
        out = mlcweb.nd.array(np.zeros_like(a))
        mlcweb.build(func, target=target)["main"](mlcweb.nd.array(a), out)
        np.testing.assert_array_equal(out.numpy()[:, 0], a[::-1, 0], err_msg=target)
