"""Products for GPUs of NVIDIA: in wide tiles of float32, and on tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.kernels.matmul import MATMUL
from benchmarks.kernels.on_gpu import fetch_together, tile_of_each_thread
from benchmarks.kernels.workload import Workload, program, scheduled, uniform
from mlcweb.schedule import BlockRV
from mlcweb.tensor_intrin.tensor_cores import get_wmma_intrin_group
from mlcweb.tir import Schedule

FRAGMENT = 16
"""Rows, columns and depth of what a tensor core multiplies at once."""
WARP = 32

HALF_MATMUL = """
@T.prim_func
def main(A: T.Buffer((n, n), "float16"), B: T.Buffer((n, n), "float16"),
         C: T.Buffer((n, n), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(n, n, n):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
"""


def wide_tiles(
    sch: Schedule,
    tile: tuple[int, int] = (8, 8),
    threads: tuple[int, int] = (16, 16),
    depth: int = 8,
) -> None:
    """Each thread sums a tile in registers, of operands that it reads four numbers at a time."""
    block = sch.get_block("C")
    result, k0, k1 = tile_of_each_thread(sch, block, tile, threads, depth)
    _, lanes = sch.split(sch.get_loops(result)[-1], [None, 4])
    sch.vectorize(lanes)
    sch.unroll(k1)
    for operand in (0, 1):
        fetch_together(sch, block, operand, k0, threads[0] * threads[1], 2, lanes=4)
    sch.decompose_reduction(block, k0)


def tensor_cores(
    sch: Schedule,
    warps: tuple[int, int] = (2, 4),
    tiles: tuple[int, int] = (4, 2),
    depth: int = 2,
    ahead: int = 0,
) -> None:
    """Each warp sums `tiles` fragments, of operands that the warps of a block bring into shared
    memory, `depth` fragments at a time. These copies are asynchronous, so many steps `ahead` of
    the step that needs them."""
    scope = "shared.dyn" if ahead else "shared"
    group = get_wmma_intrin_group(scope, "global", "float16", "float32", False)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2, i3 = sch.split(i, [None, warps[0], tiles[0], FRAGMENT])
    j0, j1, j2, j3 = sch.split(j, [None, warps[1], tiles[1], FRAGMENT])
    k0, k1, k2 = sch.split(k, [None, depth, FRAGMENT])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2, i3, j3, k2)
    warp = sch.fuse(i1, j1)
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (warp, "threadIdx.y")):
        sch.bind(loop, axis)
    result = sch.cache_write(block, 0, "wmma.accumulator")
    sch.reverse_compute_at(result, warp)
    for operand, name in enumerate("ab"):
        shared = sch.cache_read(block, operand, scope)
        fragment = sch.cache_read(block, operand, f"wmma.matrix_{name}")
        sch.compute_at(fragment, k1)
        sch.compute_at(shared, k0)
        together = sch.fuse(*sch.get_loops(shared)[-2:])
        _, y, x, lanes = sch.split(together, [None, warps[0] * warps[1], WARP, 8])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(lanes)
        # Rows begin in other banks.
        sch.storage_align(shared, 0, axis=-2, factor=32, offset=8)
        _tensorize_fragments(sch, fragment, group[f"load_{name}"])
    _tensorize_fragments(sch, result, group["store"])
    init = sch.decompose_reduction(block, k0)
    *_, rows, columns, row, _ = sch.get_loops(init)
    for loop in (rows, columns, k1, i2, j2):
        sch.unroll(loop)
    sch.tensorize(row, group["init"])
    sch.tensorize(i3, group["compute"])
    if ahead:
        sch.annotate(k0, "software_pipeline_stage", [0, 0, ahead])
        sch.annotate(k0, "software_pipeline_order", [0, 1, 2])
        sch.annotate(k0, "software_pipeline_async_stages", [0])


def _tensorize_fragments(sch: Schedule, copy: BlockRV, intrinsic: str) -> None:
    rows, columns = sch.get_loops(copy)[-2:]
    i, row = sch.split(rows, [None, FRAGMENT])
    j, column = sch.split(columns, [None, FRAGMENT])
    sch.reorder(i, j, row, column)
    sch.unroll(i)
    sch.unroll(j)
    sch.tensorize(row, intrinsic)


def _halves(n: int) -> Callable[[np.random.Generator], list[np.ndarray]]:
    floats = uniform((n, n), (n, n))
    return lambda random: [array.astype("float16") for array in floats(random)]


def on_cuda(n: int) -> list[Workload]:
    """Products of n x n numbers."""
    return [
        Workload(
            name=f"matmul{n}",
            operator="matmul",
            inputs=uniform((n, n), (n, n)),
            reference=np.matmul,
            source=partial(program, MATMUL, n=n),
            programs={
                f"{8 * x}x{8 * y}x{depth}": partial(
                    scheduled, MATMUL, partial(wide_tiles, threads=(x, y), depth=depth), n=n
                )
                for x, y in ((16, 16), (8, 16))
                for depth in (8, 16)
            },
            flops=2 * n**3,
            tolerance=2e-3,
        ),
        Workload(
            name=f"half{n}",
            operator="matmul",
            inputs=_halves(n),
            reference=lambda a, b: a.astype("float32") @ b.astype("float32"),
            source=partial(program, HALF_MATMUL, n=n),
            programs={
                f"{w[0]}x{w[1]} warps of {t[0]}x{t[1]}x{depth}, {ahead} ahead": partial(
                    scheduled,
                    HALF_MATMUL,
                    partial(tensor_cores, warps=w, tiles=t, depth=depth, ahead=ahead),
                    n=n,
                )
                for w, t in (((4, 1), (2, 4)), ((4, 2), (2, 4)), ((2, 4), (4, 2)), ((2, 2), (4, 4)))
                for depth, ahead in ((2, 0), (4, 0), (2, 1), (2, 2), (2, 3), (4, 2))
            },
            flops=2 * n**3,
            tolerance=2e-3,
        ),
    ]
