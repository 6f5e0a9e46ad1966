"""Which regions of which buffers a block reads and writes.

A region is a box: one interval per dimension. Variables of loops inside the block are widened over
their ranges; accesses of one buffer unite to the smallest box that holds them. Blocks inside count
by the regions that they declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.int_set import IntSet, eval_range, union
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Visitor, on
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, full_region
from mlcweb.tir.substitute import substitute, uses_any

READ_ACCESS, WRITE_ACCESS = 1, 2
"""Bits of the mask of `tvm_access_ptr`."""


class AccessRegions(NamedTuple):
    """What a block touches, each in the order of first appearance. `opaque` are buffers whose
    address is used, so that nothing is known about the access."""

    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    opaque: tuple[BufferRegion, ...]


def block_access_regions(
    block: S.Block, buffers: Mapping[E.Var, Buffer] | None = None
) -> AccessRegions:
    """The regions that `block` reads, writes, and reaches in unknown ways.

    Buffers that the block allocates are left out. What a reduction block with an init writes does
    not count as read. `buffers` are those around the block, by data variable; they are needed to
    notice uses of an address.
    """
    collector = _Collector(block, buffers or {})
    if block.init is not None:
        collector.visit(block.init)
    collector.visit(block.body)
    reads = collector.reads
    if block.init is not None:
        reads = {buffer: box for buffer, box in reads.items() if buffer not in collector.writes}
    return AccessRegions(
        collector.regions(reads),
        collector.regions(collector.writes),
        collector.regions(collector.opaque),
    )


def with_access_regions(block: S.Block) -> S.Block:
    """The block declaring what its body accesses, whatever it has declared."""
    regions = block_access_regions(block)
    return replace(block, reads=regions.reads, writes=regions.writes)


Boxes = dict[Buffer, list[IntSet]]
"""The box that was found of each buffer: one interval per dimension."""


class _Collector(Visitor):
    def __init__(self, block: S.Block, buffers: Mapping[E.Var, Buffer]) -> None:
        self.reads: Boxes = {}
        self.writes: Boxes = {}
        self.opaque: Boxes = {}
        self.analyzer = Analyzer()
        self.domains: dict[E.Var, Range] = {}
        self.values: dict[E.Var, E.PrimExpr] = {}
        self.inside = {buffer.data for buffer in block.alloc_buffers}
        self.matches = {match.buffer: match for match in block.match_buffers}
        self.buffers = {**buffers, **{buffer.data: buffer for buffer in self.matches}}

    def record(self, boxes: Boxes, region: BufferRegion) -> None:
        """Unite a region with those of the same buffer."""
        match = self.matches.get(region.buffer)
        if match is not None:
            region = in_source(match, region)
        if region.buffer.data in self.inside:
            return
        box = [self.widen(part) for part in region.region]
        accessed = boxes.get(region.buffer)
        if accessed is not None:
            box = [self.unite(a, b) for a, b in zip(accessed, box, strict=True)]
        boxes[region.buffer] = box

    def widen(self, part: Range) -> IntSet:
        """The values of a range over all iterations of the loops inside the block."""
        part = Range(self.resolve(part.min), self.resolve(part.extent))
        if self.domains and uses_any(part, self.domains):
            return eval_range(part, self.domains, self.analyzer)
        return IntSet.from_range(part)

    def unite(self, a: IntSet, b: IntSet) -> IntSet:
        return a if _same_set(a, b) else union((a, b), self.analyzer)

    def resolve(self, value: E.PrimExpr) -> E.PrimExpr:
        """The value in terms of what is known outside the block."""
        return substitute(value, self.values) if self.values else value

    def regions(self, boxes: Boxes) -> tuple[BufferRegion, ...]:
        return tuple(covering(box, buffer, self.analyzer) for buffer, box in boxes.items())

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.domains[loop.loop_var] = Range(self.resolve(loop.min), self.resolve(loop.extent))
        self.visit(loop.body)

    @on(S.LetStmt)
    def visit_let(self, let: S.LetStmt) -> None:
        self.visit(let.value)
        self.values[let.var] = self.resolve(let.value)
        self.visit(let.body)

    @on(S.AllocBuffer, S.DeclBuffer)
    def visit_allocation(self, allocation: S.AllocBuffer | S.DeclBuffer) -> None:
        self.inside.add(allocation.buffer.data)
        self.visit(allocation.body)

    @on(S.BlockRealize)
    def visit_block(self, realize: S.BlockRealize) -> None:
        block = realize.block
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.values[axis.var] = self.resolve(value)
        for region in block.reads:
            self.record(self.reads, region)
        for region in block.writes:
            self.record(self.writes, region)

    @on(S.BufferStore)
    def visit_store(self, store: S.BufferStore) -> None:
        self.record(self.writes, element_region(store.buffer, store.indices))
        self.visit_children(store)

    @on(E.BufferLoad)
    def visit_load(self, load: E.BufferLoad) -> None:
        self.record(self.reads, element_region(load.buffer, load.indices))
        self.visit_children(load)

    @on(E.Var)
    def visit_var(self, var: E.Var) -> None:
        buffer = self.buffers.get(var)
        if buffer is not None:
            self.record(self.opaque, full_region(buffer))

    @on(E.Call)
    def visit_call(self, call: E.Call) -> None:
        if not (isinstance(call.op, Op) and call.op.name == "tir.tvm_access_ptr"):
            self.visit_children(call)
            return
        _, data, offset, extent, mask = call.args
        self.visit(offset)
        self.visit(extent)
        buffer = self.buffers.get(data) if isinstance(data, E.Var) else None
        if buffer is None or not isinstance(mask, E.IntImm):
            self.visit(data)
            return
        if mask.value & READ_ACCESS:
            self.record(self.reads, full_region(buffer))
        if mask.value & WRITE_ACCESS:
            self.record(self.writes, full_region(buffer))


def element_region(buffer: Buffer, indices: Iterable[E.PrimExpr]) -> BufferRegion:
    """The region of one element; of a vector, the smallest region that holds it."""
    ranges = []
    for index in indices:
        if isinstance(index, E.Ramp):
            ranges.append(Range(index.base, index.stride * (index.lanes - 1) + 1))
        else:
            ranges.append(Range(index, arithmetic.const(1, index.dtype)))
    return BufferRegion(buffer, tuple(ranges))


def covering(box: Iterable[IntSet], buffer: Buffer, analyzer: Analyzer) -> BufferRegion:
    """A box of a buffer as a region; it is the whole buffer where an end is infinite."""
    whole = full_region(buffer).region
    sides = (side.cover_range(limit, analyzer) for side, limit in zip(box, whole, strict=True))
    return BufferRegion(buffer, tuple(sides))


def in_source(match: MatchBufferRegion, region: BufferRegion) -> BufferRegion:
    """A region of a matched buffer as a region of the buffer that it views."""
    source = match.source.region
    leading = len(source) - len(region.region)
    ranges = [
        Range(outer.min + part.min, part.extent)
        for outer, part in zip(source[leading:], region.region, strict=True)
    ]
    return BufferRegion(match.source.buffer, (*source[:leading], *ranges))


def _same_set(a: IntSet, b: IntSet) -> bool:
    return _same_end(a.min_value, b.min_value) and _same_end(a.max_value, b.max_value)


def _same_end(a: E.PrimExpr | None, b: E.PrimExpr | None) -> bool:
    return a is b or (a is not None and b is not None and same_expression(a, b))
