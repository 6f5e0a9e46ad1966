"""Letting accesses of one buffer go to another: one of which a part may be kept alone, or one that
is the same but for its name, scope or type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.schedule.errors import DataflowError
from mlcweb.tir.arithmetic import is_const_int, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, full_region
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore


def with_new_regions(block: Block, old: Buffer, new: Buffer) -> Block:
    """A block whose declared regions of `old` become what its body accesses of `new`: what it
    reads, or else writes, in place of what it has read, and so for what it writes."""
    reads, writes, _ = block_access_regions(block)

    def changed(
        declared: Sequence[BufferRegion], *accessed: BufferRegion
    ) -> tuple[BufferRegion, ...]:
        here = next(r for r in (*accessed, full_region(new)) if r.buffer is new)
        return tuple(here if region.buffer is old else region for region in declared)

    return replace(
        block,
        reads=changed(block.reads, *reads, *writes),
        writes=changed(block.writes, *writes, *reads),
    )


class Redirection(Mutator):
    """Rewrites accesses of `old` to `new`, whose element 0 is the element `origin` of `old`.

    Without an origin, the indices stay as they are.
    """

    def __init__(self, old: Buffer, new: Buffer, origin: Sequence[PrimExpr] | None) -> None:
        self.old = old
        self.new = new
        self.origin = origin
        self.is_shifted = not all(is_const_int(start, 0) for start in origin or ())
        self.analyzer = Analyzer()
        self.realize: BlockRealize | None = None

    def of(self, realize: BlockRealize) -> BlockRealize:
        """The realize of a block with the accesses inside the block redirected."""
        self.realize = realize
        return replace(realize, block=self.rewrite(realize.block))

    def _moved(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        if self.origin is None:
            return tuple(indices)
        pairs = zip(indices, self.origin, strict=True)
        return tuple(self.analyzer.simplify(subtract(index, start)) for index, start in pairs)

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> Any:
        new = self.rewrite_children(node)
        if node.buffer is not self.old:
            return new
        return replace(new, buffer=self.new, indices=self._moved(new.indices))

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        new = self.rewrite_children(node)
        if node.buffer is not self.old:
            return new
        starts = self._moved([dimension.min for dimension in new.region])
        pairs = zip(starts, new.region, strict=True)
        return replace(
            new, buffer=self.new, region=tuple(Range(start, d.extent) for start, d in pairs)
        )

    @on(MatchBufferRegion)
    def match(self, node: MatchBufferRegion) -> MatchBufferRegion:
        if node.source.buffer is self.old and node.buffer.scope() != self.new.scope():
            self._refuse(
                f'a region of it is matched as buffer "{node.buffer.name}" of scope '
                f'"{node.buffer.scope()}", not "{self.new.scope()}"'
            )
        return self.rewrite_children(node)

    @on(Var)
    def pointer(self, var: Var) -> Var:
        if var is not self.old.data:
            return var
        if self.is_shifted:
            self._refuse("its address is used, but only a part of it is cached")
        return self.new.data

    def _refuse(self, reason: str) -> None:
        raise DataflowError(
            f'The buffer "{self.old.name}" cannot be replaced by "{self.new.name}": {reason}',
            [self.realize] if self.realize else (),
            "cache before tensorize, blockize or match_buffer, or cache the whole buffer",
        )


class BufferReplacement(Mutator):
    """Rewrites accesses of a buffer, and of the buffers that view it, to what `changed` makes of
    each."""

    def __init__(self, buffer: Buffer, changed: Callable[[Buffer], Buffer]) -> None:
        self.changed = changed
        self.buffers = {buffer: changed(buffer)}

    @on(Block)
    def block(self, node: Block) -> Block:
        for match in node.match_buffers:
            if match.source.buffer in self.buffers:
                self.buffers[match.buffer] = self.changed(match.buffer)
        new = self.rewrite_children(node)
        buffers = tuple(self.buffers.get(buffer, buffer) for buffer in new.alloc_buffers)
        return replace(new, alloc_buffers=buffers) if buffers != new.alloc_buffers else new

    @on(MatchBufferRegion)
    def match(self, node: MatchBufferRegion) -> MatchBufferRegion:
        new = self.rewrite_children(node)
        buffer = self.buffers.get(node.buffer)
        return new if buffer is None else replace(new, buffer=buffer)

    @on(BufferLoad, BufferStore, BufferRegion)
    def access(self, node: BufferLoad | BufferStore | BufferRegion) -> Any:
        new = self.rewrite_children(node)
        buffer = self.buffers.get(node.buffer)
        return new if buffer is None else replace(new, buffer=buffer)

    @on(Var)
    def pointer(self, var: Var) -> Var:
        return next((new.data for old, new in self.buffers.items() if old.data is var), var)
