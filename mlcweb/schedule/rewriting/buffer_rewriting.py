"""Letting accesses of one buffer go to another: one that holds a part of it, one of another layout,
or one that is the same but for its name, scope or type; and simplifying indices in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.arith import Analyzer, conjunction
from mlcweb.arith.index_map import IndexMap
from mlcweb.arith.iter_map import iter_map_simplify
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on, rewrite_nodes
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.state import domains_of
from mlcweb.tir.arithmetic import is_const_int, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, full_region
from mlcweb.tir.dtype import lanes
from mlcweb.tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, Stmt
from mlcweb.tir.substitute import BufferMutator, NodeType


def with_accesses(
    node: NodeType, old: Buffer, new: Buffer, indices: Sequence[PrimExpr]
) -> NodeType:
    """A part of a program in which all accesses of `old` are of one element of `new`. What blocks
    declare stays."""

    def moved(access: Any) -> Any:
        return replace(access, buffer=new, indices=tuple(indices))

    return rewrite_nodes(
        node, (BufferLoad, BufferStore), lambda a: moved(a) if a.buffer is old else a
    )


def with_new_regions(block: Block, buffers: Mapping[Buffer, Buffer]) -> Block:
    """A block whose declared regions of some buffers become what its body accesses of those in
    their place: what it reads, or else writes, where it has read, and so for what it writes."""
    reads, writes, _ = block_access_regions(block)

    def changed(
        declared: Sequence[BufferRegion], *accessed: BufferRegion
    ) -> tuple[BufferRegion, ...]:
        def of(new: Buffer) -> BufferRegion:
            return next(r for r in (*accessed, full_region(new)) if r.buffer is new)

        return tuple(
            of(buffers[region.buffer]) if region.buffer in buffers else region
            for region in declared
        )

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
        return tuple(
            # Subtracting 0 could widen the index.
            self.analyzer.simplify(index if is_const_int(start, 0) else subtract(index, start))
            for index, start in zip(indices, self.origin, strict=True)
        )

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


class BufferReplacement(BufferMutator):
    """Rewrites accesses of a buffer, and of the buffers that view it, to what `change` makes of
    each."""

    def __init__(self, buffer: Buffer, change: Callable[[Buffer], Buffer]) -> None:
        self.change = change
        self.buffers = {buffer: change(buffer)}

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.buffers.get(buffer, buffer)

    @on(Block)
    def block(self, block: Block) -> Block:
        for match in block.match_buffers:
            if match.source.buffer in self.buffers:
                self.buffers[match.buffer] = self.change(match.buffer)
        return super().block(block)

    @on(Var)
    def pointer(self, var: Var) -> Var:
        return next((new.data for old, new in self.buffers.items() if old.data is var), var)


class IndexMutator(Mutator):
    """A mutator that knows the domains and conditions around the place where it is."""

    def __init__(self) -> None:
        self.domains: dict[Var, Range] = {}
        self.conditions: tuple[PrimExpr, ...] = ()
        self.analyzer = Analyzer()

    def enter(self, node: For | Block) -> None:
        """Take in the variables that a loop or block defines. Those of one iteration stay in the
        texts."""
        for var, domain in domains_of(node).items():
            self.domains[var] = domain
            if not is_const_int(domain.extent, 1):
                self.analyzer.bind(var, domain)

    def simple(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Indices in the normal form of their iterator map. An iterator of one iteration stays."""
        predicate = conjunction(self.conditions)
        simplified = iter_map_simplify(indices, self.domains, predicate, analyzer=self.analyzer)
        return tuple(
            old if isinstance(new, IntImm) and isinstance(old, Var) else new
            for old, new in zip(indices, simplified, strict=True)
        )

    @contextmanager
    def where(self, condition: PrimExpr) -> Iterator[None]:
        """While active, `condition` holds."""
        before = self.conditions
        self.conditions = (*before, condition)
        with self.analyzer.constraint(condition):
            yield
        self.conditions = before

    @on(For)
    def loop(self, node: For) -> For:
        self.enter(node)
        return self.rewrite_children(node)

    @on(IfThenElse)
    def branch(self, node: IfThenElse) -> IfThenElse:
        with self.where(node.condition):
            then_case = self.rewrite(node.then_case)
        else_case = None if node.else_case is None else self.rewrite(node.else_case)
        condition = self.rewrite(node.condition)
        return replace(node, condition=condition, then_case=then_case, else_case=else_case)

    @on(Call)
    def call(self, node: Call) -> Call:
        if operator_name(node) != "if_then_else":
            return self.rewrite_children(node)
        condition, value, other = node.args
        with self.where(condition):
            value = self.rewrite(value)
        return replace(node, args=(self.rewrite(condition), value, self.rewrite(other)))


class AccessSimplifier(IndexMutator):
    """Simplifies the indices of accesses and the regions of blocks."""

    @on(Block)
    def inside(self, node: Block) -> Block:
        self.enter(node)
        return self.rewrite_children(node)

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> Any:
        new = self.rewrite_children(node)
        return replace(new, indices=self.simple(new.indices))

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        starts = self.simple([dimension.min for dimension in node.region])
        extents = [self.analyzer.simplify(dimension.extent) for dimension in node.region]
        return replace(node, region=tuple(map(Range, starts, extents)))


class LayoutRewriter(IndexMutator):
    """Rewrites accesses of `old` to `new` with the indices that a map gives.

    The regions of blocks that access the buffer are found anew.
    """

    def __init__(self, old: Buffer, new: Buffer, index_map: IndexMap) -> None:
        super().__init__()
        self.old = old
        self.new = new
        self.index_map = index_map
        self.block: Stmt | None = None

    @on(Block)
    def inside(self, node: Block) -> Block:
        outside, self.block = self.block, node
        self.enter(node)
        new = self.rewrite_children(node)
        self.block = outside
        if self.old in node.alloc_buffers:
            buffers = tuple(self.new if b is self.old else b for b in new.alloc_buffers)
            new = replace(new, alloc_buffers=buffers)
        if not any(r.buffer is self.old for r in (*node.reads, *node.writes)):
            return new
        return with_new_regions(new, {self.old: self.new})

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        # Regions of other buffers may have elements of the buffer as indices.
        return node if node.buffer is self.old else self.rewrite_children(node)

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> Any:
        new = self.rewrite_children(node)
        if node.buffer is not self.old:
            return new
        if any(lanes(index.dtype) > 1 for index in new.indices):
            self._refuse("it is accessed by vectors, whose elements the new layout takes apart")
        indices = self.simple(self.index_map.map_indices(new.indices, self.analyzer))
        return replace(new, buffer=self.new, indices=indices)

    @on(MatchBufferRegion)
    def match(self, node: MatchBufferRegion) -> MatchBufferRegion:
        if node.source.buffer is self.old:
            self._refuse(f'a region of it is viewed as buffer "{node.buffer.name}"')
        return node

    @on(Var)
    def pointer(self, var: Var) -> Var:
        if var is self.old.data:
            self._refuse("its address is used, and what happens there is unknown")
        return var

    def _refuse(self, reason: str) -> None:
        raise DataflowError(
            f'The layout of "{self.old.name}" cannot be transformed: {reason}',
            [self.block] if self.block is not None else (),
            "transform it before tensorize, blockize or match_buffer",
        )
