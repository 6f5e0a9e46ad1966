"""The course's bmm_relu: a batch of 16 products of 128x128 matrices, and relu."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernels.workload import Workload, program, scheduled, uniform
from mlcweb.tir import Schedule

BMM_RELU = """
@T.prim_func
def main(A: T.Buffer((16, 128, 128), "float32"), B: T.Buffer((16, 128, 128), "float32"),
         C: T.Buffer((16, 128, 128), "float32")):
    T.func_attr({"tir.noalias": True})
    Y = T.alloc_buffer((16, 128, 128))
    for n, i, j, k in T.grid(16, 128, 128, 128):
        with T.block("Y"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                Y[vn, vi, vj] = T.float32(0)
            Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
    for n, i, j in T.grid(16, 128, 128):
        with T.block("C"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))
"""


def schedule(sch: Schedule, rows: int = 2, columns: int = 16) -> None:
    """A tile of sums in registers, from which relu stores."""
    block = sch.get_block("Y")
    sch.set_scope(block, 0, "local")
    n, i, j, k = sch.get_loops(block)
    i_outer, i_inner = sch.split(i, [None, rows])
    j_outer, j_inner = sch.split(j, [None, columns])
    sch.reorder(n, j_outer, i_outer, k, i_inner, j_inner)
    relu = sch.get_block("C")
    sch.reverse_compute_at(relu, i_outer)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    sch.vectorize(sch.get_loops(relu)[-1])
    sch.decompose_reduction(block, k)


WORKLOADS = (
    Workload(
        name="bmm_relu",
        operator="bmm_relu",
        inputs=uniform((16, 128, 128), (16, 128, 128)),
        reference=lambda a, b: np.maximum(a @ b, 0),
        programs={
            "untransformed": partial(program, BMM_RELU),
            "best": partial(scheduled, BMM_RELU, schedule),
            "wide": partial(scheduled, BMM_RELU, partial(schedule, rows=4, columns=32)),
        },
        flops=2 * 16 * 128**3,
    ),
)
