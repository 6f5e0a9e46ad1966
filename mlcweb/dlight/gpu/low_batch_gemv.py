"""Products of a matrix and a few vectors, of which nobody knows how many."""

from __future__ import annotations

from typing import Any

from mlcweb.dlight.analysis import (
    BlockInfo,
    collect_block_iter_vars_used_in_access_region,
    dominant_access,
    get_reduction_expr,
    is_broadcast_epilogue,
    normalize_prim_func,
)
from mlcweb.dlight.base import get_extent, main_and_epilogue, try_inline_contiguous_spatial
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.dlight.gpu.gemv import Product, Tiles, elements_per_thread, fit_shared_memory
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import IntImm, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import variables_in


class LowBatchGEMV(GPUScheduleRule):
    """Schedules a product of a matrix and a symbolic number of vectors, as `GEMV` does for each
    `bucket` of them at a time. A block whose name holds "dequantize" unpacks the matrix, in
    registers.

    Only products that add up along the rows of the matrix.
    """

    def __init__(self, bucket: int = 4) -> None:
        self.bucket = bucket

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func)
        sums = [info for info in normalize_prim_func(sch) or [] if info.is_reduction()]
        if len(sums) != 1 or _vectors(sch, sums[0]) is None:
            return None
        doms = [each.dom if isinstance(each.dom, int) else self.bucket for each in sums[0].iters]
        sch.pad_einsum(sums[0].block_rv, doms)
        infos = normalize_prim_func(sch) or []
        unpack = [info.block_rv for info in infos if "dequantize" in info.name]
        pads = [info for info in infos if "pad" in info.name and "dequantize" not in info.name]
        first_pads = [info.block_rv for info in pads if not sch.get_producers(info.block_rv)]
        rest = [info for info in infos if info not in pads and "dequantize" not in info.name]
        blocks = main_and_epilogue(try_inline_contiguous_spatial(sch, rest))
        if blocks is None or len(blocks[0].iters) not in (2, 3):
            return None
        vectors = _vectors(sch, blocks[0])
        if vectors is None or not _normalize(sch, blocks[0]):
            return None
        product = _Products(sch, target, blocks[0].block_rv, vectors, self.bucket)
        product.schedule(unpack[-1] if unpack else None, first_pads[-1] if first_pads else None)
        return sch


def _vectors(sch: Schedule, info: BlockInfo) -> list[Buffer] | None:
    """The buffers that a sum of products reads by some of its constant iterators; None where the
    block is anything else, or not just one of its iterators is symbolic."""
    block: Any = sch.get(info.block_rv)
    regions = (*block.reads, *block.writes)
    plain = all(
        is_const_int(part.extent, 1) and isinstance(part.min, (IntImm, Var))
        for region in regions
        for part in region.region
    )
    constant = {each.var for each in info.iters if isinstance(each.dom, int)}
    if not (
        info.is_reduction()
        and len(block.reads) >= 2
        and len(block.writes) == 1
        and get_reduction_expr(block) is not None
        and plain
        and collect_block_iter_vars_used_in_access_region(block, block.writes[0].region)
        and [each.kind for each in info.iters if each.var not in constant] == ["S"]
    ):
        return None
    vectors = [
        read.buffer
        for read in block.reads
        for used in (collect_block_iter_vars_used_in_access_region(block, read.region),)
        if 0 < len(used & constant) < len(constant)
    ]
    return vectors if 0 < len(vectors) < len(block.reads) else None


def _normalize(sch: Schedule, info: BlockInfo) -> bool:
    """Make the loops of a product three: over vectors, over rows, and over what is summed. Whether
    that is possible, and the innermost axis of the matrix is summed."""
    block: Any = sch.get(info.block_rv)
    infos = {each.var: each for each in info.iters}
    constant = {var for var, each in infos.items() if isinstance(each.dom, int)}
    access = dominant_access(block, constant)
    if access is None or not access.args or not variables_in(access.base).isdisjoint(infos):
        return False
    kinds: dict[str, list[LoopRV]] = {"S": [], "R": [], "O": []}
    for part in access.args:
        each = infos.get(part.source.source)
        if each is None:
            return False
        kinds[each.kind].append(each.loop_rv)
    vectors = [each.loop_rv for var, each in infos.items() if var not in constant]
    if not kinds["S"] or not kinds["R"] or len(vectors) != 1:
        raise ScheduleError("A product of a matrix and vectors has rows and a sum")
    sch.reorder(*vectors, *kinds["S"], *kinds["R"])
    sch.fuse(*kinds["S"])
    sch.fuse(*kinds["R"])
    return infos[access.args[-1].source.source].kind == "R"


