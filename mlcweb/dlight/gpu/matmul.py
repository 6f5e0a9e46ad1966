"""Products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.dlight.base import unroll
from mlcweb.dlight.gpu.base import GPUScheduleRule
from mlcweb.dlight.gpu.matmul_tensor_cores import tensorized
from mlcweb.dlight.gpu.products import (
    in_product_form,
    inline_consumers,
    inline_producers,
    only_reduction,
)
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.tir.function import PrimFunc


class Matmul(GPUScheduleRule):
    """Schedules a product of matrices, which may be one of a batch or a convolution, with what is
    elementwise before and after it. A block of threads computes a tile; it loads what that needs
    into shared memory, and each thread keeps a tile of its own in registers. Sizes that the tiles
    do not divide are padded.

    On NVIDIA's tensor cores where the numbers are float16 or int8.
    """

    @dataclass(frozen=True, slots=True)
    class Config:
        """How a product is tiled: x are rows, y columns, k what is summed."""

        block_size_x: int = 8
        block_size_y: int = 8
        vthread_x: int = 1
        vthread_y: int = 1
        micro_size_x: int = 4
        micro_size_y: int = 4
        micro_size_k: int = 8
        vector_size: int = 1
        unroll: int = 256
        storage_align: bool = False

    def get_configs(self, target: Target) -> Config:
        """The tiles for a target."""
        if target.kind.name in ("cuda", "rocm"):
            return Matmul.Config(
                block_size_y=16, micro_size_k=16, vector_size=2, storage_align=True
            )
        return Matmul.Config()

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        sch = Schedule(func)
        main = only_reduction(sch)
        if main is None or not in_product_form(sch, main):
            return None
        fast = tensorized(func, target, sch.get(main))
        return fast or _tile(sch, main, self.get_configs(target))


def _tile(sch: Schedule, main: BlockRV, config: Matmul.Config) -> Schedule:
    rows = config.vthread_x * config.block_size_x * config.micro_size_x
    columns = config.vthread_y * config.block_size_y * config.micro_size_y
    sch.pad_einsum(main, [1, rows, columns, config.micro_size_k])
    batch, x, y, k = sch.get_loops(main)
    by, vy, ty, yi = sch.split(
        y, [None, config.vthread_y, config.block_size_y, config.micro_size_y]
    )
    bx, vx, tx, xi = sch.split(
        x, [None, config.vthread_x, config.block_size_x, config.micro_size_x]
    )
    ko, ki = sch.split(k, [None, config.micro_size_k])
    sch.reorder(by, bx, vy, vx, ty, tx, ko, ki, xi, yi)
    by = sch.fuse(batch, by)
    tags = ("blockIdx.x", "blockIdx.y", "vthread.y", "vthread.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((bx, by, vy, vx, ty, tx), tags, strict=True):
        sch.bind(loop, tag)
    _vectorize(sch, yi, config.micro_size_y, config.vector_size)
    if config.unroll:
        unroll(sch, tx, config.unroll)
    result = sch.cache_write(main, 0, "local")
    sch.reverse_compute_at(result, tx, preserve_unit_loops=True)
    _vectorize(sch, sch.get_loops(result)[-1], config.micro_size_x, config.vector_size)
    copies = [_fetch(sch, main, ko, index, config) for index in (0, 1)]
    for copy in copies:
        inline_producers(sch, copy)
    inline_consumers(sch, result)
    sch.decompose_reduction(main, ko)
    return sch


def _vectorize(sch: Schedule, loop: LoopRV, extent: int, width: int) -> None:
    if extent % width == 0:
        _, vector = sch.split(loop, [None, width])
        sch.vectorize(vector)


def _fetch(sch: Schedule, main: BlockRV, ko: LoopRV, index: int, config: Matmul.Config) -> BlockRV:
    """Let the threads of a block load a tile of an operand into shared memory together."""
    copy = sch.cache_read(main, index, "shared")
    count = len(sch.get_loops(copy))
    sch.compute_at(copy, ko, preserve_unit_loops=True)
    fused = sch.fuse(*sch.get_loops(copy)[-count:])
    factors = [config.block_size_y, config.block_size_x, None, config.vector_size]
    ty, tx, _, vector = sch.split(fused, factors)
    sch.vectorize(vector)
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    if config.storage_align:
        sch.storage_align(copy, 0, axis=1, factor=8, offset=config.vector_size)
    return copy
