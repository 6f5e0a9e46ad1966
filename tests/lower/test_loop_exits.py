"""`break` and `continue` of loops; the numbers are those of a real TVM 0.27 (target llvm)."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import DiagnosticError
from mlcweb.lower.loop_exits import lower_loop_exits
from mlcweb.script import from_source

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(8):
        if A[i] < 0:
            break
        if A[i] == 2:
            continue
        B[i] = A[i] * 10
    for i in range(4):
        for j in range(8):
            if j > i:
                break
            else:
                if A[j] == 3:
                    continue
            C[i] = C[i] + j + 1
        C[i] = C[i] + 100
    n: T.int32 = 0
    while n < 100:
        n = n + 1
        if n == 7:
            B[7] = n
            break
"""
A = [1, 2, 3, 4, -1, 5, 2, 6]
B = [10, 0, 30, 40, 0, 0, 0, 7]
C = [101, 103, 103, 107]


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm"])
def test_loops_end_where_they_are_left(target: str) -> None:
    library = tvm.build(from_source(PROGRAM), target)
    arrays = [tvm.nd.array(np.array(x, "int32")) for x in (A, [0] * 8, [0] * 4)]
    library["main"](*arrays)
    assert [array.numpy().tolist() for array in arrays[1:]] == [B, C]


def test_a_loop_of_blocks_is_left() -> None:
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), n: T.int32):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.writes(A[v])
            if v == n:
                T.break_loop()
            A[v] = v + 1
""")
    a = tvm.nd.array(np.zeros(8, "int32"))
    tvm.build(program, "interpreter")["main"](a, 3)
    assert a.numpy().tolist() == [1, 2, 3, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [("for i in T.parallel(4):", "not one that is PARALLEL"), ("if A[0] > 0:", "no loop around")],
)
def test_what_cannot_be_left(loop: str, reason: str) -> None:
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    {loop}
        T.break_loop()
""")
    with pytest.raises(DiagnosticError, match=reason):
        lower_loop_exits(program)


THREADS = """
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    for i in T.thread_binding(16, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            if i >= 8 or j >= 8:
                T.thread_return()
            {more}
            B[i, j] = A[i, j]
"""
SQUARE = np.arange(64, dtype="int32").reshape(8, 8)


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm", "llvm", "simulated"])
@pytest.mark.parametrize(
    ("more", "leaves"),
    [
        ("T.evaluate(0)", SQUARE < 0),
        ("if A[i, j] % 3 == 0:\n                B[i, j] = 0\n                T.thread_return()",
         SQUARE % 3 == 0),
        ("for k in range(4):\n                if A[i, j] == k * 7:\n"
         "                    T.thread_return()", np.isin(SQUARE, (0, 7, 14, 21))),
    ],
)  # fmt: skip
def test_threads_leave_a_kernel(target: str, more: str, leaves: np.ndarray) -> None:
    library = tvm.build(from_source(THREADS.format(more=more)), target)
    a, b = tvm.nd.array(SQUARE), tvm.nd.array(0 * SQUARE)
    library["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), np.where(leaves, 0, SQUARE))


@pytest.mark.parametrize("kind", ["cuda", "opencl", "metal", "webgpu"])
def test_what_a_leaving_thread_skips_stands_under_a_condition(kind: str) -> None:
    library = tvm.build(from_source(THREADS.format(more="T.evaluate(0)")), kind)
    source = library.imports[0].get_source()
    assert source.count("if (") == 1 and "going" not in source


def test_threads_do_not_leave_what_follows_in_their_kernel() -> None:
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in T.thread_binding(8, thread="threadIdx.x"):
            if j > 5:
                T.thread_return()
            A[i, j] = 1
        for k in T.thread_binding(8, thread="threadIdx.x"):
            A[i, k] = A[i, k] + 1
""")
    with pytest.raises(DiagnosticError, match="other parts of it follow"):
        tvm.build(program, "cuda")
