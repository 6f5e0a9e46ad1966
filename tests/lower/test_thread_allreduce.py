"""`T.tvm_thread_allreduce` as scripts write it: against NumPy, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from tests.cuda_on_cpu import COMPILER, run_cuda_on_cpu
from tests.gpu import assert_kernels_give

TARGETS = ("interpreter", "numpy", "wasm", "llvm", "simulated")


def assert_gives(func: Any, inputs: list[Any], expected: Any) -> None:
    """On the targets of this machine, on the GPUs that are here, and as CUDA C on threads."""
    for target in TARGETS:
        out = mlcweb.nd.array(np.full(expected.shape, 77, expected.dtype))
        mlcweb.build(func, target=target)["main"](*map(mlcweb.nd.array, inputs), out)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-5, err_msg=target)
    assert_kernels_give(func, inputs, expected)
    if COMPILER is not None:
        result = np.full(expected.shape, 77, expected.dtype)
        run_cuda_on_cpu(func, [*(np.ascontiguousarray(x) for x in inputs), result])
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def rows(
    columns: int,
    combine: str = "x + y",
    identity: str = "T.float32(0)",
    condition: str = "T.bool(True)",
    along_y: int = 2,
) -> Any:
    """Rows of a matrix, each reduced by the threads along x, of which all store the result."""
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((4, {columns}), "float32"), B: T.Buffer((4, {columns}), "float32")):
    for b in T.thread_binding({4 // along_y}, thread="blockIdx.x"):
        for ty in T.thread_binding({along_y}, thread="threadIdx.y"):
            for tx in T.thread_binding({columns}, thread="threadIdx.x"):
                with T.block("row"):
                    vb, vy, vx = T.axis.remap("SSS", [b, ty, tx])
                    T.reads()
                    T.writes()
                    total = T.alloc_buffer((1,), "float32", scope="local")
                    with T.block("cross_thread"):
                        T.reads(A[vb * {along_y} + vy, vx])
                        T.writes(total[0])
                        T.attr(T.comm_reducer(lambda x, y: {combine}, [{identity}]),
                               "reduce_scope", T.reinterpret("handle", T.uint64(0)))
                        T.tvm_thread_allreduce(T.uint32(1), A[vb * {along_y} + vy, vx],
                                               {condition}, total[0], vx, dtype="handle")
                    B[vb * {along_y} + vy, vx] = total[0] - A[vb * {along_y} + vy, vx]
"""
    )


def data(columns: int) -> Any:
    return np.random.default_rng(columns).integers(-9, 9, (4, columns)).astype("float32")


@pytest.mark.parametrize("columns", [32, 48, 7])
def test_all_threads_have_the_sum(columns: int) -> None:
    """By whole warps, parts of warps, and threads that are no lanes."""
    a = data(columns)
    assert_gives(rows(columns), [a], a.sum(1, keepdims=True) - a)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", TARGETS)
def test_narrow_floats(target: str, dtype: str) -> None:
    """Which are other numbers, and integers in memory, where a target lacks them."""
    func = from_source(rows(32).script().replace("float32", dtype))
    a = data(32)
    arrays = [mlcweb.nd.empty(a.shape, dtype) for _ in range(2)]
    arrays[0].copyfrom(a)
    mlcweb.build(func, target=target)["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy().astype("float32"), a.sum(1, keepdims=True) - a)


def test_the_greatest_value() -> None:
    a = data(64)
    func = rows(64, "T.max(x, y)", 'T.min_value("float32")', along_y=1)
    assert_gives(func, [a], a.max(1, keepdims=True) - a)


def test_any_combination() -> None:
    a = data(40) / 16
    func = rows(40, "x + y - x * y")
    assert_gives(func, [a], 1 - np.prod(1 - a, axis=1, keepdims=True) - a)


def test_threads_without_the_condition_count_for_nothing() -> None:
    a = data(48)
    func = rows(48, condition="A[vb * 2 + vy, vx] > T.float32(2)")
    assert_gives(func, [a], np.where(a > 2, a, 0).sum(1, keepdims=True) - a)


@pytest.mark.parametrize("columns", [16, 40])
def test_where_the_greatest_value_is(columns: int) -> None:
    """Two values are reduced together."""
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((4, {columns}), "float32"), B: T.Buffer((4,), "int32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding({columns}, thread="threadIdx.x"):
            place = T.alloc_buffer((1,), "int32", scope="local")
            value = T.alloc_buffer((1,), "float32", scope="local")
            with T.attr(
                T.comm_reducer(
                    lambda x0, x1, y0, y1: (
                        T.Select(x1 > y1 or (x1 == y1 and x0 < y0), x0, y0),
                        T.Select(x1 > y1 or (x1 == y1 and x0 < y0), x1, y1),
                    ),
                    [T.int32(-1), T.min_value("float32")],
                ),
                "reduce_scope",
                T.int32(0),
            ):
                T.tvm_thread_allreduce(
                    T.uint32(2), tx, A[b, tx], tx % 2 == 0, place[0], value[0], tx, dtype="void"
                )
            if tx == 0 and value[0] == A[b, place[0]]:
                B[b] = place[0]
"""
    )
    a = data(columns)
    assert_gives(func, [a], a[:, ::2].argmax(1).astype("int32") * 2)


def test_in_loops_over_two_axes() -> None:
    """As a softmax does it: threads have several values, and each pass needs the one before."""
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((2, 3, 96), "float32"), B: T.Buffer((2, 3, 96), "float32")):
    T.func_attr({"tir.is_scheduled": True})
    bx = T.env_thread("blockIdx.x")
    ty = T.env_thread("threadIdx.y")
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(bx, 2)
    T.launch_thread(ty, 2)
    T.launch_thread(tx, 16)
    own = T.alloc_buffer((1,), "float32", scope="local")
    top = T.alloc_buffer((1,), "float32", scope="local")
    total = T.alloc_buffer((1,), "float32", scope="local")
    for row in range(3):
        own[0] = T.min_value("float32")
        for k in range(3):
            own[0] = T.max(own[0], A[bx, row, k * 32 + ty * 16 + tx])
        with T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [T.min_value("float32")]),
                    "reduce_scope", T.int32(0)):
            T.tvm_thread_allreduce(T.uint32(1), own[0], True, top[0], ty, tx, dtype="void")
        own[0] = T.float32(0)
        for k in range(3):
            own[0] += T.exp(A[bx, row, k * 32 + ty * 16 + tx] - top[0])
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                    "reduce_scope", T.int32(0)):
            T.tvm_thread_allreduce(T.uint32(1), own[0], True, total[0], ty, tx, dtype="void")
        for k in range(3):
            B[bx, row, k * 32 + ty * 16 + tx] = (
                T.exp(A[bx, row, k * 32 + ty * 16 + tx] - top[0]) / total[0]
            )
"""
    )
    a = np.random.default_rng(5).standard_normal((2, 3, 96)).astype("float32")
    exps = np.exp(a - a.max(2, keepdims=True))
    assert_gives(func, [a], exps / exps.sum(2, keepdims=True))


def test_as_tvm_prints_what_it_has_made_of_a_reduction_over_threads() -> None:
    """The block around the call has the axis that is reduced over, and memory with strides."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 1), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        with T.block(""):
            T.reads(A[b, 0:32])
            T.writes(B[b, 0])
            total = T.alloc_buffer((1,), strides=(1,), scope="local")
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("cross_thread"):
                    vx, vb = T.axis.remap("RS", [tx, b])
                    T.reads(A[vb, vx])
                    T.writes(total[0])
                    T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                           "reduce_scope", T.reinterpret("handle", T.uint64(0)))
                    T.tvm_thread_allreduce(T.uint32(1), A[vb, vx], T.bool(True), total[0], tx)
                with T.block("write_back"):
                    vb = T.axis.spatial(4, b)
                    T.where(tx == 0)
                    T.reads(total[0])
                    T.writes(B[vb, 0])
                    B[vb, 0] = total[0]
""")
    a = data(32)
    assert_gives(func, [a], a.sum(1, keepdims=True))


