"""Products of matrices on NVIDIA's tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.dlight.gpu.products import (
    in_product_form,
    inline_consumers,
    inline_producers,
    only_reduction,
)
from mlcweb.runtime.target import Target
from mlcweb.schedule import BlockRV, LoopRV, Schedule, ScheduleError
from mlcweb.tensor_intrin.tensor_cores import get_wmma_intrin_group
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block

LEAST = 64
"""A product with a constant size of no more than this stays on the other cores."""

FIRST_ARCHITECTURE = 70

DO_NOT_TENSORIZE = "dlight.do_not_tensorize"
"""The attribute of functions that are not for tensor cores."""

_FRAGMENT = 16
_WARP = 32
_VECTOR = 4
_SCOPE = "shared.dyn"


@dataclass(frozen=True, slots=True)
class _Config:
    """Tiles for a type of numbers."""

    outputs: tuple[str, ...]
    """The types of results, in the order in which they are tried."""
    k: int
    """The fragments of a sum between two loads of shared memory."""
    factor: int
    offset: int
    """Rows of shared memory start at multiples of `factor` elements, plus `offset`."""


_CONFIGS = {
    "float16": _Config(("float32", "float16"), 4, 16, 8),
    "int8": _Config(("int32",), 1, 32, 16),
}


def tensorized(func: PrimFunc, target: Target, product: object) -> Schedule | None:
    """A schedule of a function on tensor cores; None where the target has none, or they do not
    compute the product, which is given in product form."""
    if not isinstance(product, Block) or DO_NOT_TENSORIZE in func.attrs:
        return None
    if target.compute_capability < FIRST_ARCHITECTURE:
        return None
    extents = [constant_value(axis.dom.extent) for axis in product.iter_vars[1:] if axis.dom]
    if any(extent is not None and extent <= LEAST for extent in extents):
        return None
    config = _CONFIGS.get(product.reads[0].buffer.dtype)
    if config is None or product.writes[0].buffer.dtype not in config.outputs:
        return None
    try:
        return _schedule(func, product.reads[0].buffer.dtype, config)
    except ScheduleError:
        return None


def _schedule(func: PrimFunc, dtype: str, config: _Config) -> Schedule | None:
    sch = Schedule(func)
    main = only_reduction(sch)
    if main is None or not in_product_form(sch, main):
        return None
    tile = 4 * 2 * _FRAGMENT
    sch.pad_einsum(main, [1, tile, tile, config.k * _FRAGMENT])
    batch, *loops = sch.get_loops(main)
    (i, i_in), (j, j_in), (k, k_in) = (sch.split(loop, [None, _FRAGMENT]) for loop in loops)
    sch.reorder(i, j, k, i_in, j_in, k_in)
    outer = sch.blockize(i_in)
    i0, i1, i2, i3 = sch.split(i, [None, 1, 4, 2])
    j0, j1, j2, j3 = sch.split(j, [1, None, 4, 2])
    k0, k1 = sch.split(k, [None, config.k])
    for loop, order, stage in (
        (k0, [0, 3, 1, 4, 5, 2, 6], [0, 0, 0, 0, 0, 1, 1]),
        (k1, [0, 1, 2], [0, 0, 1]),
    ):
        sch.annotate(loop, "software_pipeline_order", order)
        sch.annotate(loop, "software_pipeline_stage", stage)
    sch.reorder(i0, j0, i1, j1, j2, i2, k0, k1, i3, j3)
    bx, by, ty = sch.fuse(i0, j0), sch.fuse(i1, j1), sch.fuse(j2, i2)
    for loop, tag in (
        (batch, "blockIdx.z"),
        (bx, "blockIdx.x"),
        (by, "blockIdx.y"),
        (ty, "threadIdx.y"),
    ):
        sch.bind(loop, tag)
    copies = [_fetch(sch, outer, k0, index, config) for index in (0, 1)]
    for copy in copies:
        inline_producers(sch, copy)
    operands = [sch.cache_read(outer, n, f"wmma.matrix_{'ab'[n]}") for n in (0, 1)]
    for operand in operands:
        sch.compute_at(operand, k1)
    result = sch.cache_write(outer, 0, _SCOPE)
    sch.storage_align(result, 0, axis=-2, factor=16, offset=4)
    store = sch.cache_write(outer, 0, "wmma.accumulator")
    sch.reverse_compute_at(store, ty)
    sch.reverse_compute_at(result, ty)
    _in_fragments(sch, store)
    init = sch.get_child_blocks(sch.decompose_reduction(outer, k0))[0]
    group = get_wmma_intrin_group(_SCOPE, _SCOPE, dtype, config.outputs[0], True)
    for operand, name in zip(operands, ("load_a", "load_b"), strict=True):
        io, jo, ii = _in_fragments(sch, operand)
        sch.unroll(io)
        sch.unroll(jo)
        sch.tensorize(ii, group[name])
    _tensorize(
        sch, dtype, config, {"init": (init, -2), "store": (store, -2), "compute": (main, -3)}
    )
    inline_consumers(sch, result)
    _, tx, vector = sch.split(sch.fuse(*sch.get_loops(result)[-2:]), [None, _WARP, _VECTOR])
    sch.bind(tx, "threadIdx.x")
    sch.vectorize(vector)
    return sch


def _fetch(sch: Schedule, outer: BlockRV, k0: LoopRV, index: int, config: _Config) -> BlockRV:
    """Let the threads of a block load a tile of an operand into shared memory, while the tile
    before is computed with."""
    copy = sch.cache_read(outer, index, _SCOPE)
    sch.compute_at(copy, k0)
    fused = sch.fuse(*sch.get_loops(copy)[-2:])
    _, ty, tx, vector = sch.split(fused, [None, 16, _WARP, _VECTOR])
    sch.bind(tx, "threadIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.vectorize(vector)
    sch.storage_align(copy, 0, axis=-2, factor=config.factor, offset=config.offset)
    sch.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
    sch.annotate(copy, "double_buffer_scope", 0)
    return copy


def _in_fragments(sch: Schedule, block: BlockRV) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Split the two innermost loops of a block into fragments; the loops over these, and the outer
    one in them."""
    i, j = sch.get_loops(block)[-2:]
    io, ii = sch.split(i, [None, _FRAGMENT])
    jo, ji = sch.split(j, [None, _FRAGMENT])
    sch.reorder(io, jo, ii, ji)
    return io, jo, ii


def _tensorize(
    sch: Schedule, dtype: str, config: _Config, blocks: dict[str, tuple[BlockRV, int]]
) -> None:
    """Let tensor cores compute with results of the first type that fits."""
    for output in config.outputs:
        group = get_wmma_intrin_group(_SCOPE, _SCOPE, dtype, output, True)
        try:
            for name, (block, loop) in blocks.items():
                sch.tensorize(sch.get_loops(block)[loop], group[name])
        except ScheduleError:
            if output == config.outputs[-1]:
                raise
        else:
            return