class _Products(Product):
    """A product whose loops are of vectors, of rows and of the sum."""

    rows = 2
    batches = 1

    def __init__(
        self, sch: Schedule, target: Target, block: BlockRV, vectors: list[Buffer], bucket: int
    ) -> None:
        self.bucket = bucket
        _, s, r = (get_extent(sch, loop) for loop in sch.get_loops(block))
        tiles = _tiles(target, s, r).within(int(target.limits["max_num_threads"]))
        tile = max(elements_per_thread(r, tiles.parts), 1)
        super().__init__(sch, block, tile, tiles, fit_shared_memory(vectors, target))

    def schedule(self, unpack: BlockRV | None, pad: BlockRV | None) -> None:
        sch, tiles = self.sch, self.tiles
        _, s, r = sch.get_loops(self.block)
        sch.split(s, [None, tiles.rows, self.rows])
        lanes, parts = self._factor_out(r)
        bx, _, r = self._bind_lanes(lanes)
        if unpack is not None:
            self._unpack(unpack, r)
        if tiles.shares_vector:
            raise ScheduleError("The vectors are of a symbolic number, so not all in shared memory")
        if pad is not None:
            sch.compute_inline(pad)
        self._add_up(lanes, parts, bx)
        for epilogue in sch.get_consumers(self.block)[:1]:
            self._schedule_epilogue(epilogue, bx)

    def _bind_lanes(self, lanes: BlockRV) -> tuple[LoopRV, LoopRV, LoopRV]:
        sch = self.sch
        batch, _, ts, *_ = sch.get_loops(lanes)
        bx, tr, r = super()._bind_lanes(lanes)
        by, batch = sch.split(batch, [None, self.bucket])
        sch.bind(by, "blockIdx.y")
        sch.reorder(bx, ts, tr, r, batch)
        return bx, tr, r

    def _unpack(self, unpack: BlockRV, r: LoopRV) -> None:
        """Unpack in registers the elements of the matrix that a thread needs next."""
        sch = self.sch
        sch.compute_at(unpack, r, preserve_unit_loops=True)
        sch.set_scope(unpack, 0, "local")
        row, column = sch.get_loops(unpack)[-2:]
        row, vector = sch.split(row, [None, 1])
        sch.reorder(row, column, vector)
        sch.vectorize(vector)

    def _schedule_epilogue(self, epilogue: BlockRV, bx: LoopRV) -> None:
        sch, tiles = self.sch, self.tiles
        if is_broadcast_epilogue(sch, self.block, epilogue):
            sch.reverse_compute_at(epilogue, bx)
            sch.set_scope(self.block, 0, "shared")
            _, _, _, *loops = sch.get_loops(epilogue)
            _, ts = sch.split(sch.fuse(*loops), [None, tiles.rows])
            sch.bind(ts, tiles.rows_tag)
            return
        sch.reverse_compute_at(epilogue, bx, preserve_unit_loops=True)
        sch.fuse(*sch.get_loops(epilogue)[3:])
        ts, _ = self._share_rows(sch.get_loops(epilogue)[-1:])
        sch.bind(ts, tiles.rows_tag)
        sch.set_scope(self.block, 0, "local")


def _tiles(target: Target, rows: Any, length: Any) -> Tiles:
    """The tiles of products of a kind of device: of so many rows of so many elements."""
    more_rows = isinstance(rows, int) and isinstance(length, int) and rows > length
    match target.kind.name:
        case "cuda":
            sizes = (4, 64) if more_rows else (16, 32)
            return Tiles(*sizes, vector=4, shares_vector=True, vector_load=8, steps=256)
        case "metal":
            tags = ("threadIdx.y", "threadIdx.x") if more_rows else ("threadIdx.x", "threadIdx.y")
            return Tiles(8, 32, *tags, vector=4, steps=8)
        case "rocm":
            sizes = (1, 128) if more_rows else (8, 64)
            return Tiles(*sizes, vector=4, shares_vector=True, vector_load=8, steps=256)
        case "vulkan":
            sizes = (4, 32) if more_rows else (16, 32)
            return Tiles(*sizes, vector=4, shares_vector=True, vector_load=4, steps=256)
        case _:
            return Tiles()
