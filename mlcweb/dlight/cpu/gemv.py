"""Products of a matrix and a vector, with the schedule that TVM gives them on processors."""

from __future__ import annotations

from mlcweb.dlight.analysis import is_gemv, normalize, normalize_prim_func
from mlcweb.dlight.base import (
    ScheduleRule,
    get_extent,
    main_and_epilogue,
    try_inline_contiguous_spatial,
    unroll,
)
from mlcweb.dlight.cpu.machine import is_compiled
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.function import PrimFunc

LANES = 8
"""The most elements of a sum that an inner loop takes."""

STEPS = 256
"""The iterations that are unrolled."""


class GEMV(ScheduleRule):
    """Computes rows in parallel, several of them in the lanes of vectors. Only of products that add
    up along the rows of the matrix."""

    def is_target_available(self, target: Target) -> bool:
        return is_compiled(target)

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func)
        blocks = main_and_epilogue(try_inline_contiguous_spatial(sch, normalize_prim_func(sch)))
        if blocks is None or len(blocks[0].iters) not in (2, 3):
            return None
        main = blocks[0]
        if is_gemv(sch, main) is None or not normalize(sch, main):
            return None
        _tile(sch, main.block_rv)
        return sch


def _tile(sch: Schedule, block: BlockRV) -> None:
    loops = sch.get_loops(block)
    _, row, column, packed = loops
    *extents, width = (get_extent(sch, loop) for loop in loops)
    row_tile, column_tile = _tile_sizes(*extents, width)
    outer_rows, lanes = sch.split(row, [None, row_tile])
    outer_columns, _ = sch.split(column, [None, column_tile])
    sch.split(packed, [None, min(LANES, width) if isinstance(width, int) else LANES])
    sch.vectorize(lanes)
    sch.parallel(outer_rows)
    unroll(sch, outer_columns, STEPS)


def _tile_sizes(*extents: PrimExpr | int) -> tuple[int, int]:
    """The rows and columns of a tile, of a product of so many batches, rows, columns, and elements
    of a column that are packed together."""
    sizes = [extent for extent in extents if isinstance(extent, int)]
    if len(sizes) < len(extents):
        return 64, 64
    batches, rows, columns, width = sizes
    return (128, 64) if batches * rows > columns * width else (64, 128)
