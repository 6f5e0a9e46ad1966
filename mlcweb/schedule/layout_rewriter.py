"""Rewriting the accesses of a buffer to another layout, and simplifying indices in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.arith import Analyzer, iter_map_simplify
from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Mutator, on
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.redirect import with_new_regions
from mlcweb.schedule.regions import domains_of
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from mlcweb.tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import Block, BufferStore, For, IfThenElse, Stmt


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
        predicate: PrimExpr = const(True)
        for condition in self.conditions:
            predicate = logical_and(predicate, condition)
        found = iter_map_simplify(indices, self.domains, predicate, analyzer=self.analyzer)
        return tuple(
            old if isinstance(new, IntImm) and isinstance(old, Var) else new
            for old, new in zip(indices, found, strict=True)
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
        if not (isinstance(node.op, Op) and node.op.name == "tir.if_then_else"):
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
        return with_new_regions(new, self.old, self.new)

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        # Regions of other buffers may have elements of the buffer as indices.
        return node if node.buffer is self.old else self.rewrite_children(node)

    @on(BufferLoad, BufferStore)
    def access(self, node: BufferLoad | BufferStore) -> Any:
        new = self.rewrite_children(node)
        if node.buffer is not self.old:
            return new
        return replace(new, buffer=self.new, indices=self._indices(new.indices))

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

    def _indices(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return self.simple(self.index_map.map_indices(indices, self.analyzer))

    def _refuse(self, reason: str) -> None:
        raise DataflowError(
            f'The layout of "{self.old.name}" cannot be transformed: {reason}',
            [self.block] if self.block is not None else (),
            "transform it before tensorize, blockize or match_buffer",
        )
