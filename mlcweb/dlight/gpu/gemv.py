"""Products of a matrix and a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from mlcweb.dlight.analysis import (
    BlockInfo,
    get_max_shared_memory_per_block,
    is_broadcast_epilogue,
    is_gemv,
    normalize,
    normalize_prim_func,
)
from mlcweb.dlight.base import (
    get_bytes,
    get_extent,
    main_and_epilogue,
    try_inline_contiguous_spatial,
    unroll,
)
from mlcweb.dlight.base.utils import largest_factor
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.function import PrimFunc


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a product is shared by the threads of a block, which are `rows` by `parts`: each does its
    part of the sum of some rows."""

    rows: int = 1
    parts: int = 64
    rows_tag: str = "threadIdx.y"
    parts_tag: str = "threadIdx.x"
    vector: int = 1
    """The most elements of a sum that a thread takes at once."""
    matrix_bytes: int = 1
    """The bytes of the matrix that a thread loads at once."""
    shares_vector: bool = False
    """Whether the vector is in shared memory."""
    vector_load: int = 1
    """The most elements of the vector that a thread loads at once."""
    steps: int = 64
    """The iterations that are unrolled."""
    shuffles: bool = False
    """Whether threads of a warp add up their parts without shared memory."""

    def within(self, threads: int) -> Tiles:
        """Tiles for fewer threads of a block."""
        rows, parts = self.rows, self.parts
        while rows * parts > threads:
            rows, parts = (rows // 2, parts) if rows > 1 else (rows, parts // 2)
        return replace(self, rows=rows, parts=parts)

    @property
    def threads(self) -> int:
        return self.rows * self.parts

    def bind(self, sch: Schedule, rows: LoopRV, parts: LoopRV) -> None:
        """Let the threads run through a loop over rows, and one over parts."""
        sch.bind(rows, self.rows_tag)
        sch.bind(parts, self.parts_tag)


class GEMV(GPUScheduleRule):
    """Schedules a product of a matrix and a vector, which may be one of a batch, with what is
    elementwise before and after it. The numbers of the matrix may be packed, several in an element.

    Only products that add up along the rows of the matrix; of others the rule knows nothing.
    """

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func)
        blocks = main_and_epilogue(try_inline_contiguous_spatial(sch, normalize_prim_func(sch)))
        if blocks is None or len(blocks[0].iters) not in (2, 3):
            return None
        main, epilogue = blocks
        vectors = is_gemv(sch, main)
        if vectors is None or not normalize(sch, main):
            return None
        return _Product(sch, target, main.block_rv, vectors).schedule(epilogue)


