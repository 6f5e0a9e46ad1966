"""Programs that do one thing to each element: relu of 128x128 numbers, and a sum of 1024."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernels.workload import Workload, program, scheduled, uniform
from mlcweb.tir import Schedule

RELU = """
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(128, 128):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.max(A[vi, vj], T.float32(0))
"""
ADD = """
@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"),
         C: T.Buffer((1024,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(1024):
        with T.block("B"):
            vi = T.axis.spatial(1024, i)
            C[vi] = A[vi] + B[vi]
"""


def in_vectors(sch: Schedule, lanes: int = 16) -> None:
    """All loops as one, `lanes` elements at a time."""
    loop = sch.fuse(*sch.get_loops(sch.get_block("B")))
    _, inner = sch.split(loop, [None, lanes])
    sch.vectorize(inner)


WORKLOADS = (
    Workload(
        name="relu",
        operator="relu",
        inputs=uniform((128, 128)),
        reference=lambda a: np.maximum(a, 0),
        programs={
            "untransformed": partial(program, RELU),
            "best": partial(scheduled, RELU, in_vectors),
        },
    ),
    Workload(
        name="add",
        operator="add",
        inputs=uniform((1024,), (1024,)),
        reference=lambda a, b: a + b,
        programs={
            "untransformed": partial(program, ADD),
            "best": partial(scheduled, ADD, in_vectors),
        },
    ),
)
