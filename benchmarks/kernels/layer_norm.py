"""Layer normalization of 128 rows of 768 numbers, with scale and shift."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernels.lanes import reduce_in_lanes
from benchmarks.kernels.workload import Array, Workload, program, scheduled, uniform
from mlcweb.tir import Schedule

LAYER_NORM = """
@T.prim_func
def main(A: T.Buffer((128, 768), "float32"), G: T.Buffer((768,), "float32"),
         S: T.Buffer((768,), "float32"), B: T.Buffer((128, 768), "float32")):
    T.func_attr({"tir.noalias": True})
    total = T.alloc_buffer((128,))
    squares = T.alloc_buffer((128,))
    mean = T.alloc_buffer((128,))
    factor = T.alloc_buffer((128,))
    for i, k in T.grid(128, 768):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + A[vi, vk]
    for i in range(128):
        with T.block("mean"):
            vi = T.axis.spatial(128, i)
            mean[vi] = total[vi] * T.float32(1 / 768)
    for i, k in T.grid(128, 768):
        with T.block("squares"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                squares[vi] = T.float32(0)
            squares[vi] = squares[vi] + (A[vi, vk] - mean[vi]) * (A[vi, vk] - mean[vi])
    for i in range(128):
        with T.block("factor"):
            vi = T.axis.spatial(128, i)
            factor[vi] = T.float32(1) / T.sqrt(squares[vi] * T.float32(1 / 768) + T.float32(1e-5))
    for i, j in T.grid(128, 768):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = (A[vi, vj] - mean[vi]) * factor[vi] * G[vj] + S[vj]
"""


def schedule(sch: Schedule, lanes: int = 16, rows: int = 2) -> None:
    """A few rows at a time, all in vectors; they stay in the first cache between the three passes.
    Scale and shift are loaded once for them, and their sums need not wait for each other."""
    normalized = sch.get_block("B")
    i, j = sch.get_loops(normalized)
    row, together = sch.split(i, [None, rows])
    j_outer, j_inner = sch.split(j, [None, lanes])
    sch.reorder(j_outer, together, j_inner)
    sch.unroll(together)
    sch.vectorize(j_inner)
    sch.compute_at(sch.get_block("factor"), row)
    reduce_in_lanes(sch, "squares", lanes, row)
    sch.compute_at(sch.get_block("mean"), row)
    reduce_in_lanes(sch, "total", lanes, row)


def reference(a: Array, scale: Array, shift: Array) -> Array:
    mean = a.mean(1, keepdims=True)
    return (a - mean) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * scale + shift


WORKLOADS = (
    Workload(
        name="layer_norm",
        operator="layer_norm",
        inputs=uniform((128, 768), (768,), (768,)),
        reference=reference,
        programs={
            "untransformed": partial(program, LAYER_NORM),
            "best": partial(scheduled, LAYER_NORM, schedule),
        },
    ),
)
