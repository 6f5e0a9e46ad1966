"""Tiles for the tensor cores of NVIDIA's GPUs: a product of matrices, whatever its loops are,
becomes tiles that a warp computes by instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.visitor import children
from mlcweb.meta_schedule.space.multi_level_tiling import (
    WARP_EXECUTION,
    MultiLevelTiling,
    ReuseType,
    Tiled,
)
from mlcweb.meta_schedule.space.postprocs import AUTO_TENSORIZE, AUTO_TENSORIZE_INIT
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    TILING_STRUCTURE,
    consumers_of,
    place_of,
    producers_of,
)
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.stmt import Block, BufferStore, IterVar, statements_in
from mlcweb.tir.substitute import variables_in
from mlcweb.tir.tensor_intrin import TensorIntrin

SPATIAL_LOOPS = 2
"""Of a product, those that are tiled; others are over a batch of products."""

LOADED_OFFSETS = {"int8": 16, "uint8": 16}
"""By how many elements a row of a tile in shared memory is moved against the one before, modulo
`BANKS` of them; 8 of other types."""

BANKS = 32


class _Product(NamedTuple):
    """A block as a batch of products that an intrinsic computes tiles of.

    Attributes:
        batch: the iterators that choose a product.
        groups: the iterators that together are rows, columns, and what is summed over.
        axes: for what is written and each input of the intrinsic, which groups are its dimensions.
        tile: the extents of the intrinsic, of each group.
    """

    batch: list[IterVar]
    groups: list[list[IterVar]]
    axes: list[list[int]]
    tile: list[int]

    def index_map(self, block: Block, axes: Sequence[int]) -> IndexMap:
        """The iterators of the batch and of some groups, in the order of the block, to the batch
        and one index for each group."""
        chosen = [*self.batch, *(each for axis in axes for each in self.groups[axis])]
        fresh = {
            each: E.Var(each.var.name, each.var.dtype) for each in block.iter_vars if each in chosen
        }
        fused = [_fused(self.groups[axis], fresh) for axis in axes]
        return IndexMap(tuple(fresh.values()), (*(fresh[each] for each in self.batch), *fused))


def _fused(group: Sequence[IterVar], variables: Mapping[IterVar, E.Var]) -> E.PrimExpr:
    """The index of a point among all of a group's, the last iterator fastest."""
    index: E.PrimExpr | None = None
    for position, each in enumerate(group):
        step = prod(_extent(inner) for inner in group[position + 1 :])
        variable = variables[each]
        term = variable if step == 1 else E.Mul(variable, const(step, variable.dtype))
        index = term if index is None else E.Add(index, term)
    assert index is not None
    return index


def _extent(iter_var: IterVar) -> int:
    """How long an iterator is; 0 where that is not constant."""
    extent = iter_var.dom.extent if iter_var.dom is not None else None
    return extent.value if isinstance(extent, E.IntImm) else 0


def _intrinsic(name: str) -> TensorIntrin:
    intrinsic = TensorIntrin.get(name)
    assert intrinsic is not None
    return intrinsic


@dataclass(frozen=True, slots=True)
class _Accesses:
    """The variables in the indices of each access of an update, the written one first."""

    buffers: list[Buffer]
    variables: list[list[set[E.Var]]]

    def uses(self, var: E.Var) -> tuple[bool, ...]:
        """Which of the accesses depend on a variable."""
        return tuple(any(var in used for used in indices) for indices in self.variables)


def _update(block: Block) -> BufferStore | None:
    stores = [part for part in statements_in(block.body) if isinstance(part, BufferStore)]
    return stores[0] if len(stores) == 1 and block.body is stores[0] else None


def _same_form(ours: object, described: object, loads: list[tuple[Buffer, Buffer]]) -> bool:
    """Whether two expressions compute the same of their loads, which are added to `loads`."""
    if type(ours) is not type(described) or not isinstance(ours, E.PrimExpr):
        return False
    assert isinstance(described, E.PrimExpr)
    if ours.dtype != described.dtype:
        return False
    if isinstance(ours, E.BufferLoad) and isinstance(described, E.BufferLoad):
        loads.append((ours.buffer, described.buffer))
        return True
    ours_below, described_below = list(children(ours)), list(children(described))
    return len(ours_below) == len(described_below) > 0 and all(
        _same_form(one, other, loads)
        for one, other in zip(ours_below, described_below, strict=True)
    )


