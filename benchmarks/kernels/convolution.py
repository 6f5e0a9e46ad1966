"""A 3x3 convolution of one image of three channels with 16 filters, without padding."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernels.workload import Array, Workload, program, scheduled, uniform
from mlcweb.tir import Schedule

CONVOLUTION = """
@T.prim_func
def main(A: T.Buffer((1, 3, 32, 32), "float32"), W: T.Buffer((16, 3, 3, 3), "float32"),
         B: T.Buffer((1, 16, 30, 30), "float32")):
    T.func_attr({"tir.noalias": True})
    for n, f, y, x, c, p, q in T.grid(1, 16, 30, 30, 3, 3, 3):
        with T.block("B"):
            vn, vf, vy, vx, vc, vp, vq = T.axis.remap("SSSSRRR", [n, f, y, x, c, p, q])
            with T.init():
                B[vn, vf, vy, vx] = T.float32(0)
            B[vn, vf, vy, vx] = (
                B[vn, vf, vy, vx] + A[vn, vc, vy + vp, vx + vq] * W[vf, vc, vp, vq])
"""


def schedule(sch: Schedule, filters: int = 16, width: int = 2) -> None:
    """The lanes are filters, whose weights are transposed first; a tile is `width` pixels of
    `filters` filters."""
    block = sch.get_block("B")
    weights = sch.cache_read(block, 1, "global")
    sch.transform_layout(block, ("read", 1), lambda f, c, p, q: (c, p, q, f))
    f, c, p, q = sch.get_loops(weights)
    sch.reorder(c, p, q, f)
    sch.vectorize(f)
    result = sch.cache_write(block, 0, "local")
    sch.transform_layout(block, ("write", 0), lambda n, f, y, x: (n, y, x, f))
    n, f, y, x, c, p, q = sch.get_loops(block)
    f_outer, f_inner = sch.split(f, [None, filters])
    x_outer, x_inner = sch.split(x, [None, width])
    sch.reorder(n, f_outer, y, x_outer, c, p, q, x_inner, f_inner)
    sch.reverse_compute_at(result, x_outer)
    sch.unroll(q)
    sch.unroll(x_inner)
    sch.vectorize(f_inner)
    sch.decompose_reduction(block, c)


def reference(a: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), (2, 3))
    return np.einsum("ncyxpq,fcpq->nfyx", windows, w, optimize=True).astype("float32")


WORKLOADS = (
    Workload(
        name="conv",
        operator="conv2d",
        inputs=uniform((1, 3, 32, 32), (16, 3, 3, 3)),
        reference=reference,
        programs={
            "untransformed": partial(program, CONVOLUTION),
            "best": partial(scheduled, CONVOLUTION, schedule),
        },
        flops=2 * 16 * 30 * 30 * 27,
    ),
)
