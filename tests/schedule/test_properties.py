"""Whatever random sequence of primitives is accepted, the program computes the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlcweb
from mlcweb.ir import assert_structural_equal, structural_equal
from mlcweb.schedule import Trace
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from mlcweb.tir.buffer import constant_shape
from tests.random_schedules import random_step
from tests.strategies import examples

PROGRAMS = {
    "matmul": """
@T.prim_func
def main(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 8), "float32"),
         C: T.Buffer((6, 8), "float32")):
    for i, j, k in T.grid(6, 8, 10):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""",
    "matmul_relu": """
@T.prim_func
def main(A: T.Buffer((7, 5), "float32"), B: T.Buffer((5, 9), "float32"),
         C: T.Buffer((7, 9), "float32")):
    Y = T.alloc_buffer((7, 9))
    for i, j, k in T.grid(7, 9, 5):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(7, 9):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
""",
    "stencil": """
@T.prim_func
def main(A: T.Buffer((12, 12), "float32"), C: T.Buffer((10, 10), "float32")):
    B = T.alloc_buffer((12, 10))
    for i, j in T.grid(12, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + A[vi, vj + 1] + A[vi, vj + 2]
    for i, j in T.grid(10, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
""",
    "pad_then_pool": """
@T.prim_func
def main(A: T.Buffer((9, 9), "float32"), C: T.Buffer((5, 5), "float32")):
    P = T.alloc_buffer((11, 11))
    for i, j in T.grid(11, 11):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.if_then_else(1 <= vi and vi < 10 and 1 <= vj and vj < 10,
                                       A[vi - 1, vj - 1], T.float32(0))
    for i, j, di, dj in T.grid(5, 5, 3, 3):
        with T.block("C"):
            vi, vj, vdi, vdj = T.axis.remap("SSRR", [i, j, di, dj])
            with T.init():
                C[vi, vj] = T.float32(-64)
            C[vi, vj] = T.max(C[vi, vj], P[vi * 2 + vdi, vj * 2 + vdj])
""",
    "diamond": """
@T.prim_func
def main(A: T.Buffer((8, 6), "int32"), D: T.Buffer((6, 8), "int32")):
    B = T.alloc_buffer((8, 6), "int32")
    C = T.alloc_buffer((8, 6), "int32")
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 3
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] - A[vi, vj]
    for i, j in T.grid(6, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vj, vi] + C[vj, vi] * 2
""",
    "two_reductions": """
@T.prim_func
def main(A: T.Buffer((6, 12), "float32"), O: T.Buffer((6, 12), "float32")):
    M = T.alloc_buffer((6,))
    S = T.alloc_buffer((6,))
    for i, k in T.grid(6, 12):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-1000)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(6, 12):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + (A[vi, vk] - M[vi])
    for i, j in T.grid(6, 12):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = (A[vi, vj] - M[vi]) * S[vi]
""",
}


def inputs(func, seed):
    """Small integers in every dtype, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-8, 8, constant_shape(buffer)).astype(buffer.dtype)
        for buffer in func.parameter_buffers
    ]


def run(mod, arrays, target):
    device = [mlcweb.nd.array(array) for array in arrays]
    mlcweb.build(mod, target=target)["main"](*device)
    return [array.numpy() for array in device]


@pytest.mark.parametrize("name", PROGRAMS)
@examples(25)
@given(data=st.data())
def test_accepted_schedules_keep_the_numbers(name, data):
    sch = Schedule(from_source(PROGRAMS[name]), seed=data.draw(st.integers(1, 2**30), "seed"))
    before = sch.mod
    for _ in range(data.draw(st.integers(1, 10), "steps")):
        random_step(sch, lambda options: data.draw(st.sampled_from(options)))
    arrays = inputs(before["main"], 0)
    wanted = run(before, arrays, "interpreter")
    for target in ("interpreter", "numpy", "wasm"):
        for got, want in zip(run(sch.mod, arrays, target), wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{target}\n{sch.mod}\n{sch.trace}")
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)


@examples(40)
@given(data=st.data())
def test_traces_replay(data):
    name = data.draw(st.sampled_from(list(PROGRAMS)))
    module = from_source(PROGRAMS[name])
    sch = Schedule(module, seed=data.draw(st.integers(1, 2**30)))
    for _ in range(data.draw(st.integers(1, 10))):
        random_step(sch, lambda options: data.draw(st.sampled_from(options)))
    again = Schedule(module)
    sch.trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, sch.mod)
    assert str(again.trace) == str(sch.trace)
    from_json = Schedule(module)
    Trace.apply_json_to_schedule(sch.trace.as_json(), from_json)
    assert_structural_equal(from_json.mod, sch.mod)
    simplified = Schedule(module)
    sch.trace.simplified(remove_postproc=False).apply_to_schedule(simplified)
    assert structural_equal(simplified.mod, sch.mod)
