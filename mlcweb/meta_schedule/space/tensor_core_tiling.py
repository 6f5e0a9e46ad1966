"""Tiles for the tensor cores of NVIDIA's GPUs: a product of matrices, whatever its loops are,
becomes tiles that a warp computes by instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.meta_schedule.space.multi_level_tiling import (
    WARP_EXECUTION,
    MultiLevelTiling,
    Tiled,
    intrinsic_of,
)
from mlcweb.meta_schedule.space.postprocs import AUTO_TENSORIZE, AUTO_TENSORIZE_INIT
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    TILING_STRUCTURE,
    consumers_of,
    extent_of,
    place_of,
    producers_of,
)
from mlcweb.schedule.analysis.products import Product, constant_extent, product_of
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.stmt import For
from mlcweb.tir.substitute import variables_in

SPATIAL_LOOPS = 2
"""Of a product, those that are tiled; others are over a batch of products."""

LOADED_OFFSETS = {"int8": 16, "uint8": 16}
"""By how many elements a row of a tile in shared memory is moved against the one before, modulo
`BANKS` of them; 8 of other types."""

BANKS = 32


@dataclass(frozen=True, slots=True)
class _Tensorized(Tiled):
    """A tiled block that intrinsics of a group compute."""

    intrinsics: Mapping[str, str] | None = None
    tile: tuple[int, ...] = ()
    stored: BlockRV | None = None


@dataclass(eq=False)
class MultiLevelTilingTensorCore(MultiLevelTiling):
    """Tiles products of matrices for tensor cores: copies of tiles in shared memory, fragments of
    them in the registers of warps. Each group of intrinsics that fits gives schedules of its own;
    a block that is no such product stays.

    Args:
        intrin_groups: names of intrinsics by what they do: "init", "load_a", "load_b", "compute",
            "store".
        tiling, options: those of `MultiLevelTiling`; warps are bound to the last of `tile_binds`.
        use_software_pipeline: whether tiles are loaded while the threads compute with others, and
            fragments, too.
    """

    def __init__(
        self,
        intrin_groups: Sequence[Mapping[str, str]],
        *tiling: Any,
        use_software_pipeline: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*tiling, **options)
        self.use_software_pipeline = use_software_pipeline
        self.intrin_groups = intrin_groups

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        statement = place_of(sch, block).block
        for group in self.intrin_groups:
            _check_is_wmma(group["compute"])
        fitting = [
            (group, product)
            for group in self.intrin_groups
            if (product := product_of(statement, intrinsic_of(group["compute"]).described_block))
            is not None
        ]
        results = []
        for group, product in fitting:
            own = sch.copy()
            own.annotate(block, TILING_STRUCTURE, self.structure)
            results += self._tensorized(own, block, group, product)
        return results or [sch]

    def _tensorized(
        self, sch: Schedule, block: BlockRV, group: Mapping[str, str], product: Product
    ) -> Iterable[Schedule]:
        stored = _as_product(sch, block, product)
        _pad(sch, block, product)
        computed = _blockized(sch, block, product.tile)
        sch.annotate(computed, AUTO_TENSORIZE, group["compute"])
        sch.annotate(computed, AUTO_TENSORIZE_INIT, group["init"])
        sch.annotate(computed, WARP_EXECUTION, 1)
        state = _Tensorized(
            sch, computed, intrinsics=group, tile=tuple(product.tile), stored=stored
        )
        return (each.sch for each in self.tilings(state))

    def tile_loops(self, state: Tiled, spatial_loops: int | None = SPATIAL_LOOPS) -> Tiled:
        return super().tile_loops(state, spatial_loops)

    def with_write_reuse(self, state: Tiled) -> Iterable[Tiled]:
        assert isinstance(state, _Tensorized)
        assert self.reuse_write is not None
        sch, block = state.sch, state.block
        assert state.intrinsics is not None
        assert state.stored is not None
        sch.transform_layout(
            block, ("write", 0), self._by_warps(state), assume_injective_transform=True
        )
        shared = sch.cache_write(block, 0, self.reuse_write.scope)
        level = state.last_loop(self.reuse_write.levels[0])
        sch.reverse_compute_at(shared, level, preserve_unit_loops=True)
        fragment = sch.cache_write(block, 0, "wmma.accumulator")
        *_, rows, columns, row, column, _, _ = sch.get_loops(shared)
        sch.reorder(row, rows, columns, column)
        sch.compute_at(fragment, row, preserve_unit_loops=True)
        warps = sch.fuse(*sch.get_loops(fragment)[-6:-4])
        assert self.tile_binds
        sch.bind(warps, self.tile_binds[-1])
        sch.reverse_compute_inline(state.stored)
        store = sch.blockize(sch.get_loops(fragment)[-2])
        sch.annotate(store, AUTO_TENSORIZE, state.intrinsics["store"])
        sch.fuse(*sch.get_loops(shared)[-5:])
        self.annotate_fetching(sch, shared, place_of(sch, shared).block.writes[0].buffer.dtype)
        return [state]

    def _by_warps(self, state: _Tensorized) -> IndexMap:
        """The order of what is written: by the tiles of warps, fragments, and elements in these."""
        ndim = len(place_of(state.sch, state.block).block.writes[0].buffer.shape)
        indices = [E.Var(f"i{axis}", "int32") for axis in range(ndim)]
        outer, inner, elements = [], [], []
        pairs = zip(indices[-SPATIAL_LOOPS:], state.tile, state.factors, strict=False)
        for index, size, factors in pairs:
            fragments = factors[-2] * factors[-1]
            outer.append(index // size // fragments)
            inner.append(index // size % fragments)
            elements.append(index % size)
        final = (*indices[:-SPATIAL_LOOPS], *outer, *inner, *elements)
        return IndexMap(tuple(indices), final)

    def with_read_reuse(self, state: Tiled) -> Iterable[Tiled]:
        assert isinstance(state, _Tensorized)
        assert self.reuse_read is not None
        assert state.intrinsics is not None
        sch, block = state.sch, state.block
        (level,) = self.reuse_read.levels
        copies = self.read_at(state, level)
        for index, operand in enumerate("ab"):
            fragment = sch.cache_read(block, index, f"wmma.matrix_{operand}")
            sch.compute_at(fragment, state.last_loop(level + 1), preserve_unit_loops=True)
            intrinsic = state.intrinsics[f"load_{operand}"]
            (buffer, _) = intrinsic_of(intrinsic).described_buffers
            load = _blockized(sch, fragment, constant_shape(buffer) or ())
            sch.annotate(load, AUTO_TENSORIZE, intrinsic)
        for copy in copies:
            (reindexed,) = sch.get_producers(copy)
            sch.compute_inline(reindexed)
            dtype = place_of(sch, copy).block.writes[0].buffer.dtype
            offset = LOADED_OFFSETS.get(dtype, 8)
            sch.storage_align(copy, 0, axis=-2, factor=BANKS, offset=offset)
        if self.use_software_pipeline:
            self.overlap(state, copies)
        return [state]

    def with_async_copies(self, state: Tiled) -> Iterable[Tiled]:
        """As in TVM, pipelines of tensor cores are those of `use_software_pipeline` alone."""
        return [state]

    def overlap(self, state: Tiled, copies: Sequence[BlockRV]) -> None:
        """Annotate the loops over two levels of tiles as pipelines: one loads the next tile to
        registers, and puts it into shared memory late; one loads the next fragments."""
        sch = state.sch
        kinds = zip(state.tiles, self.structure, strict=True)
        levels = [tiles for tiles, kind in kinds if kind == "R"]
        loops = [sch.get(loop) for tiles in levels for loop in tiles]
        extents = [extent_of(loop) or 0 for loop in loops if isinstance(loop, For)]
        if len(levels) < 2 or prod(extents) <= 1:
            return
        for copy in copies:
            sch.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
            sch.annotate(copy, "double_buffer_scope", 0)
        # Load, load, multiply. Of the tiles each load has two steps, and the loop over fragments is
        # a prologue, a body and an epilogue.
        for loop, stages, order in (
            (levels[1][-1], [0, 0, 1], [0, 1, 2]),
            (levels[0][-1], [0, 0, 0, 0, 0, 1, 1], [0, 3, 1, 4, 5, 2, 6]),
        ):
            sch.annotate(loop, "software_pipeline_stage", stages)
            sch.annotate(loop, "software_pipeline_order", order)


def _as_product(sch: Schedule, block: BlockRV, product: Product) -> BlockRV:
    """Have a block compute products of matrices, of copies of its arrays in that form; what copies
    the result back."""
    statement = place_of(sch, block).block
    accesses = [("write", 0), ("read", 0), ("read", 1)]
    copies = [sch.reindex(block, access) for access in accesses]
    node = place_of(sch, block).block
    used = [variables_in(*region.region) for region in (*node.writes, *node.reads)]
    maps = [
        product.index_map(statement, axes, variables)
        for axes, variables in zip(product.axes, used, strict=True)
    ]
    for number in (1, 2, 0):
        sch.transform_layout(block, accesses[number], maps[number], assume_injective_transform=True)
    for copy, index_map in zip(copies, maps, strict=True):
        sch.transform_block_layout(copy, index_map)
    every = range(len(product.groups))
    sch.transform_block_layout(block, product.index_map(statement, every))
    return copies[0]


def _pad(sch: Schedule, block: BlockRV, product: Product) -> None:
    """Have the extents of a product be multiples of a tile's."""
    extents = [prod(map(constant_extent, group)) for group in product.groups]
    padding = [
        size if extent % size else 1 for extent, size in zip(extents, product.tile, strict=True)
    ]
    if max(padding) == 1:
        return
    sch.pad_einsum(block, [1] * len(product.batch) + padding)
    unpadded: list[BlockRV] = []
    for copy in sch.get_producers(block):
        if producers_of(sch.state, place_of(sch, copy)):
            unpadded += sch.get_producers(copy)
    for result in sch.get_consumers(block):
        if consumers_of(sch.state, place_of(sch, result)):
            sch.get_consumers(result)
            unpadded.append(result)
    for copy in unpadded:
        sch.compute_inline(copy)


