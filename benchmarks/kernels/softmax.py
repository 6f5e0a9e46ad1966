"""Softmax of 128 rows of 1000 numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernels.lanes import reduce_in_lanes
from benchmarks.kernels.workload import Array, Workload, program, scheduled, uniform
from mlcweb.tir import Schedule

SOFTMAX = """
@T.prim_func
def main(A: T.Buffer((128, 1000), "float32"), B: T.Buffer((128, 1000), "float32")):
    T.func_attr({"tir.noalias": True})
    largest = T.alloc_buffer((128,))
    power = T.alloc_buffer((128, 1000))
    total = T.alloc_buffer((128,))
    for i, k in T.grid(128, 1000):
        with T.block("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], A[vi, vk])
    for i, j in T.grid(128, 1000):
        with T.block("power"):
            vi, vj = T.axis.remap("SS", [i, j])
            power[vi, vj] = T.exp(A[vi, vj] - largest[vi])
    for i, k in T.grid(128, 1000):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + power[vi, vk]
    for i, j in T.grid(128, 1000):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = power[vi, vj] / total[vi]
"""


def schedule(sch: Schedule, max_lanes: int = 40, sum_lanes: int = 20, lanes: int = 20) -> None:
    """Row by row, all in vectors; several of them for the reductions, which wait for one another
    else."""
    quotient = sch.get_block("B")
    row, j = sch.get_loops(quotient)
    _, j_inner = sch.split(j, [None, lanes])
    sch.vectorize(j_inner)
    reduce_in_lanes(sch, "total", sum_lanes, row)
    power = sch.get_block("power")
    sch.compute_at(power, row)
    _, j_inner = sch.split(sch.get_loops(power)[-1], [None, lanes])
    sch.vectorize(j_inner)
    reduce_in_lanes(sch, "largest", max_lanes, row)


def reference(a: Array) -> Array:
    power = np.exp(a - a.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


WORKLOADS = (
    Workload(
        name="softmax",
        operator="softmax",
        inputs=uniform((128, 1000)),
        reference=reference,
        programs={
            "untransformed": partial(program, SOFTMAX),
            "best": partial(scheduled, SOFTMAX, schedule),
        },
    ),
)
