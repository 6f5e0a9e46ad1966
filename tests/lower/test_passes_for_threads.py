"""Passes over programs with threads, and what they annotate: the programs expected are what TVM
0.27 makes, and what is computed stays."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule
from mlcweb.lower import transform
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source

HEAD = '@T.prim_func\ndef main(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4, 16), "float32")):\n'

TWO_LOOPS_OVER_THREADS = """
    for b in T.thread_binding(4, thread="blockIdx.x"):
        with T.block("reversed"):
            T.reads(A[b, 0:16])
            T.writes(C[b, 0:16])
            S = T.alloc_buffer((16,), scope="shared")
            for i in range(2):
                for x in T.thread_binding(8, thread="threadIdx.x"):
                    with T.block("copy"):
                        T.reads(A[b, i * 8 + x])
                        T.writes(S[i * 8 + x])
                        S[i * 8 + x] = A[b, i * 8 + x]
            for y in T.thread_binding(2, thread="threadIdx.y"):
                for x in T.thread_binding(
                    8, thread="threadIdx.x", annotations={"pragma_unroll_explicit": 1}
                ):
                    with T.block("store"):
                        T.reads(S[15 - y * 8 - x])
                        T.writes(C[b, y * 8 + x])
                        C[b, y * 8 + x] = S[15 - y * 8 - x]
"""
ONE_LOOP_OVER_THREADS = """
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for x in T.thread_binding(
            8, thread="threadIdx.x", annotations={"pragma_unroll_explicit": 1}
        ):
            with T.block("reversed"):
                T.reads(A[b, 0:16])
                T.writes(C[b, 0:16])
                S = T.alloc_buffer((16,), scope="shared")
                for i in range(2):
                    with T.block("copy"):
                        T.reads(A[b, i * 8 + x])
                        T.writes(S[i * 8 + x])
                        S[i * 8 + x] = A[b, i * 8 + x]
                for y in T.thread_binding(2, thread="threadIdx.y"):
                    with T.block("store"):
                        T.reads(S[15 - y * 8 - x])
                        T.writes(C[b, y * 8 + x])
                        C[b, y * 8 + x] = S[15 - y * 8 - x]
"""
COPY_TO_SHARED_MEMORY = """
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for x in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("outer"):
                T.reads(A[b, 0:16])
                T.writes(C[b, 0:16])
                S = T.alloc_buffer((4, 16), scope="shared")
                for i in range(2):
                    for v in T.vectorized(2):
                        with T.block("S"):
                            T.reads(A[b, i * 8 + x * 2 + v])
                            T.writes(S[b, i * 8 + x * 2 + v])
                            T.block_attr({"tirx.manifest_shared_memory_local_stage": 1})
                            S[b, i * 8 + x * 2 + v] = A[b, i * 8 + x * 2 + v]
                for i in range(4):
                    with T.block("C"):
                        T.reads(S[b, 15 - i * 4 - x])
                        T.writes(C[b, i * 4 + x])
                        C[b, i * 4 + x] = S[b, 15 - i * 4 - x]
"""
COPY_THROUGH_REGISTERS = """
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for x in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("outer"):
                T.reads(A[b, 0:16])
                T.writes(C[b, 0:16])
                S = T.alloc_buffer((4, 16), scope="shared")
                S_local = T.alloc_buffer((2, 2), scope="local")
                for i in range(2):
                    for v in T.vectorized(2):
                        with T.block(""):
                            T.reads(A[b, i * 8 + x * 2 + v])
                            T.writes(S_local[i, v])
                            S_local[i, v] = A[b, i * 8 + x * 2 + v]
                for i in range(2):
                    for v in T.vectorized(2):
                        with T.block("S"):
                            T.reads(A[b, i * 8 + x * 2 + v])
                            T.writes(S[b, i * 8 + x * 2 + v])
                            S[b, i * 8 + x * 2 + v] = S_local[i, v]
                for i in range(4):
                    with T.block("C"):
                        T.reads(S[b, 15 - i * 4 - x])
                        T.writes(C[b, i * 4 + x])
                        C[b, i * 4 + x] = S[b, 15 - i * 4 - x]
"""
VIRTUAL_THREADS = """
    b = T.launch_thread("blockIdx.x", 4)
    v = T.launch_thread("vthread", 2)
    S = T.decl_buffer((8,), scope="local")
    for i in range(8):
        S[i] = A[b, v * 8 + i]
    if b == 2:
        S[3] = S[v] + T.float32(1)
    for i in range(8):
        if v < 1:
            C[b, i] = S[7 - i]
    for i in range(8):
        C[b, 8 + i] = A[b, i]