def _accesses(store: BufferStore) -> _Accesses:
    loads: list[E.BufferLoad] = []

    def collect(node: object) -> None:
        if isinstance(node, E.BufferLoad):
            loads.append(node)
        elif isinstance(node, E.PrimExpr):
            for child in children(node):
                collect(child)

    collect(store.value)
    others = [load for load in loads if load.buffer is not store.buffer]
    return _Accesses(
        [store.buffer, *(load.buffer for load in others)],
        [[variables_in(index) for index in each.indices] for each in (store, *others)],
    )


def product_of(block: Block, intrinsic: str) -> _Product | None:
    """A block as the products whose tiles an intrinsic computes; None where it is none.

    Each iterator is one of the batch, which chooses from all arrays, or belongs to that iterator of
    the intrinsic which is of its type and used by the same arrays.
    """
    described = next(
        part
        for part in statements_in(_intrinsic(intrinsic).described_block.body)
        if isinstance(part, Block)
    )
    ours, theirs = _update(block), _update(described)
    if ours is None or theirs is None or len(block.writes) != 1:
        return None
    loads: list[tuple[Buffer, Buffer]] = [(ours.buffer, theirs.buffer)]
    if not _same_form(ours.value, theirs.value, loads):
        return None
    if any((one is ours.buffer) is not (other is theirs.buffer) for one, other in loads):
        return None
    accesses, pattern = _accesses(ours), _accesses(theirs)
    read = [region.buffer for region in block.reads if region.buffer is not ours.buffer]
    if read != accesses.buffers[1:]:
        return None
    batch: list[IterVar] = []
    groups: list[list[IterVar]] = [[] for _ in described.iter_vars]
    uses = [(pattern.uses(each.var), each.iter_type) for each in described.iter_vars]
    for each in block.iter_vars:
        use = accesses.uses(each.var)
        if not _extent(each):
            return None
        if all(use):
            batch.append(each)
        elif (use, each.iter_type) in uses:
            groups[uses.index((use, each.iter_type))].append(each)
        else:
            return None
    if not all(groups):
        return None
    variables = [each.var for each in described.iter_vars]
    axes = [[variables.index(used) for (used,) in indices] for indices in pattern.variables]
    return _Product(batch, groups, axes, [_extent(each) for each in described.iter_vars])


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
        structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write: as
            of `MultiLevelTiling`; warps are bound to the last of `tile_binds`.
        use_software_pipeline: must be False.
    """

    def __init__(
        self,
        intrin_groups: Sequence[Mapping[str, str]],
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        use_software_pipeline: bool = False,
    ) -> None:
        super().__init__(
            structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write
        )
        if use_software_pipeline:
            raise ValueError("use_software_pipeline: there are no pipelines here; leave it out")
        self.max_threads_per_block = self.warp_size = 0
        self.intrin_groups = intrin_groups

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        statement = place_of(sch, block).block
        fitting = [
            (group, product)
            for group in self.intrin_groups
            if (product := product_of(statement, group["compute"])) is not None
        ]
        results = []
        for group, product in fitting:
            own = sch.copy()
            own.annotate(block, TILING_STRUCTURE, self.structure)
            results += self._tensorized(own, block, group, product)
        return results or [sch]

    def _tensorized(
        self, sch: Schedule, block: BlockRV, group: Mapping[str, str], product: _Product
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
            (buffer, _) = _intrinsic(intrinsic).described_buffers
            load = _blockized(sch, fragment, constant_shape(buffer) or ())
            sch.annotate(load, AUTO_TENSORIZE, intrinsic)
        for copy in copies:
            (reindexed,) = sch.get_producers(copy)
            sch.compute_inline(reindexed)
            dtype = place_of(sch, copy).block.writes[0].buffer.dtype
            offset = LOADED_OFFSETS.get(dtype, 8)
            sch.storage_align(copy, 0, axis=-2, factor=BANKS, offset=offset)
        return [state]


def _as_product(sch: Schedule, block: BlockRV, product: _Product) -> BlockRV:
    """Have a block compute products of matrices, of copies of its arrays in that form; what copies
    the result back."""
    statement = place_of(sch, block).block
    accesses = [("write", 0), ("read", 0), ("read", 1)]
    copies = [sch.reindex(block, access) for access in accesses]
    maps = [product.index_map(statement, axes) for axes in product.axes]
    for number in (1, 2, 0):
        sch.transform_layout(block, accesses[number], maps[number], assume_injective_transform=True)
    for copy, index_map in zip(copies, maps, strict=True):
        sch.transform_block_layout(copy, index_map)
    every = range(len(product.groups))
    sch.transform_block_layout(block, product.index_map(statement, every))
    return copies[0]


def _pad(sch: Schedule, block: BlockRV, product: _Product) -> None:
    """Have the extents of a product be multiples of a tile's."""
    extents = [prod(map(_extent, group)) for group in product.groups]
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
