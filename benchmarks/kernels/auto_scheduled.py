"""The course's matrix product as an automatic scheduler left it: the trace of a tuned record, with
two levels of tiles, a cache for the result, unrolling by pragma and vectorized inner loops."""

from __future__ import annotations

from benchmarks.kernels.matmul import MATMUL
from benchmarks.kernels.workload import scheduled
from mlcweb.ir import IRModule
from mlcweb.tir import Schedule

UNROLL_PRAGMAS = {"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}


def apply_trace(sch: Schedule) -> None:
    """The steps of the record, in their order."""
    block = sch.get_block("C", "main")
    root = sch.get_block("root", "main")
    sch.annotate(block, "meta_schedule.tiling_structure", "SSRSRS")
    i, j, k = sch.get_loops(block)
    i_tiles = sch.sample_perfect_tile(i, 4, 64, decision=[2, 4, 1, 16])
    i_0, i_1, i_2, i_3 = sch.split(i, i_tiles)
    j_tiles = sch.sample_perfect_tile(j, 4, 64, decision=[2, 8, 1, 8])
    j_0, j_1, j_2, j_3 = sch.split(j, j_tiles)
    k_tiles = sch.sample_perfect_tile(k, 2, 64, decision=[64, 2])
    k_0, k_1 = sch.split(k, k_tiles)
    sch.reorder(i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3)
    result = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(result, j_1, preserve_unit_loops=True)
    sch.annotate(root, "meta_schedule.parallel", 16)
    sch.annotate(root, "meta_schedule.vectorize", 64)
    step = sch.sample_categorical([0, 16, 64, 512], [0.25, 0.25, 0.25, 0.25], decision=2)
    sch.annotate(root, "meta_schedule.unroll_explicit", step)
    sch.enter_postproc()
    root = sch.get_block("root", "main")
    for key in ("parallel", "vectorize", "unroll_explicit"):
        sch.unannotate(root, f"meta_schedule.{key}")
    product, copy = sch.get_child_blocks(root)
    loops = sch.get_loops(product)
    outer = sch.fuse(*loops[:4])
    sch.parallel(outer)
    sch.vectorize(sch.fuse(loops[-1]))
    _annotate(sch, outer)
    first, _, last = sch.get_loops(copy)
    sch.vectorize(sch.fuse(last))
    _annotate(sch, first)
    block = sch.get_block("C", "main")
    sch.decompose_reduction(block, sch.get_loops(block)[1])


def _annotate(sch: Schedule, loop: object) -> None:
    for key, value in UNROLL_PRAGMAS.items():
        sch.annotate(loop, key, value)  # type: ignore[arg-type]


def auto_scheduled() -> IRModule:
    """The tuned product of 128x128 matrices."""
    return scheduled(MATMUL, apply_trace, n=128)