"""
WITHOUT_VIRTUAL_THREADS = """
    b = T.launch_thread("blockIdx.x", 4)
    S = T.decl_buffer((16,), scope="local")
    for i in range(8):
        S[T.Mul(0, 8) + i] = A[b, T.Mul(0, 8) + i]
        S[T.Mul(1, 8) + i] = A[b, T.Mul(1, 8) + i]
    if b == 2:
        S[T.Mul(0, 8) + 3] = S[T.Mul(0, 9)] + T.float32(1)
        S[T.Mul(1, 8) + 3] = S[T.Mul(1, 9)] + T.float32(1)
    for i in range(8):
        if T.LT(0, 1):
            C[b, i] = S[T.Mul(0, 8) + 7 - i]
        if T.LT(1, 1):
            C[b, i] = S[T.Mul(1, 8) + 7 - i]
    for i in range(8):
        C[b, 8 + i] = A[b, i]
        C[b, 8 + i] = A[b, i]
"""
CASES = {
    "InjectVirtualThread": (VIRTUAL_THREADS, WITHOUT_VIRTUAL_THREADS),
    "LiftThreadBinding": (TWO_LOOPS_OVER_THREADS, ONE_LOOP_OVER_THREADS),
    "ManifestSharedMemoryLocalStage": (COPY_TO_SHARED_MEMORY, COPY_THROUGH_REGISTERS),
}


def module(body: str) -> IRModule:
    return IRModule({"main": from_source(HEAD + body)})


def result(mod: IRModule, target: str) -> np.ndarray:
    a = np.arange(64, dtype="float32").reshape(4, 16)
    arrays = [tvm.nd.array(a), tvm.nd.array(np.zeros_like(a))]
    tvm.build(mod, target)["main"](*arrays)
    return arrays[1].numpy()


@pytest.mark.parametrize("name", CASES)
def test_a_pass_does_what_tvms_does(name: str) -> None:
    before, after = map(module, CASES[name])
    new = getattr(transform, name)()(before)
    tvm.ir.assert_structural_equal(new, after, map_free_vars=True)
    for target in ("interpreter", "simulated"):
        expected = result(before, target)
        assert expected.any()
        np.testing.assert_array_equal(result(new, target), expected)


@pytest.mark.parametrize("name", CASES)
def test_a_program_that_is_done_stays(name: str) -> None:
    done = module(CASES[name][1])
    new = getattr(transform, name)()(done)
    tvm.ir.assert_structural_equal(new, done, map_free_vars=True)


def test_loops_of_one_axis_that_differ_are_refused() -> None:
    shorter = TWO_LOOPS_OVER_THREADS.replace(
        '8, thread="threadIdx.x", ann', '4, thread="threadIdx.x", ann'
    )
    with pytest.raises(ThreadError, match="all loops of one thread axis in a kernel have the same"):
        transform.LiftThreadBinding()(module(shorter))


def test_kernels_have_axes_of_their_own() -> None:
    mod = module(TWO_LOOPS_OVER_THREADS + TWO_LOOPS_OVER_THREADS.replace("A[b, i", "C[b, i"))
    new = transform.LiftThreadBinding()(mod)
    assert len(re.findall("thread_binding", new.script())) == 6
    np.testing.assert_array_equal(result(new, "interpreter"), result(mod, "interpreter"))


def test_only_stores_of_one_element_go_through_registers() -> None:
    twice = "S[b, i * 8 + x * 2 + v] = A[b, i * 8 + x * 2 + v]\n"
    body = COPY_TO_SHARED_MEMORY.replace(twice, twice + " " * 28 + twice)
    with pytest.raises(tvm.TVMError, match="of a block that stores one element"):
        transform.ManifestSharedMemoryLocalStage()(module(body))


MANY_VIRTUAL_THREADS = """
    v = T.launch_thread("vthread", 16)
    S = T.decl_buffer((4,), scope="shared")
    for i in range(4):
        S[i] = A[i, v]
    T.evaluate(T.tvm_storage_sync("shared"))
    for i in range(4):
        C[i, v] = S[3 - i] * T.float32(2)
"""


def test_many_virtual_threads_are_a_loop() -> None:
    mod = module(MANY_VIRTUAL_THREADS)
    new = transform.InjectVirtualThread()(mod)
    text = new.script()
    assert text.count("for i, v_s in T.grid(4, 16):") == 2
    assert text.count("T.tvm_storage_sync") == 1
    assert "S[v_s * 4 + i] = A[i, v_s]" in text
    a = np.arange(64, dtype="float32").reshape(4, 16)
    np.testing.assert_array_equal(result(new, "interpreter"), a[::-1] * 2)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("S[3 - i]", "S[(i + v) % 4]", 'may exchange data through "S"'),
        ("T.evaluate", "if v < 3:\n        T.evaluate", "Not all virtual threads .v. come to a"),
        (
            "(4,), scope",
            "(2, 2), scope",
            r'gets a part of "S" of shape \(2, 2\), which is not flat',
        ),
    ],
)
def test_virtual_threads_that_need_each_other_are_refused(old: str, new: str, reason: str) -> None:
    body = MANY_VIRTUAL_THREADS.replace(old, new)
    if "2, 2" in new:
        body = body.replace("S[i]", "S[i // 2, i % 2]").replace("S[3 - i]", "S[1, 1]")
    with pytest.raises(ThreadError, match=reason):
        transform.InjectVirtualThread()(module(body))
