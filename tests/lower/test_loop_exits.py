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
