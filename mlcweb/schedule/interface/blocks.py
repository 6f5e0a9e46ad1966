"""Transformations of blocks: where they are computed, through which copies, inlined or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.schedule.compute_locations import SpecialLocation
from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import (
    cache,
    cache_index,
    cache_inplace,
    compute_location,
    copy_at,
    inline,
)
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import BlockIdentity

for _kind in (
    InstructionKind(
        "CacheRead",
        "cache_read",
        ("block", "consumer_blocks"),
        ("read_buffer_index", "storage_scope"),
        optional={"consumer_blocks": []},
        printed_order=("block", "read_buffer_index", "storage_scope", "consumer_blocks"),
    ),
    InstructionKind(
        "CacheWrite",
        "cache_write",
        ("block", "consumer_blocks"),
        ("write_buffer_index", "storage_scope"),
        optional={"consumer_blocks": []},
        printed_order=("block", "write_buffer_index", "storage_scope", "consumer_blocks"),
    ),
    InstructionKind(
        "CacheInplace", "cache_inplace", ("block",), ("read_buffer_index", "storage_scope")
    ),
    InstructionKind("CacheIndex", "cache_index", ("block",), ("storage_scope", "cse_thresh")),
    InstructionKind("ReadAt", "read_at", ("loop", "block"), ("read_buffer_index", "storage_scope")),
    InstructionKind(
        "WriteAt", "write_at", ("loop", "block"), ("write_buffer_index", "storage_scope")
    ),
    InstructionKind("ComputeAt", "compute_at", ("block", "loop"), ("preserve_unit_loops", "index")),
    InstructionKind(
        "ReverseComputeAt",
        "reverse_compute_at",
        ("block", "loop"),
        ("preserve_unit_loops", "index"),
    ),
    InstructionKind("ComputeInline", "compute_inline", ("block",)),
    InstructionKind("ReverseComputeInline", "reverse_compute_inline", ("block",)),
):
    register_kind(_kind)


class BlockMethods(QueryMethods):
    """Transformations of blocks: where they are computed, through which copies, inlined or not."""

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Read a buffer through a copy in another storage scope. See `primitives.cache`."""
        return self._cache(
            "CacheRead", cache.cache_read, block, read_buffer_index, storage_scope, consumer_blocks
        )

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Write a buffer through a copy in another storage scope. See `primitives.cache`."""
        return self._cache(
            "CacheWrite", cache.cache_write, block, write_buffer_index, storage_scope,
            consumer_blocks,
        )  # fmt: skip

    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
    ) -> list[BlockRV]:
        """Update a buffer in a copy in another storage scope; the blocks that copy it there and
        back. See `primitives.cache_inplace`."""
        block = self._as_block(block)
        index = self._region_index("cache-inplace", block, read_buffer_index, "read")
        made = self._apply("cache-inplace", lambda state: cache_inplace.cache_inplace(
            state, self._block(block), index, storage_scope
        ))  # fmt: skip
        rvs = [self._new_block(identity) for identity in made]
        self._record("CacheInplace", (block,), (index, storage_scope), rvs)
        return rvs

    def cache_index(
        self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
    ) -> list[BlockRV]:
        """Compute a block's indices once, in buffers; the blocks that do so. See
        `primitives.cache_index`."""
        block = self._as_block(block)
        made = self._apply("cache-index", lambda state: cache_index.cache_index(
            state, self._block(block), storage_scope, cse_thresh
        ))  # fmt: skip
        rvs = [self._new_block(identity) for identity in made]
        self._record("CacheIndex", (block,), (storage_scope, cse_thresh), rvs)
        return rvs

    def read_at(
        self, loop: LoopRV, block: BlockRV | str, read_buffer_index: int, storage_scope: str
    ) -> BlockRV:
        """Copy what an iteration of a loop reads, in one block. See `primitives.copy_at`."""
        return self._copied_at(
            "ReadAt", copy_at.read_at, loop, block, read_buffer_index, storage_scope
        )

    def write_at(
        self, loop: LoopRV, block: BlockRV | str, write_buffer_index: int, storage_scope: str
    ) -> BlockRV:
        """Copy back what an iteration of a loop writes, in one block. See `primitives.copy_at`."""
        return self._copied_at(
            "WriteAt", copy_at.write_at, loop, block, write_buffer_index, storage_scope
        )

    def compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Move a producer under a loop of its consumers. See `primitives.compute_location`."""
        self._record("ComputeAt", *self._moved(
            "compute-at", compute_location.compute_at, inline.compute_inline,
            block, loop, preserve_unit_loops, index,
        ))  # fmt: skip

    def reverse_compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Move a consumer under a loop of its producers. See `primitives.compute_location`."""
        self._record("ReverseComputeAt", *self._moved(
            "reverse-compute-at", compute_location.reverse_compute_at,
            inline.reverse_compute_inline, block, loop, preserve_unit_loops, index,
        ))  # fmt: skip

    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block's values where they are read. See `primitives.inline`."""
        block = self._as_block(block)
        self._change(
            "compute-inline", lambda state: inline.compute_inline(state, self._block(block))
        )
        self._record("ComputeInline", (block,))

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Move a block's computation into its only producer. See `primitives.inline`."""
        block = self._as_block(block)
        self._change(
            "reverse-compute-inline",
            lambda state: inline.reverse_compute_inline(state, self._block(block)),
        )
        self._record("ReverseComputeInline", (block,))

    def _moved(
        self,
        name: str,
        to_loop: Callable[[ScheduleState, BlockIdentity, Var, bool, int], ScheduleState],
        inlined: Callable[[ScheduleState, BlockIdentity], ScheduleState],
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool,
        index: int,
    ) -> tuple[tuple[BlockRV, LoopRV], tuple[bool, int]]:
        """Move a block to a loop, or to one of the special locations that
        `sample_compute_location` may choose; the inputs and attributes to record."""
        block = self._as_block(block)
        location = self._table.get(loop)

        def move(state: ScheduleState) -> ScheduleState:
            if location is SpecialLocation.ROOT:
                return state
            if location is SpecialLocation.INLINE:
                return inlined(state, self._block(block))
            target = self._loop(loop)
            return to_loop(state, self._block(block), target, bool(preserve_unit_loops), index)

        self._change(name, move)
        return (block, loop), (bool(preserve_unit_loops), index)

    def _copied_at(
        self,
        kind: str,
        primitive: Callable[..., tuple[ScheduleState, BlockIdentity]],
        loop: LoopRV,
        block: BlockRV | str,
        buffer: int | str | Buffer,
        storage_scope: str,
    ) -> BlockRV:
        block = self._as_block(block)
        name, access = ("read-at", "read") if kind == "ReadAt" else ("write-at", "write")
        index = self._region_index(name, block, buffer, access)
        made = self._apply(name, lambda state: primitive(
            state, self._loop(loop), self._block(block), index, storage_scope
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record(kind, (loop, block), (index, storage_scope), (rv,))
        return rv

    def _cache(
        self,
        kind: str,
        primitive: Callable[..., tuple[ScheduleState, BlockIdentity]],
        block: BlockRV | str,
        buffer: int | str | Buffer,
        storage_scope: str,
        consumers: Sequence[BlockRV | str] | None,
    ) -> BlockRV:
        block = self._as_block(block)
        readers = [self._as_block(consumer) for consumer in consumers or ()]
        name = "cache-read" if kind == "CacheRead" else "cache-write"
        access = "read" if kind == "CacheRead" else "write"
        index = self._region_index(name, block, buffer, access)
        made = self._apply(name, lambda state: primitive(
            state, self._block(block), index, storage_scope, [self._block(r) for r in readers]
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record(kind, (block, readers), (index, storage_scope), (rv,))
        return rv
