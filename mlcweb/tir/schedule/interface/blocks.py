"""Transformations of blocks: where they are computed, through which copies, inlined or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.tir.buffer import Buffer
from mlcweb.tir.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.tir.schedule.interface.queries import QueryMethods
from mlcweb.tir.schedule.primitives import (
    cache,
    compute_location,
    inline,
)
from mlcweb.tir.schedule.state import ScheduleState
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

    def compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Move a producer under a loop of its consumers. See `primitives.compute_location`."""
        block = self._as_block(block)
        self._change("compute-at", lambda state: compute_location.compute_at(
            state, self._block(block), self._loop(loop), bool(preserve_unit_loops), index
        ))  # fmt: skip
        self._record("ComputeAt", (block, loop), (bool(preserve_unit_loops), index))

    def reverse_compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Move a consumer under a loop of its producers. See `primitives.compute_location`."""
        block = self._as_block(block)
        self._change("reverse-compute-at", lambda state: compute_location.reverse_compute_at(
            state, self._block(block), self._loop(loop), bool(preserve_unit_loops), index
        ))  # fmt: skip
        self._record("ReverseComputeAt", (block, loop), (bool(preserve_unit_loops), index))

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
