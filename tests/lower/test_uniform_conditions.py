"""Loops with barriers whose number of iterations each thread keeps in memory of its own."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from mlcweb.lower.thread_axes import ThreadError
from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available
from mlcweb.script import from_source
from mlcweb.tir import PrimFunc

TARGETS = ["interpreter", "numpy", "simulated", *(["wasm"] if available() else [])]

PROGRAM = """
@T.prim_func
def main(a: T.handle, count: T.Buffer((2,), "int32"), B: T.Buffer((2, 32), "float32")):
    A = T.match_buffer(a, (2, 32), "float32")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("rotate"):
                vb, vt = T.axis.remap("SS", [b, t])
                n = T.alloc_buffer((1,), "int32", scope="local")
                done = T.alloc_buffer((1,), "bool", scope="local")
                own = T.alloc_buffer((1,), "float32", scope="local")
                shared = T.alloc_buffer((32,), "float32", scope="shared")
                n[0] = {start}
                own[0] = A[vb, vt]
                {loop}
                    shared[vt] = own[0]
                    own[0] = shared[(vt + 1) % 32]
                    {step}
                B[vb, vt] = own[0]
"""
"""Each thread passes its value on to its neighbour, as often as `count` says for the block."""

UNIFORM = {
    "while": ("0", "while n[0] < count[vb]:", "n[0] = n[0] + 1"),
    "for": ("count[vb]", "for i in range(n[0]):", "n[0] = 0"),
    "flag": (
        "0\n                done[0] = count[vb] == 0",
        "while not done[0]:",
        "n[0] = n[0] + 1\n                    done[0] = n[0] == count[vb]",
    ),
    "set again": (
        "0\n                if vt == 0:\n                    n[0] = 7\n                n[0] = 0",
        "while n[0] < count[vb]:",
        "n[0] = n[0] + 1",
    ),
    "told": (
        "T.if_then_else(vt < 64, 0, 1)",
        "while T.tvm_thread_invariant(n[0] < count[vb]):",
        "n[0] = n[0] + 1",
    ),
}
DIVERGENT = {
    "value": ("vt", "while n[0] < count[vb]:", "n[0] = n[0] + 1"),
    "condition": (
        "0",
        "while n[0] < count[vb]:",
        "if vt < 5:\n                        n[0] = n[0] + 1",
    ),
    "loop": (
        "0",
        "while n[0] < count[vb]:",
        "for i in range(vt):\n                        n[0] = n[0] + 1",
    ),
    "later": ("0", "while n[0] < count[vb]:", 'n[0] = n[0] + T.Cast("int32", own[0])'),
}


def program(start: str, loop: str, step: str) -> PrimFunc:
    return cast(PrimFunc, from_source(PROGRAM.format(start=start, loop=loop, step=step)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", UNIFORM)
def test_threads_that_count_alike_reach_barriers_alike(name: str, target: str) -> None:
    a = np.arange(64, dtype="float32").reshape(2, 32)
    b = nd.empty((2, 32))
    counts = np.array([3, 1], "int32")
    build(program(*UNIFORM[name]), target)["main"](nd.array(a), nd.array(counts), b)
    expected = np.stack([np.roll(a[0], -3), np.roll(a[1], -1)])
    np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize("name", UNIFORM)
def test_the_source_for_a_gpu_has_the_barriers_in_the_loop(name: str) -> None:
    source = build(program(*UNIFORM[name]), "cuda").imports[0].get_source()
    assert source.count("__syncthreads()") == 2 and "invariant" not in source


@pytest.mark.parametrize("target", ["interpreter", "cuda"])
@pytest.mark.parametrize("name", DIVERGENT)
def test_threads_that_may_count_differently_are_refused(name: str, target: str) -> None:
    with pytest.raises(
        ThreadError, match=r'the condition "n\[0\] < count\[b\]" depends on threadIdx.x'
    ):
        build(program(*DIVERGENT[name]), target)
