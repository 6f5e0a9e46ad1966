"""CompactBufferAllocation: which part of a buffer is really touched, with shapes that are TVM's."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, tir
from mlcweb.ir.visitor import walk
from mlcweb.lower import transform
from mlcweb.script import tir as T


def shapes(func: tir.PrimFunc) -> dict[str, list[int]]:
    """The shapes of what a function allocates, by name."""
    return {
        buffer.name: [int(extent) for extent in buffer.shape]
        for node in walk(func.body)
        for buffer in getattr(node, "alloc_buffers", ())
    }


def compacted(func: tir.PrimFunc, is_strict: bool = True) -> tir.PrimFunc:
    return transform.CompactBufferAllocation(is_strict)(IRModule({"main": func}))["main"]


def results(func: tir.PrimFunc) -> list[np.ndarray]:
    """What a function computes of random numbers."""
    random = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(random.standard_normal([int(n) for n in buffer.shape]).astype(buffer.dtype))
        for buffer in func.parameter_buffers
    ]
    tvm.build(func, target="interpreter")(*arrays)
    return [array.numpy() for array in arrays]


@T.prim_func
def padded(A: T.Buffer((16, 16), "float32"), C: T.Buffer((20, 20), "float32")):
    B = T.alloc_buffer((20, 20))
    for i, j in T.grid(16, 16):
        with T.block(""):
            B[i, j] = A[i, j]
    for i, j in T.grid(20, 20):
        with T.block(""):
            C[i, j] = T.if_then_else(
                2 <= i and i < 18 and 2 <= j and j < 18, B[i - 2, j - 2], T.float32(0)
            )


@T.prim_func
def branches(A: T.Buffer((24, 24), "float32"), C: T.Buffer((24, 24), "float32")):
    B1 = T.alloc_buffer((24, 24))
    B2 = T.alloc_buffer((24, 24))
    for i, j in T.grid(24, 24):
        with T.block(""):
            if i < 12 or j < 12:
                B1[i, j] = A[i, j] * T.float32(2)
            else:
                B2[i, j] = A[i, j] + T.float32(3)
    for i, j in T.grid(24, 24):
        with T.block(""):
            C[i, j] = T.if_then_else(i < 12 or j < 12, B1[i, j], B2[i, j])


@T.prim_func
def windows(X: T.Buffer((16,), "float32"), Y: T.Buffer((8,), "float32")):
    for o in range(2):
        with T.block(""):
            cache = T.alloc_buffer((16,))
            for a in range(9):
                with T.block(""):
                    T.where(1 <= o * 8 + a)
                    cache[o * 8 + a - 1] = X[o * 8 + a - 1]
            for i, k in T.grid(4, 3):
                with T.block(""):
                    Y[o * 4 + i] = T.max(
                        Y[o * 4 + i],
                        T.if_then_else(
                            T.likely(1 <= (o * 4 + i) * 2 + k),
                            cache[(o * 4 + i) * 2 + k - 1],
                            T.float32(0),
                        ),
                    )


@T.prim_func
def tiles(X: T.Buffer((60, 40), "float32"), Y: T.Buffer((60, 40), "float32")):
    for bx in range(4):
        with T.block(""):
            cache = T.alloc_buffer((60, 40))
            for t, v in T.grid(32, 3):
                with T.block(""):
                    T.where(bx // 2 * 32 + (t * 3 + v) // 2 < 60 and t * 3 + v < 64)
                    cache[bx // 2 * 32 + (t * 3 + v) // 2, bx % 2 * 2 + (t * 3 + v) % 2] = X[
                        bx // 2 * 32 + (t * 3 + v) // 2, bx % 2 * 2 + (t * 3 + v) % 2
                    ]
            for i, j in T.grid(32, 2):
                with T.block(""):
                    T.where(bx // 2 * 32 + i < 60)
                    Y[bx // 2 * 32 + i, bx % 2 * 2 + j] = cache[bx // 2 * 32 + i, bx % 2 * 2 + j]


@T.prim_func
def first_steps(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
    for o in range(4):
        with T.block(""):
            cache = T.alloc_buffer((64,))
            for i, k in T.grid(32, 4):
                with T.block(""):
                    T.where(i < 16)
                    if k == 0:
                        cache[i + 16 * o] = T.float32(0)
                    cache[i + 16 * o] = cache[i + 16 * o] + X[i + 16 * o]
            for i in range(16):
                with T.block(""):
                    Y[i + 16 * o] = cache[i + 16 * o]


@T.prim_func
def views(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i in range(16):
        with T.block(""):
            B = T.alloc_buffer((16, 16))
            with T.block(""):
                B0 = T.match_buffer(B[i, 0:16], (16,))
                for j in range(16):
                    B0[j] = A[i, j] + T.float32(1)
            for j in range(16):
                C[i, j] = B[i, j] * T.float32(2)


@pytest.mark.parametrize(
    ("func", "expected"),
    [
        (padded, {"B": [16, 16]}),
        (branches, {"B1": [24, 24], "B2": [12, 12]}),
        (windows, {"cache": [9]}),
        (tiles, {"cache": [32, 2]}),
        (first_steps, {"cache": [16]}),
        (views, {"B": [1, 16]}),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_buffers_hold_what_conditions_leave(
    func: tir.PrimFunc, expected: dict[str, list[int]]
) -> None:
    small = compacted(func)
    assert shapes(small) == expected
    for before, after in zip(results(func), results(small), strict=True):
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(("scope", "rows"), [("shared", 8), ("warp", 4), ("local", 1)])
def test_threads_that_share_a_buffer(scope: str, rows: int) -> None:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32")):
        for i0 in T.thread_binding(2, thread="blockIdx.x"):
            for i1 in T.thread_binding(2, thread="vthread"):
                for i2 in T.thread_binding(4, thread="threadIdx.x"):
                    with T.block(""):
                        B = T.alloc_buffer((16, 16), scope=scope)
                        for j in range(16):
                            B[i0 * 8 + i1 * 4 + i2, j] = A[i0 * 8 + i1 * 4 + i2, j]
                            A[i0 * 8 + i1 * 4 + i2, j] = B[i0 * 8 + i1 * 4 + i2, j]

    assert shapes(compacted(main)) == {"B": [rows, 16]}


def test_buffers_grow_where_accesses_may_leave_them() -> None:
    @T.prim_func
    def main(A: T.Buffer((127,), "float32"), C: T.Buffer((127,), "float32")):
        for o in range(4):
            with T.block(""):
                B = T.alloc_buffer((127,))
                for i in range(32):
                    B[o * 32 + i] = T.if_then_else(o * 32 + i < 127, A[o * 32 + i], T.float32(0))
                for i in range(32):
                    if o * 32 + i < 127:
                        C[o * 32 + i] = B[o * 32 + i]

    grown = compacted(main, is_strict=False)
    assert shapes(grown) == {"B": [32]}
    original, copied = results(grown)
    np.testing.assert_array_equal(copied, original)
