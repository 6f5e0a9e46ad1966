"""Schedules of matrix products for the matrix units of GPUs, which tests run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.module import IRModule
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.tir.function import PrimFunc

__all__ = ["mfma_schedule", "mma_schedule"]

Layout = Callable[..., Sequence[Any]]

WARP_SIZE = 32
WAVE_SIZE = 64


def mma_schedule(
    workload: PrimFunc,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    i_factors: Sequence[int],
    j_factors: Sequence[int],
    k_factors: Sequence[int],
    index_map_A: Layout,
    index_map_B: Layout,
    index_map_C: Layout,
    ldmatrix_a_intrin: str,
    ldmatrix_b_intrin: str,
    mma_intrin: str,
    mma_fill_intrin: str,
    mma_store_intrin: str,
    shared_scope: str = "shared",
) -> Schedule:
    """A product of matrices, the block "C" of `workload`, in tiles that PTX's `mma` computes.

    A tile is 16 rows by 16 columns by `k_inner`. The factors are those of the loops over tiles:
    five of rows and of columns (two of thread blocks, one of warps, two of a warp's own tiles),
    three of the reduction. Operands come through shared memory into the registers of a warp, where
    elements lie as the index maps say; the intrinsics load, multiply, clear and store a tile.
    """
    return _tensorized(
        workload, k_inner, in_dtype, b_transposed,
        (i_factors, j_factors, k_factors),
        (index_map_A, index_map_B, index_map_C),
        (ldmatrix_a_intrin, ldmatrix_b_intrin),
        (mma_intrin, mma_fill_intrin, mma_store_intrin),
        shared_scope, WARP_SIZE,
    )  # fmt: skip


def mfma_schedule(
    workload: PrimFunc,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    i_factors: Sequence[int],
    j_factors: Sequence[int],
    k_factors: Sequence[int],
    index_map_A: Layout,
    index_map_B: Layout,
    index_map_C: Layout,
    ldmatrix_a_intrin: str,
    ldmatrix_b_intrin: str,
    mfma_intrin: str,
    mfma_fill_intrin: str,
    mfma_store_intrin: str,
    shared_scope: str = "shared",
) -> Schedule:
    """The same in tiles that `mfma` of AMD's GPUs computes, by wavefronts of 64 threads."""
    return _tensorized(
        workload, k_inner, in_dtype, b_transposed,
        (i_factors, j_factors, k_factors),
        (index_map_A, index_map_B, index_map_C),
        (ldmatrix_a_intrin, ldmatrix_b_intrin),
        (mfma_intrin, mfma_fill_intrin, mfma_store_intrin),
        shared_scope, WAVE_SIZE,
    )  # fmt: skip


def _tensorized(
    workload: PrimFunc,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    factors: tuple[Sequence[int], Sequence[int], Sequence[int]],
    maps: tuple[Layout, Layout, Layout],
    loads: tuple[str, str],
    intrinsics: tuple[str, str, str],
    shared_scope: str,
    warp_size: int,
) -> Schedule:
    i_factors, j_factors, k_factors = factors
    multiply, clear, store = intrinsics
    sch = Schedule(IRModule({"main": workload}))
    block = sch.get_block("C")
    sizes = (16, 16, k_inner)
    pairs = [
        sch.split(axis, [None, n]) for axis, n in zip(sch.get_loops(block), sizes, strict=True)
    ]
    tiles, within = ([pair[n] for pair in pairs] for n in (0, 1))
    sch.reorder(*tiles, *within)
    tile = sch.blockize(within[0])

    i, j = sch.split(tiles[0], i_factors), sch.split(tiles[1], j_factors)
    k = sch.split(tiles[2], k_factors)
    sch.reorder(*(i[0], j[0], i[1], j[1], j[2], i[2]), *(k[0], k[1], i[3], j[3], k[2], i[4], j[4]))
    warp = sch.fuse(j[2], i[2])
    axes = (
        (sch.fuse(i[0], j[0]), "blockIdx.x"),
        (sch.fuse(i[1], j[1]), "blockIdx.y"),
        (warp, "threadIdx.y"),
    )
    for loop, axis in axes:
        sch.bind(loop, axis)

    warps = i_factors[2] * j_factors[2]
    for operand in (0, 1):
        copy = sch.cache_read(tile, operand, shared_scope)
        sch.compute_at(copy, k[0])
        _share_copy(sch, copy, warps, warp_size, in_dtype)
    a, b = (sch.cache_read(tile, operand, "warp") for operand in (0, 1))
    for fragment in (a, b):
        sch.compute_at(fragment, k[1])
    c = sch.cache_write(tile, 0, "warp")
    sch.reverse_compute_at(c, warp)
    c_tile = _tiled(sch, c, 16, 16)
    sch.decompose_reduction(tile, sch.get_loops(tile)[3])
    init = sch.get_block("C_init")

    a_tile = _tiled(sch, a, 16, k_inner)
    b_tile = _tiled(sch, b, *((16, k_inner) if b_transposed else (k_inner, 16)))
    sch.transform_layout(a, ("write", 0), maps[0])
    sch.transform_layout(b, ("write", 0), maps[1])
    sch.transform_layout(c, ("read", 0), maps[2])
    sch.tensorize(a_tile, loads[0])
    sch.tensorize(b_tile, loads[1])
    sch.tensorize(sch.get_loops(block)[-3], multiply)
    sch.tensorize(sch.get_loops(init)[-2], clear)
    sch.tensorize(c_tile, store)
    return sch


def _share_copy(sch: Schedule, copy: BlockRV, warps: int, warp_size: int, dtype: str) -> None:
    """Copy by all threads of a block, several elements at once; for NVIDIA's warps into rows that
    are a few banks of memory longer than the tile."""
    width = 16 if dtype == "int8" else 8
    elements = sch.fuse(*sch.get_loops(copy)[-2:])
    _, y, x, vector = sch.split(elements, [None, warps, warp_size, width])
    sch.bind(x, "threadIdx.x")
    sch.bind(y, "threadIdx.y")
    sch.vectorize(vector)
    if warp_size == WARP_SIZE:
        sch.storage_align(copy, 0, axis=-2, factor=32, offset=8 if dtype == "float16" else 16)


def _tiled(sch: Schedule, block: BlockRV, height: int, width: int) -> LoopRV:
    """Run the last two loops of a block tile by tile; the first loop inside of a tile."""
    rows, columns = sch.get_loops(block)[-2:]
    row_tile, row = sch.split(rows, [None, height])
    column_tile, column = sch.split(columns, [None, width])
    sch.reorder(row_tile, column_tile, row, column)
    return row
