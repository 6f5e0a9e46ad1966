"""The pass that shrinks allocated buffers to the part that is really touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from mlcweb.analysis.access_regions import AccessVisitor, Boxes
from mlcweb.analysis.threads import is_shared, thread_tag
from mlcweb.arith import Analyzer, IntSet, bounding_box, conjunction, intersect
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, constant_value, is_const_int, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory

MOST = 1 << 20
"""A bound of what is touched of a symbolic extent that is no less tells of its integers alone."""


@lowering_pass("CompactBufferAllocation")
def compact_buffers(func: PrimFunc) -> PrimFunc:
    """Give each allocation the least constant shape that holds its accesses.

    Indices move down by the least index touched, which may depend on the loops around the
    allocation. All threads around it see one buffer that is shared, so that it holds what any of
    them touches. Buffers with strides, or whose address is used, stay as they are.
    """
    return func.with_body(_Compaction().rewrite(func.body))


def compact_shared_buffers(func: PrimFunc) -> PrimFunc:
    """The same for buffers that threads share, while these stand where they are used."""
    return func.with_body(_Compaction(is_shared).rewrite(func.body))


class _Compaction(Mutator):
    def __init__(self, suits: Callable[[Buffer], bool] = lambda buffer: True) -> None:
        self.suits = suits
        self.outer: dict[E.Var, Range] = {}
        self.threads: dict[E.Var, Range] = {}
        self.moved: dict[Buffer, tuple[Buffer, list[E.PrimExpr]]] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.outer[loop.loop_var] = domain = loop.domain
        if thread_tag(loop):
            self.threads[loop.loop_var] = domain
        new = self.rewrite_children(loop)
        del self.outer[loop.loop_var]
        self.threads.pop(loop.loop_var, None)
        return new

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        small = self.compacted(statement.buffer, (statement.body,))
        return replace(statement, buffer=small, body=self.rewrite(statement.body))

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        parts = [part for part in (block.init, block.body) if part is not None]
        buffers = tuple([self.compacted(buffer, parts) for buffer in block.alloc_buffers])
        return replace(self.rewrite_children(block), alloc_buffers=buffers)

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer not in self.moved:
            return self.rewrite_children(region)
        small, lows = self.moved[region.buffer]
        sides = zip(map(self.rewrite, region.region), lows, strict=True)
        return BufferRegion(
            small, tuple(Range(subtract(side.min, low), side.extent) for side, low in sides)
        )

    def compacted(self, buffer: Buffer, parts: Sequence[S.Stmt]) -> Buffer:
        """A buffer that is allocated around some statements, as small as they allow."""
        threads = self.threads if is_shared(buffer) else {}
        outer = {var: domain for var, domain in self.outer.items() if var not in threads}
        box = _touched(buffer, parts, outer, threads) if self.suits(buffer) else None
        if box is None:
            return buffer
        types = (extent.dtype for extent in buffer.shape)
        sizes = (const(size, dtype) for (_, size), dtype in zip(box, types, strict=True))
        small = replace(buffer, shape=tuple(sizes))
        self.moved[buffer] = small, [low for low, _ in box]
        return small

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        if node.buffer not in self.moved:
            return new
        small, lows = self.moved[node.buffer]
        indices = tuple(_lowered(i, low) for i, low in zip(new.indices, lows, strict=True))
        return replace(new, buffer=small, indices=indices)


def _lowered(index: E.PrimExpr, low: E.PrimExpr) -> E.PrimExpr:
    if isinstance(index, E.Ramp):
        return replace(index, base=subtract(index.base, low))
    return subtract(index, low)


def _touched(
    buffer: Buffer,
    parts: Sequence[S.Stmt],
    outer: Mapping[E.Var, Range],
    threads: Mapping[E.Var, Range],
) -> list[tuple[E.PrimExpr, int]] | None:
    """Least index and extent of each dimension; None where nothing can be saved."""
    search = _Search(buffer, threads)
    for part in parts:
        search.visit(part)
    if search.opaque or not search.touched or buffer.strides:
        return None
    analyzer = Analyzer(outer)
    result: list[tuple[E.PrimExpr, int]] = []
    smaller = False
    for touched, extent in zip(search.touched[buffer], buffer.shape, strict=True):
        least = constant_value(extent)
        if least is not None:
            whole = IntSet.from_min_extent(const(0, extent.dtype), extent)
            touched = intersect(touched, whole, analyzer)
        low, high = touched
        if low is None or high is None:
            return None
        size = analyzer.const_int_bound(analyzer.simplify(subtract(high, low))).max_value + 1
        if 0 < size < (MOST if least is None else least):
            result.append((low, int(size)))
            smaller = True
        elif least is not None:
            result.append((const(0, extent.dtype), int(least)))
        else:
            return None
    return result if smaller else None


class _Search(AccessVisitor):
    """Finds the box of a buffer that a statement touches, in terms of the loops around it, but for
    those over the threads that share it."""

    def __init__(self, buffer: Buffer, threads: Mapping[E.Var, Range]) -> None:
        super().__init__(threads, {buffer.data: buffer})
        self.buffer = buffer
        # Under conditions about a symbolic extent boxes would be compared by it, and not alike.
        self.plain = any(constant_value(extent) is None for extent in buffer.shape)
        self.touched: Boxes = {}

    def record(self, boxes: Boxes, region: BufferRegion) -> None:
        if region.buffer is self.buffer:
            super().record(self.opaque if boxes is self.opaque else self.touched, region)
        elif region.buffer.data is self.buffer.data:
            self.opaque[self.buffer] = []

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> None:
        """What is in a block decides, not what it declares; a view of the buffer may reach all."""
        block = realize.block
        self.values.update((axis.var, self.resolve(value)) for axis, value in realize.iterators)
        if any(match.source.buffer.data is self.buffer.data for match in block.match_buffers):
            self.opaque[self.buffer] = []
        outer, predicate = self.conditions, self.resolve(realize.predicate)
        if not is_const_int(predicate, 1):
            self.conditions = [*outer, predicate]
        for part in (block.init, block.body):
            if part is not None:
                self.visit(part)
        self.conditions = outer

    def widen(self, part: Range) -> IntSet:
        """The values of a range where the conditions around it hold."""
        if self.conditions and not self.plain:
            holds = conjunction(self.conditions)
            [ends] = bounding_box([part], self.domains, holds, self.analyzer)
        else:
            ends = super().widen(part)
        if not any(end is not None and reads_memory(end) for end in ends):
            return ends
        # A store may change what the ends read before the next access.
        low, _ = self.analyzer.const_int_bound(part.min)
        _, high = self.analyzer.const_int_bound(part.min + part.extent - 1)
        if low == -inf or high == inf:
            return IntSet(None, None)
        return IntSet(const(int(low), part.min.dtype), const(int(high), part.min.dtype))
