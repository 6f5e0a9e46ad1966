"""Products of square matrices: as written, as the course schedules them, and as fast as we can."""

from __future__ import annotations

from functools import partial

from benchmarks.kernels.workload import Workload, program, scheduled, uniform
from mlcweb.ir import IRModule
from mlcweb.tir import Schedule

MATMUL = """
@T.prim_func
def main(A: T.Buffer((n, n), "float32"), B: T.Buffer((n, n), "float32"),
         C: T.Buffer((n, n), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(n, n, n):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def schedule_mm(sch: Schedule, jfactor: int) -> None:
    """The course's schedule: the columns in blocks of `jfactor`, inside of the reduction."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, [None, jfactor])
    sch.reorder(i, outer, k, inner)
    sch.decompose_reduction(block, k)


def tile_in_registers(sch: Schedule, rows: int, columns: int) -> None:
    """A tile of `rows` x `columns` sums in registers; B is small enough to stay where it is."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    result = sch.cache_write(block, 0, "local")
    i_outer, i_inner = sch.split(i, [None, rows])
    j_outer, j_inner = sch.split(j, [None, columns])
    sch.reorder(j_outer, i_outer, k, i_inner, j_inner)
    sch.reverse_compute_at(result, i_outer)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    sch.vectorize(sch.get_loops(result)[-1])
    sch.decompose_reduction(block, k)


def pack_and_block(sch: Schedule, rows: int, columns: int, band: int) -> None:
    """The same with B packed, so that a panel of `columns` columns is read in a row and stays in
    the first cache, while a band of `band` rows of A stays in the second."""
    block = sch.get_block("C")
    packed = sch.cache_read(block, 1, "global")
    sch.transform_layout(block, ("read", 1), lambda k, j: (j // columns, k, j % columns))
    k, j = sch.get_loops(packed)
    panel, column = sch.split(j, [None, columns])
    sch.reorder(panel, k, column)
    sch.vectorize(column)
    result = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i_band, i_outer, i_inner = sch.split(i, [None, band // rows, rows])
    j_outer, j_inner = sch.split(j, [None, columns])
    sch.reorder(i_band, j_outer, i_outer, k, i_inner, j_inner)
    sch.reverse_compute_at(result, i_outer)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    sch.vectorize(sch.get_loops(result)[-1])
    sch.decompose_reduction(block, k)


def untransformed(n: int) -> IRModule:
    """The program as written."""
    return program(MATMUL, n=n)


def by_schedule_mm(n: int, jfactor: int) -> IRModule:
    """The course's scheduled program."""
    return scheduled(MATMUL, partial(schedule_mm, jfactor=jfactor), n=n)


def tiled(n: int, rows: int, columns: int) -> IRModule:
    """The program for matrices that fit the first caches."""
    return scheduled(MATMUL, partial(tile_in_registers, rows=rows, columns=columns), n=n)


def blocked(n: int, rows: int, columns: int, band: int) -> IRModule:
    """The program for large matrices."""
    schedule = partial(pack_and_block, rows=rows, columns=columns, band=band)
    return scheduled(MATMUL, schedule, n=n)


def _workload(n: int, **programs: partial[IRModule]) -> Workload:
    return Workload(
        name=f"matmul{n}",
        operator="matmul",
        inputs=uniform((n, n), (n, n)),
        reference=lambda a, b: a @ b,
        programs=programs,
        flops=2 * n**3,
        source=partial(untransformed, n),
    )


WORKLOADS = (
    _workload(
        128,
        untransformed=partial(untransformed, 128),
        jfactor16=partial(by_schedule_mm, 128, 16),
        jfactor32=partial(by_schedule_mm, 128, 32),
        best=partial(tiled, 128, 2, 16),
        wide=partial(tiled, 128, 4, 32),
    ),
    _workload(256, best=partial(blocked, 256, 2, 16, 64), wide=partial(blocked, 256, 4, 32, 128)),
    _workload(512, best=partial(blocked, 512, 2, 16, 128), wide=partial(blocked, 512, 4, 32, 128)),
    _workload(
        1024, best=partial(blocked, 1024, 2, 16, 64), wide=partial(blocked, 1024, 4, 32, 128)
    ),
)
