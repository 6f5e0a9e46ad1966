"""Transposed matrices."""

from __future__ import annotations

from typing import Any

from mlcweb.dlight.analysis import dominant_access, normalize_prim_func
from mlcweb.dlight.base import try_inline_contiguous_spatial, unroll
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import BufferLoad
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import BufferStore

_TILES = {"cuda": (16, 8), "opencl": (16, 8)}
_OTHER_TILE = (8, 4)
_UNROLL = {"cuda": 256}
_OTHER_UNROLL = 64
_VECTOR = 4


class Transpose(GPUScheduleRule):
    """Schedules a function whose last block transposes a matrix: a block of threads reads a tile by
    its rows into shared memory, and writes it by its columns."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        tx, ty = _TILES.get(target.kind.name, _OTHER_TILE)
        sch = Schedule(func)
        infos = normalize_prim_func(sch) or []
        transposing = [n for n, info in enumerate(infos) if _transposes(sch, info.block_rv)]
        # What came after it would not be in threads.
        if not transposing or transposing[-1] != len(infos) - 1:
            return None
        at = transposing[-1]
        block, before = infos[at].block_rv, infos[at - 1].block_rv if at else None
        if try_inline_contiguous_spatial(sch, infos[: max(at - 1, 0)]):
            return None
        if len(sch.get_loops(block)) != 2:
            return None
        packed = 1 if before is None else _packed(sch, before)
        i, j = sch.get_loops(block)
        i, vi = sch.split(i, [None, packed])
        bi, ti = sch.split(i, [None, ty])
        bj, tj = sch.split(j, [None, tx])
        sch.reorder(bi, bj, ti, tj, vi)
        sch.bind(bi, "blockIdx.y")
        sch.bind(bj, "blockIdx.x")
        sch.bind(ti, "threadIdx.y")
        sch.bind(tj, "threadIdx.x")
        vector = min(_VECTOR, packed)
        _, vi = sch.split(vi, [None, vector])
        if vector > 1:
            sch.vectorize(vi)
        _read_rows(sch, sch.cache_read(block, 0, "shared"), bj, (ty, tx, packed))
        unroll(sch, bi, _UNROLL.get(target.kind.name, _OTHER_UNROLL))
        if before is not None:
            sch.compute_inline(before)
        return sch


def _read_rows(sch: Schedule, copy: BlockRV, loop: LoopRV, factors: tuple[int, int, int]) -> None:
    """Let threads beside each other copy a tile by its rows."""
    sch.compute_at(copy, loop)
    fused = sch.fuse(*sch.get_loops(copy)[2:])
    _, ty, tx, inner = sch.split(fused, [None, *factors])
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    sch.unroll(inner)
    # Rows of an odd number of elements, so that a column is in different banks.
    sch.storage_align(copy, 0, axis=0, factor=32, offset=1)


def _transposes(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block stores an element at the same indices in another order."""
    statement: Any = sch.get(block)
    store = statement.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, BufferLoad):
        return False
    to, by = list(store.indices), list(store.value.indices)
    return to != by and set(to) == set(by)


def _packed(sch: Schedule, block: BlockRV) -> int:
    """How many elements a block makes of one that it reads."""
    statement: Any = sch.get(block)
    access = dominant_access(statement)
    factor = constant_value(access.args[0].lower_factor) if access and access.args else 1
    return int(factor or 1)