def test_until_a_sum_is_small_enough() -> None:
    """As a search for a pivot does it: all threads go on, or none."""
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("search"):
                vb, vt = T.axis.remap("SS", [b, t])
                T.reads(A[vb, vt])
                T.writes(B[vb])
                low = T.alloc_buffer((1,), "float32", scope="shared")
                high = T.alloc_buffer((1,), "float32", scope="shared")
                total = T.alloc_buffer((1,), "float32", scope="local")
                if vt == 0:
                    low[0] = T.float32(0)
                    high[0] = T.float32(1)
                T.tvm_storage_sync("shared")
                while T.tvm_thread_invariant(high[0] - low[0] > T.float32(0.001)):
                    with T.block("cross_thread"):
                        T.reads()
                        T.writes(total[0])
                        T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                               "reduce_scope", T.reinterpret("handle", T.uint64(0)))
                        T.tvm_thread_allreduce(
                            T.uint32(1), A[vb, vt],
                            A[vb, vt] >= (low[0] + high[0]) * T.float32(0.5),
                            total[0], vt, dtype="handle")
                    T.tvm_storage_sync("shared")
                    if vt == 0:
                        if total[0] >= T.float32(8):
                            low[0] = (low[0] + high[0]) * T.float32(0.5)
                        else:
                            high[0] = (low[0] + high[0]) * T.float32(0.5)
                if vt == 0:
                    B[vb] = low[0]
"""
    )
    a = np.random.default_rng(6).integers(0, 64, (4, 64)).astype("float32") / 64
    expected = np.zeros(4, "float32")
    for b, row in enumerate(a):
        low, high = np.float32(0), np.float32(1)
        while high - low > np.float32(0.001):
            middle = (low + high) * np.float32(0.5)
            if row[row >= middle].sum() >= 8:
                low = middle
            else:
                high = middle
        expected[b] = low
    assert_gives(func, [a], expected)


REFUSED = """
@T.prim_func
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            total = T.alloc_buffer((1,), "float32", scope="local")
            for i in range(2):
                {where}
                    {call}
            B[b, t] = total[0]
"""
SUM = 'with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):'
CALL = "T.tvm_thread_allreduce(T.uint32(1), A[b, t], True, total[0], t)"


@pytest.mark.parametrize("target", ["interpreter", "cuda"])
@pytest.mark.parametrize(
    ("where", "call", "reason"),
    [
        ("if i == 0:", CALL, "does not say how it combines values; write it in"),
        (SUM, CALL.replace("total[0], t", "total[0], i"), 'over "i", which is no loop around'),
        (SUM, CALL.replace("total[0], t", "total[0], b"), 'over "b", which is no loop around'),
        (SUM, CALL.replace("uint32(1)", "uint32(2)"), r"its reducer has 1 value\(s\)"),
        (SUM, CALL.replace("total[0]", "T.float32(1)"), "reduces to elements of buffers, and not"),
        (f"if t < 9:\n                  {SUM}", CALL, r'the condition "t < 9" depends on thread'),
    ],
)  # fmt: skip
def test_calls_that_are_refused(where: str, call: str, reason: str, target: str) -> None:
    func = from_source(REFUSED.format(where=where, call=call))
    with pytest.raises(ThreadError, match=reason):
        mlcweb.build(func, target=target)
