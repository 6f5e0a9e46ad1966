"""Loops in tiles of tiles, and copies of what a tile reads and writes; tiles whose innermost loops
an instruction of a processor does at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Any, NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.meta_schedule.space import TaskInfo
from mlcweb.meta_schedule.space.postprocs import AUTO_TENSORIZE
from mlcweb.meta_schedule.space.rules import ScheduleRule, one_of
from mlcweb.schedule import BlockRV, ExprRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    REDUCTION,
    SPATIAL,
    TILING_STRUCTURE,
    extent_of,
    inputs_of,
    is_reduction_block,
    is_write_cache,
    loop_of,
    needs_multi_level_tiling,
    place_of,
)
from mlcweb.schedule.analysis.products import computes_alike
from mlcweb.schedule.transform import tile_with_tensor_intrin
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.stmt import Block, For, IterType, SeqStmt
from mlcweb.tir.tensor_intrin import TensorIntrin

WRITE_CACHE_LEVEL = "meta_schedule.write_cache_level"
COOPERATIVE_FETCH = "meta_schedule.cooperative_fetch"

WARP_EXECUTION = "warp_execution"
"""Says of a block that all threads of a warp compute it together."""

THREADS_LOW = "meta_schedule.thread_extent_low_inclusive"
THREADS_HIGH = "meta_schedule.thread_extent_high_inclusive"
"""Annotations with the fewest and the most threads that a block may have around it."""

_FETCHED_LENGTHS: dict[str, Callable[[int], bool]] = {
    "float32": lambda lanes: lanes <= 4,
    "float16": lambda lanes: lanes <= 8 and (lanes == 1 or lanes % 2 == 0),
    "int8": lambda lanes: lanes <= 16,
}
"""Vector lengths that cooperative fetching may choose from, as in TVM: of these types those that
one load of 128 bits can have; of other types all, and `VerifyGPUCode` refuses what is too long."""


ASYNC_COPIES_SINCE = 80
"""The compute capability, times 10, from which GPUs copy asynchronously to shared memory."""

ASYNC_TILES_AHEAD = (2, 3)
"""How many tiles ahead of the computation copies may be started, as in TVM."""


class ReuseType(NamedTuple):
    """Copies of what a tile accesses: at which levels of tiles, counted from 1, and in which
    storage scope. `req` is "no", "may" (a space without a copy, too) or "must"."""

    req: str
    levels: list[int]
    scope: str

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return self._asdict()


NO_REUSE = ReuseType("no", [], "")


@dataclass(frozen=True, slots=True)
class Tiled:
    """A schedule in which a block was tiled, with the loops of each level of tiles, and the factors
    of each loop that was split."""

    sch: Schedule
    block: BlockRV
    tiles: tuple[tuple[LoopRV, ...], ...] = ()
    factors: tuple[tuple[ExprRV | int, ...], ...] = ()

    def copy(self) -> Tiled:
        """The same with a schedule of its own."""
        return replace(self, sch=self.sch.copy())

    def last_loop(self, level: int) -> LoopRV:
        """The innermost loop of a level, counted from 1."""
        return self.tiles[level - 1][-1]


@dataclass(eq=False)
class MultiLevelTiling(ScheduleRule):
    """Tiles the loops of a block that reads the same elements several times.

    Args:
        structure: a letter for each level of tiles from the outermost: S for tiles of the spatial
            loops, R for tiles of the reduction loops.
        tile_binds: thread axes that the levels are bound to.
        max_innermost_factor: the largest innermost factor of a loop; without end if None.
        vector_load_lens: vector lengths for cooperative fetching to choose from.
        reuse_read: copies of what is read.
        reuse_write: copies of what is written.
        filter_fn: tells, of the schedule and the block's reference, whether to tile a block that
            else would not be tiled.
    """

    structure: str
    tile_binds: Sequence[str] | None = None
    max_innermost_factor: int | None = None
    vector_load_lens: Sequence[int] | None = None
    reuse_read: ReuseType | None = None
    reuse_write: ReuseType | None = None
    filter_fn: Callable[[Schedule, Any], bool] | None = field(default=None)
    max_threads_per_block: int = field(default=0, init=False)
    warp_size: int = field(default=0, init=False)
    tiles_ahead: Sequence[int] = field(default=(), init=False)

    def _initialize_with_tune_context(self, context: TaskInfo) -> None:
        super()._initialize_with_tune_context(context)
        most, warp = self.limit("max_threads_per_block"), self.limit("thread_warp_size")
        if most and warp:
            self.max_threads_per_block, self.warp_size = most, warp
        has_async_copies = (
            context.target is not None and context.target.compute_capability >= ASYNC_COPIES_SINCE
        )
        self.tiles_ahead = ASYNC_TILES_AHEAD if has_async_copies else ()

    def __post_init__(self) -> None:
        if not self.structure or set(self.structure) - set("SR"):
            raise ValueError(
                f'A tiling structure consists of the letters S and R; "{self.structure}" does not'
            )
        for reuse in (self.reuse_read, self.reuse_write):
            if reuse is not None and reuse.req not in ("no", "may", "must"):
                raise ValueError(f'A reuse is "no", "may" or "must", not "{reuse.req}"')
        if self.reuse_read is not None and self.reuse_read.req == "may":
            raise ValueError('A reuse of what is read is "no" or "must"; "may" is for writing')

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not self.concerns(sch, block):
            return [sch]
        sch.annotate(block, TILING_STRUCTURE, self.structure)
        return [state.sch for state in self.tilings(Tiled(sch, block))]

    def concerns(self, sch: Schedule, block: BlockRV) -> bool:
        """Whether a block is to be tiled."""
        if self.filter_fn is not None and self.filter_fn(sch, sch.get_sref(block)):
            return True
        place = place_of(sch, block)
        return needs_multi_level_tiling(place) and is_reduction_block(sch.state, place)

    def tilings(self, state: Tiled) -> Iterable[Tiled]:
        """The ways to tile a block and to copy what it accesses."""
        for written in self.with_write_reuse(self.tile_loops(state)):
            for read in self.with_read_reuse(written):
                yield from self.with_async_copies(read)

    def tile_loops(self, state: Tiled, spatial_loops: int | None = None) -> Tiled:
        """Tile the loops, with factors chosen by chance.

        Args:
            spatial_loops: how many spatial loops are tiled, the innermost ones; all by default.
                Others are fused with the outermost level.
        """
        sch, block = state.sch, state.block
        types = _iterator_types(sch, block)
        loops = place_of(sch, block).loops
        pairs = list(zip(sch.get_loops(block), types, strict=True))
        untiled = 0 if spatial_loops is None else types.count(SPATIAL) - spatial_loops
        batch, pairs = [loop for loop, _ in pairs[:untiled]], pairs[untiled:]
        tiles: list[list[LoopRV]] = [[] for _ in self.structure]
        factors: list[tuple[ExprRV | int, ...]] = []
        tiled = zip(loops[untiled:], types[untiled:], strict=True)
        lengths = [extent_of(loop) or 0 for loop, kind in tiled if kind == SPATIAL]
        for loop, kind in pairs:
            letter = {SPATIAL: "S", REDUCTION: "R"}.get(kind)
            levels = [level for level, tile in enumerate(self.structure) if tile == letter]
            parts = [loop]
            if len(levels) > 1:
                sampled, parts = self.split_loop(sch, block, loop, len(levels))
                factors.append(sampled)
            for level, part in zip(levels, parts, strict=bool(levels)):
                tiles[level].append(part)
        sch.reorder(*chain.from_iterable(tiles))
        for level, thread in zip(range(len(tiles)), self.tile_binds or (), strict=False):
            fused = sch.fuse(*(() if level else batch), *tiles[level])
            sch.bind(fused, thread)
            tiles[level] = [fused]
        if self.tile_binds and self.warp_size:
            many = prod(lengths) > 2 * self.warp_size
            low = self.warp_size if many else 1
            sch.annotate(block, THREADS_LOW, low)
            sch.annotate(block, THREADS_HIGH, self.max_threads_per_block)
        return replace(state, tiles=tuple(map(tuple, tiles)), factors=tuple(factors))

    def split_loop(
        self, sch: Schedule, block: BlockRV, loop: LoopRV, n: int
    ) -> tuple[tuple[ExprRV | int, ...], list[LoopRV]]:
        """Split a loop into `n` levels: the factors, and the loops."""
        factors = self.sample_factors(sch, loop, n)
        return factors, sch.split(loop, factors)

    def sample_factors(self, sch: Schedule, loop: LoopRV, n: int) -> tuple[ExprRV, ...]:
        """Factors of a loop that are chosen by chance."""
        limit = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        return tuple(sch.sample_perfect_tile(loop, n, limit))

    def with_write_reuse(self, state: Tiled) -> Iterable[Tiled]:
        """The ways to write through a copy: one for each level, and for "may" none at all. A
        consumer that only passes on what it reads serves as the copy."""
        req, levels, scope = self.reuse_write or NO_REUSE
        if req == "no":
            return [state]
        annotated = place_of(state.sch, state.block).block.annotations.get(WRITE_CACHE_LEVEL)
        if annotated is not None:
            req, levels = "must", [int(level) for level in annotated]
        tilings = []
        if req == "may":
            consumers = state.sch.get_consumers(state.block)
            if len(consumers) == 1 and _is_cache(state.sch, consumers[0]):
                tilings = [self._written_at(state, consumers[0], level) for level in levels]
                return [*tilings, state]
            tilings.append(state.copy())
        cache = state.sch.cache_write(state.block, 0, scope)
        return [*tilings, *(self._written_at(state, cache, level) for level in levels)]

    def _written_at(self, state: Tiled, cache: BlockRV, level: int) -> Tiled:
        variant = state.copy()
        variant.sch.reverse_compute_at(cache, variant.last_loop(level), preserve_unit_loops=True)
        return variant

    def with_read_reuse(self, state: Tiled) -> Iterable[Tiled]:
        """The ways to read through copies: one for each level."""
        req, levels, _ = self.reuse_read or NO_REUSE
        if req == "no":
            return [state]
        states = [(state.copy(), level) for level in levels]
        for each, level in states:
            self.read_at(each, level)
        return [each for each, _ in states]

    def read_at(self, state: Tiled, level: int) -> list[BlockRV]:
        """Read through copies, made in the innermost loop of a level."""
        assert self.reuse_read is not None
        sch, block = state.sch, state.block
        copies = []
        for index, region in inputs_of(place_of(sch, block).block):
            copy = sch.cache_read(block, index, self.reuse_read.scope, [block])
            sch.compute_at(copy, state.last_loop(level), preserve_unit_loops=True)
            sch.fuse(*sch.get_loops(copy)[-len(region.buffer.shape) :])
            self.annotate_fetching(sch, copy, region.buffer.dtype)
            copies.append(copy)
        return copies

    def with_async_copies(self, state: Tiled) -> Iterable[Tiled]:
        """The ways to overlap two copies with what computes with them: not at all and, where the
        target copies asynchronously, each number of tiles ahead. The loop over the outermost tiles
        of the reduction is then a pipeline."""
        tilings = [state]
        if self.tiles_ahead and _is_two_copies_and_a_tile(state, self.structure):
            for ahead in self.tiles_ahead:
                pipelined = state.copy()
                sch = pipelined.sch
                loop = sch.fuse(*pipelined.tiles[self.structure.index("R")])
                sch.annotate(loop, "software_pipeline_stage", [0, 0, ahead])
                sch.annotate(loop, "software_pipeline_order", [0, 1, 2])
                sch.annotate(loop, "software_pipeline_async_stages", [0])
                tilings.append(pipelined)
        return tilings

    def annotate_fetching(self, sch: Schedule, copy: BlockRV, dtype: str) -> None:
        """Have the threads of a block fetch a copy together, some elements at a time."""
        fits = _FETCHED_LENGTHS.get(dtype, lambda lanes: True)
        lengths = [length for length in self.vector_load_lens or () if fits(length)]
        if lengths:
            sch.annotate(copy, COOPERATIVE_FETCH, one_of(sch, lengths))


def intrinsic_of(name: str) -> TensorIntrin:
    """The registered intrinsic of a name."""
    intrinsic = TensorIntrin.get(name)
    assert intrinsic is not None
    return intrinsic


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """Tiles a block whose innermost loops fit an intrinsic, which is to compute them; a block that
    computes something else stays.

    Args:
        intrin_name: the intrinsic, which is registered.
        tiling, options: those of `MultiLevelTiling`, for the loops around the intrinsic's.

    Raises:
        ValueError: there is no such intrinsic.
    """

    def __init__(self, intrin_name: str, *tiling: Any, **options: Any) -> None:
        super().__init__(*tiling, **options)
        self.intrin_name = intrin_name
        self._description = intrinsic_of(intrin_name).described_block

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not computes_alike(place_of(sch, block).block, self._description):
            return [sch]
        own = sch.copy()
        if not self.concerns(own, block):
            return [own]
        own.annotate(block, TILING_STRUCTURE, self.structure)
        loop = tile_with_tensor_intrin(own, block, self.intrin_name)
        if loop is None:
            return [sch]
        tile = own.blockize(loop)
        own.annotate(tile, AUTO_TENSORIZE, self.intrin_name)
        return [state.sch for state in self.tilings(Tiled(own, tile))]


class MultiLevelTilingWideVector(MultiLevelTiling):
    """Tiles so that the innermost loop over the last axis of what is written fills a vector.

    Args:
        structure, max_innermost_factor, reuse_read, reuse_write: as of `MultiLevelTiling`.
        vector_length_in_bits: of a vector register.
    """

    def __init__(
        self,
        structure: str,
        vector_length_in_bits: int,
        max_innermost_factor: int | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        super().__init__(structure, None, max_innermost_factor, None, reuse_read, reuse_write)
        self.vector_length_in_bits = vector_length_in_bits

    def split_loop(
        self, sch: Schedule, block: BlockRV, loop: LoopRV, n: int
    ) -> tuple[tuple[ExprRV | int, ...], list[LoopRV]]:
        place, statement = place_of(sch, block), loop_of(sch, loop)
        (written,) = place.block.writes
        last = place.realize.iter_values[len(written.region) - 1]
        if not Analyzer().can_prove_equal(statement.loop_var, last):
            return super().split_loop(sch, block, loop, n)
        lanes = self.vector_length_in_bits // dtypes.bits(written.buffer.dtype)
        if (extent_of(statement) or 0) > lanes:
            outer, vector = sch.split(loop, [None, lanes])
            factors = self.sample_factors(sch, outer, n - 1)
            return (*factors, lanes), [*sch.split(outer, factors), vector]
        whole = (*[1] * (n - 1), statement.extent)
        return whole, sch.split(loop, whole)


def _iterator_types(sch: Schedule, block: BlockRV) -> list[IterType]:
    return [iter_var.iter_type for iter_var in place_of(sch, block).block.iter_vars]


def _is_two_copies_and_a_tile(state: Tiled, structure: str) -> bool:
    """Whether this is the body of the loop over the outermost tiles of the reduction."""
    tiles = state.tiles[structure.index("R")] if "R" in structure else ()
    loop = state.sch.get(tiles[-1]) if tiles else None
    return isinstance(loop, For) and isinstance(loop.body, SeqStmt) and len(loop.body.seq) == 3


def _is_cache(sch: Schedule, block: BlockRV) -> bool:
    statement = sch.get(block)
    return isinstance(statement, Block) and is_write_cache(statement)