class Product:
    """A product, the sums of whose rows are shared by threads. A thread takes a `tile` of elements
    at a time.

    Attributes:
        rows: the rows of a thread.
        batches: how many loops over vectors each thread runs through, and blocks of threads.
        tiles: how the product is shared, with vectors that a tile consists of.
    """

    rows = 1
    batches = 0

    def __init__(
        self, sch: Schedule, block: BlockRV, tile: int, tiles: Tiles, fits_shared: bool
    ) -> None:
        self.sch, self.block, self.tile = sch, block, tile
        vector = min(largest_factor(tile, (1, 2, 4, 8)), tiles.vector)
        shares = tiles.shares_vector and fits_shared
        self.tiles = replace(tiles, vector=vector, shares_vector=shares)

    def _factor_out(self, loop: LoopRV) -> tuple[BlockRV, BlockRV]:
        """Two blocks of parts of the sum over a loop: one for each lane of each thread, and one for
        each thread."""
        sch, tiles = self.sch, self.tiles
        factors = [None, tiles.parts, self.tile // tiles.vector, tiles.vector]
        r, tr, inner, lane = sch.split(loop, factors)
        sch.reorder(r, inner, tr, lane)
        lanes = sch.rfactor(sch.fuse(tr, lane), 0)
        tr, _ = sch.split(sch.get_loops(self.block)[-1], [tiles.parts, None])
        return lanes, sch.rfactor(tr, 0)

    def _bind_lanes(self, lanes: BlockRV) -> tuple[LoopRV, LoopRV, LoopRV]:
        sch, tiles = self.sch, self.tiles
        bx, ts, row, r, inner, fused = sch.get_loops(lanes)[self.batches :]
        tr, lane = sch.split(fused, [tiles.parts, None])
        sch.reorder(bx, ts, tr, r, row, inner, lane)
        sch.bind(bx, "blockIdx.x")
        tiles.bind(sch, ts, tr)
        sch.vectorize(lane)
        return bx, tr, r

    def _add_up(self, lanes: BlockRV, parts: BlockRV, bx: LoopRV) -> None:
        """Let threads add up what their lanes have summed in registers, and that together."""
        sch, level = self.sch, 3 + self.batches
        self._add_lanes(parts, bx)
        self._add_parts(bx)
        sch.decompose_reduction(lanes, sch.get_loops(lanes)[level])
        sch.decompose_reduction(parts, sch.get_loops(parts)[-1])
        for block in (lanes, parts):
            sch.set_scope(block, 0, "local")
        for block in (lanes, parts):
            unroll(sch, sch.get_loops(block)[level], self.tiles.steps)

    def _add_lanes(self, parts: BlockRV, bx: LoopRV) -> None:
        """Each thread adds up its lanes."""
        sch = self.sch
        sch.reverse_compute_at(parts, bx, preserve_unit_loops=True)
        tr, lane, *loops = sch.get_loops(parts)[1 + self.batches :]
        ts, row = self._share_rows(loops[self.batches :])
        row, vector = sch.split(row, [None, self.rows])
        sch.reorder(ts, tr, row, *loops[: self.batches], vector, lane)
        self.tiles.bind(sch, ts, tr)
        sch.vectorize(vector)

    def _add_parts(self, bx: LoopRV) -> None:
        """Threads add up their parts together."""
        sch = self.sch
        sch.reverse_compute_at(self.block, bx, preserve_unit_loops=True)
        tr, *loops = sch.get_loops(self.block)[1 + self.batches :]
        ts, row = self._share_rows(loops[self.batches :])
        sch.reorder(row, *loops[: self.batches], ts, tr)
        self.tiles.bind(sch, ts, tr)

    def _share_rows(self, loops: Sequence[LoopRV]) -> tuple[LoopRV, LoopRV]:
        """Of the rows of a block of threads the loop over threads, and that over rows of each.

        Raises:
            ScheduleError: there are more.
        """
        sch = self.sch
        outer, thread, row = sch.split(sch.fuse(*loops), [None, self.tiles.rows, self.rows])
        if get_extent(sch, outer) != 1:
            raise ScheduleError("A block of threads has more rows than threads for them")
        return sch.fuse(outer, thread), row


class _Product(Product):
    """A product whose loops are of batches, of rows, of the sum, and of packed elements."""

    def __init__(
        self, sch: Schedule, target: Target, block: BlockRV, vectors: list[Buffer]
    ) -> None:
        self.vectors = vectors
        batch, s, r, c = (get_extent(sch, loop) for loop in sch.get_loops(block))
        assert isinstance(c, int)
        tiles = _tiles(target, batch * s, r * c).within(int(target.limits["max_num_threads"]))
        tile = c if c > 1 else max(elements_per_thread(r, tiles.parts), 1)
        beside = 0 if tiles.shuffles else tiles.threads
        super().__init__(sch, block, tile, tiles, fit_shared_memory(vectors, target, beside))

    def schedule(self, epilogue: BlockInfo | None) -> Schedule | None:
        sch, tiles = self.sch, self.tiles
        if tiles.shares_vector and len(self.vectors) != 1:
            return None
        batch, s, r, c = sch.get_loops(self.block)
        sch.split(sch.fuse(batch, s), [None, tiles.rows, 1])
        lanes, parts = self._factor_out(sch.fuse(r, c))
        _, tr, r = self._bind_lanes(lanes)
        self._load_matrix(lanes, r)
        shared = self._share_vector(lanes, tr) if tiles.shares_vector else None
        bx = sch.get_loops(lanes)[0]
        self._add_up(lanes, parts, bx)
        if shared is not None:
            loop = sch.get_loops(shared)[-4]
            sch.annotate(loop, "pragma_unroll_explicit", tiles.steps)
            sch.annotate(loop, "pragma_vectorize", 1)
        if epilogue is not None:
            self._schedule_epilogue(epilogue.block_rv, bx)
        return sch

    def _load_matrix(self, lanes: BlockRV, r: LoopRV) -> None:
        """Load the elements of the matrix that a thread needs next into registers."""
        sch = self.sch
        local = sch.cache_read(lanes, 1, "local")
        count = len(sch.get_loops(local))
        sch.compute_at(local, r, preserve_unit_loops=True)
        loops = sch.get_loops(local)[-count:]
        fused = loops[0] if count == 1 else sch.fuse(*loops[-2:])
        copy: Any = sch.get(local)
        width = max(1, self.tiles.matrix_bytes // get_bytes(copy.reads[0].buffer.dtype))
        _, vector = sch.split(fused, [None, width])
        sch.vectorize(vector)

    def _share_vector(self, lanes: BlockRV, tr: LoopRV) -> BlockRV:
        """Let the threads of a block load the vector into shared memory together."""
        sch, tiles = self.sch, self.tiles
        shared = sch.cache_read(lanes, 0, "shared")
        sch.compute_at(shared, tr, preserve_unit_loops=True)
        loop = sch.get_loops(shared)[-1]
        extent = get_extent(sch, loop)
        width = tiles.vector_load
        if isinstance(extent, int):  # Without a predicate where that can be.
            width = max(min(elements_per_thread(extent, tiles.threads), width), 1)
        by_rows = tiles.parts_tag == "threadIdx.x"
        y, x = (tiles.rows, tiles.parts) if by_rows else (tiles.parts, tiles.rows)
        _, ty, tx, vector = sch.split(loop, [None, y, x, width])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
        sch.vectorize(vector)
        return shared

    def _schedule_epilogue(self, epilogue: BlockRV, bx: LoopRV) -> None:
        sch, tiles = self.sch, self.tiles
        if is_broadcast_epilogue(sch, self.block, epilogue):
            sch.reverse_compute_at(epilogue, bx)
            sch.set_scope(self.block, 0, "shared")
            _, _, *loops = sch.get_loops(epilogue)
            _, tx = sch.split(sch.fuse(*loops), [None, tiles.parts])
            sch.bind(tx, "threadIdx.x")
            return
        sch.reverse_compute_at(epilogue, bx, preserve_unit_loops=True)
        ts, _ = self._share_rows(sch.get_loops(epilogue)[1:])
        sch.bind(ts, tiles.rows_tag)
        sch.set_scope(self.block, 0, "local")


def elements_per_thread(extent: int | PrimExpr, threads: int) -> int:
    """How many elements each thread takes of an extent: 1, 2, 4 or 8; 0 where not even one."""
    return largest_factor(extent, [threads * n for n in (1, 2, 4, 8)]) // threads


def fit_shared_memory(vectors: Sequence[Buffer], target: Target, beside: int = 0) -> bool:
    """Whether vectors, and so many elements beside each, fit shared memory."""
    used = 0
    for buffer in vectors:
        extents = [constant_value(extent) for extent in buffer.shape]
        if None in extents:
            return False
        size = prod(int(extent or 0) for extent in extents)
        used += get_bytes(buffer.dtype) * (size + beside)
    return used <= get_max_shared_memory_per_block(target)


def _tiles(target: Target, rows: Any, length: Any) -> Tiles:
    """The tiles of a product of a kind of device: of so many rows of so many elements."""
    constant = isinstance(rows, int)
    more_rows = constant and isinstance(length, int) and rows > length
    match target.kind.name:
        case "cuda":
            sizes = (16, 32) if constant else (1, 64)
            return Tiles(*sizes, "threadIdx.y", "threadIdx.x", 4, 4, True, 8, 256, True)
        case "metal":
            sizes = ((4, 16) if more_rows else (2, 64)) if constant else (1, 64)
            return Tiles(*sizes, "threadIdx.x", "threadIdx.y", steps=256, shuffles=True)
        case "rocm":
            sizes = ((1, 128) if more_rows else (8, 64)) if constant else (1, 64)
            return Tiles(*sizes, vector=4, vector_load=8, steps=256)
        case "vulkan":
            sizes = ((4, 32) if more_rows else (16, 32)) if constant else (1, 64)
            return Tiles(*sizes, vector=4, shares_vector=True, vector_load=4, steps=256)
        case _:
            return Tiles()