def _blockized(sch: Schedule, block: BlockRV, tile: Sequence[int]) -> BlockRV:
    """The block of a tile of the innermost loops of a block."""
    loops = sch.get_loops(block)
    inner: list[LoopRV] = []
    for loop, size in reversed(list(zip(loops[-len(tile) :], tile, strict=True))):
        inner.insert(0, sch.split(loop, [None, size])[1])
    # After the first loop of a tile, every second one is over tiles.
    between = sch.get_loops(block)[-2 * (len(tile) - 1) :: 2]
    sch.reorder(*between, *inner)
    return sch.blockize(inner[0])


def _check_is_wmma(name: str) -> None:
    """Refuse products of tiles that are not wmma's fragments."""
    scope = intrinsic_of(name).described_buffers[0].scope()
    if not scope.startswith("wmma."):
        raise ValueError(
            f'MultiLevelTilingTensorCore tiles for fragments of wmma, and "{name}" multiplies '
            f'those of scope "{scope}"; take intrin_groups of get_wmma_intrin_group'
        )


def wmma_groups() -> list[dict[str, str]]:
    """The groups of intrinsics that TVM tries: products of float16 summed in float32 and float16,
    and of int8 in int32, with the second matrix by rows and by columns."""
    from mlcweb.tensor_intrin.tensor_cores import get_wmma_intrin_group

    return [
        get_wmma_intrin_group("shared.dyn", "shared.dyn", in_dtype, out_dtype, transposed)
        for in_dtype, out_dtype in (
            ("float16", "float32"), ("float16", "float16"), ("int8", "int32"),
        )
        for transposed in (False, True)
    ]  # fmt: skip
