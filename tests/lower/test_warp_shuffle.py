"""`T.tvm_warp_shuffle` and its kin as scripts write them: against NumPy, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from tests.lower.test_thread_allreduce import assert_gives


def shuffled(expression: str, threads: int = 64, dtype: str = "float32", header: str = "") -> Any:
    """`B[t]` is an expression of `A[t]`, in the threads t of a block."""
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer(({threads},), "{dtype}"), B: T.Buffer(({threads},), "{dtype}")):
    for t in T.thread_binding({threads}, thread="threadIdx.x"):
        with T.block("B"):
            vt = T.axis.spatial({threads}, t)
            T.reads(A[vt])
            T.writes(B[vt])
            {header or "pass"}
            B[vt] = {expression}
"""
    )


def numbers(threads: int = 64, dtype: str = "float32") -> Any:
    return np.random.default_rng(threads).integers(-9, 99, threads).astype(dtype)


def of_lanes(a: Any, source: Any, width: int) -> Any:
    """What the threads have of others among `width`: `source(lane)`, or their own beyond it."""
    sections = a.reshape(-1, width)
    sources = [source(lane) for lane in range(width)]
    lanes = [s if 0 <= s < width else lane for lane, s in enumerate(sources)]
    return sections[:, lanes].ravel()


@pytest.mark.parametrize("width", [32, 8])
@pytest.mark.parametrize(
    ("kind", "where", "source"),
    [
        ("", "vt * 5 + 2", lambda lane: None),
        ("_up", "3", lambda lane: lane - 3),
        ("_down", "2", lambda lane: lane + 2),
        ("_xor", "5", lambda lane: lane ^ 5),
    ],
)
def test_threads_read_each_other(kind: str, where: str, source: Any, width: int) -> None:
    a = numbers()
    call = f"T.tvm_warp_shuffle{kind}(T.tvm_warp_activemask(), A[vt], {where}, {width}, 32)"
    expected = of_lanes(a, source if kind else lambda lane: (lane * 5 + 2) % width, width)
    assert_gives(shuffled(f"{call} + A[vt]"), [a], expected + a)


def test_a_warp_sums_step_by_step() -> None:
    """In memory of the thread's own, one exchange after the other; and of int32."""
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((2, 32), "int32"), B: T.Buffer((2,), "int32")):
    for y in T.thread_binding(2, thread="threadIdx.y"):
        for x in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vy, vx = T.axis.remap("SS", [y, x])
                T.reads(A[vy, vx])
                T.writes(B[vy])
                total = T.alloc_buffer((1,), "int32", scope="local")
                total[0] = A[vy, vx]
                for step in range(5):
                    total[0] = total[0] + T.tvm_warp_shuffle_down(
                        T.uint32(4294967295), total[0], T.shift_right(16, step), 32, 32
                    )
                if vx == 0:
                    B[vy] = total[0]
"""
    )
    a = numbers(64, "int32").reshape(2, 32)
    assert_gives(func, [a], a.sum(1, dtype="int32"))


def test_a_shuffle_of_a_shuffle_with_a_name() -> None:
    a = numbers()
    up = "T.tvm_warp_shuffle_up(T.uint32(15), A[vt], 1, 32, 32)"
    func = shuffled("x * 2.0", header=f"x: T.float32 = T.tvm_warp_shuffle_xor(15, {up}, 1, 32, 32)")
    expected = of_lanes(of_lanes(a, lambda lane: lane - 1, 32), lambda lane: lane ^ 1, 32) * 2
    assert_gives(func, [a], expected)


def test_beyond_the_block_a_thread_reads_its_own() -> None:
    a = numbers(40)
    func = shuffled("T.tvm_warp_shuffle_down(T.uint32(15), A[vt], 4, 32, 32)", 40)
    sources = [t + 4 if t % 32 + 4 < 32 and t + 4 < 40 else t for t in range(40)]
    assert_gives(func, [a], a[sources])


def test_the_source_of_kernels_has_the_instructions() -> None:
    func = shuffled("T.tvm_warp_shuffle_up(T.uint32(15), A[vt], 3, 32, 32)")
    for target, text in (
        ("cuda", "__shfl_up_sync(0xffffffff, A["),
        ("metal", "simd_shuffle_up(A["),
    ):
        assert text in mlcweb.build(func, target=target).imports[0].inspect_source()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("T.if_then_else(vt < 3, {}, 1.0)", "not all threads compute"),
        ("T.tvm_warp_shuffle(T.uint32(15), A[vt], 1, 5, 32)", "among 5 threads"),
    ],
)
def test_what_is_refused(expression: str, message: str) -> None:
    call = "T.tvm_warp_shuffle(T.uint32(15), A[vt], 1, 32, 32)"
    with pytest.raises(ThreadError, match=message):
        mlcweb.build(shuffled(expression.format(call)), target="llvm")


def test_not_all_threads_of_the_block_come() -> None:
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        if t < 7:
            B[t] = T.tvm_warp_shuffle(T.uint32(15), A[t], 1, 32, 32)
"""
    )
    for target in ("llvm", "cuda"):
        with pytest.raises(ThreadError, match="not all of them come"):
            mlcweb.build(func, target=target)
