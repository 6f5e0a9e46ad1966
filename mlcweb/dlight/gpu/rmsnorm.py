"""Normalization by the root of the mean square."""

from __future__ import annotations

from typing import Any

from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.ir.op import Op
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.tir.expr import BufferLoad, Call, Cast
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import BufferStore

RSQRT = Op("tir.rsqrt")

_THREADS = {"cuda": 512, "opencl": 256}
_OTHER_THREADS = 64
_VECTOR = 8


class RMSNorm(GPUScheduleRule):
    """Schedules a function of four blocks beside casts: squares, their sum, its inverse root, and
    the product of that with what was read. A block of threads does a row, which it reads once, into
    registers."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        threads = _THREADS.get(target.kind.name, _OTHER_THREADS)
        sch = Schedule(func)
        root = sch.get_block("root")
        blocks = sch.get_child_blocks(root)
        if not any(_is_inverse_root(sch, block) for block in blocks):
            return None
        sch.cache_read(blocks[0], 0, "local")
        sch.cache_write(blocks[-1], 0, "local")
        for block in blocks:
            if _is_copy(sch, block):
                sch.compute_inline(block)
        blocks = sch.get_child_blocks(root)
        if len(blocks) != 6 or not _is_inverse_root(sch, blocks[3]):
            return None
        read, square, total, inverse, product, write = blocks
        for block in blocks:
            sch.fuse(*sch.get_loops(block)[:-1])
        row, loop = sch.get_loops(read)
        thread, _, _ = sch.split(loop, [threads, None, _VECTOR])
        sch.bind(row, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
        sch.vectorize(sch.get_loops(read)[-1])
        sch.reverse_compute_at(square, thread)
        sch.reverse_compute_at(total, thread)
        sch.reverse_compute_at(inverse, row)
        sch.reverse_compute_at(product, row)
        thread, _, _ = sch.split(sch.get_loops(product)[-1], [threads, None, _VECTOR])
        sch.bind(thread, "threadIdx.x")
        sch.reverse_compute_at(write, thread)
        sch.vectorize(sch.get_loops(write)[-1])
        for block, scope in (
            (square, "local"),
            (total, "local"),
            (inverse, "shared"),
            (product, "local"),
        ):
            sch.set_scope(block, 0, scope)
        return sch


def _store(sch: Schedule, block: BlockRV) -> BufferStore | None:
    """The only statement of a block that reads one buffer and writes another."""
    statement: Any = sch.get(block)
    single = len(statement.reads) == len(statement.writes) == 1
    return statement.body if single and isinstance(statement.body, BufferStore) else None


def _is_copy(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block copies elements to the same indices, perhaps as another type."""
    store = _store(sch, block)
    if store is None:
        return False
    value = store.value.value if isinstance(store.value, Cast) else store.value
    return isinstance(value, BufferLoad) and list(value.indices) == list(store.indices)


def _is_inverse_root(sch: Schedule, block: BlockRV) -> bool:
    store = _store(sch, block)
    return store is not None and isinstance(store.value, Call) and store.value.op == RSQRT
