"""Which regions of which buffers a block reads and writes.

A region is a box: one interval per dimension. Variables of loops inside the block are widened over
their ranges; accesses of one buffer unite to the smallest box that holds them. Blocks inside count
by the regions that they declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.arith.int_set import EVERYTHING, IntSet, eval_range, union
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Visitor, children, find_nodes, on
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, full_region
from mlcweb.tir.intrinsics import READ_ACCESS, WRITE_ACCESS
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import NodeType, substitute, uses_any


class AccessRegions(NamedTuple):
    """What a block touches, each in the order of first appearance. `opaque` are buffers whose
    address is used, so that nothing is known about the access."""

    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    opaque: tuple[BufferRegion, ...]

    @property
    def possible(self) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
        """What may be read, and what may be written: with the opaque buffers among both."""
        whole = {region.buffer for region in self.opaque}
        reads, writes = (
            (*(region for region in part if region.buffer not in whole), *self.opaque)
            for part in (self.reads, self.writes)
        )
        return reads, writes


def block_access_regions(
    block: S.Block, buffers: Mapping[E.Var, Buffer] | None = None
) -> AccessRegions:
    """The regions that `block` reads, writes, and reaches in unknown ways.

    Buffers that the block allocates are left out. What a reduction block with an init writes does
    not count as read. `buffers` are those around the block, by data variable; they are needed to
    notice uses of an address.
    """
    matched = {match.buffer.data: match.buffer for match in block.match_buffers}
    accesses = AccessVisitor({}, {**(buffers or {}), **matched})
    accesses.inside = {buffer.data for buffer in block.alloc_buffers}
    accesses.matches = {match.buffer: match for match in block.match_buffers}
    if block.init is not None:
        accesses.visit(block.init)
    accesses.visit(block.body)
    reads = accesses.reads
    if block.init is not None:
        reads = {buffer: box for buffer, box in reads.items() if buffer not in accesses.writes}
    return AccessRegions(
        *(
            tuple(covering(box, buffer, accesses.analyzer) for buffer, box in boxes.items())
            for boxes in (reads, accesses.writes, accesses.opaque)
        )
    )


def with_access_regions(block: S.Block) -> S.Block:
    """The block declaring what its body accesses, whatever it has declared."""
    regions = block_access_regions(block)
    return replace(block, reads=regions.reads, writes=regions.writes)


Boxes = dict[Buffer, list[IntSet]]
"""The box that was found of each buffer: one interval per dimension."""


class AccessVisitor(Visitor):
    """Finds the boxes of buffers that a statement accesses, over all iterations of its loops and
    of the variables of `domains`. `buffers` are those whose addresses it may use, by data."""

    def __init__(self, domains: Mapping[E.Var, Range], buffers: Mapping[E.Var, Buffer]) -> None:
        self.reads: Boxes = {}
        self.writes: Boxes = {}
        self.opaque: Boxes = {}
        self.analyzer = Analyzer(domains)
        self.domains = dict(domains)
        self.values: dict[E.Var, E.PrimExpr] = {}
        self.conditions: list[E.PrimExpr] = []
        self.buffers = buffers
        self.inside: set[E.Var] = set()
        self.matches: dict[Buffer, MatchBufferRegion] = {}
        # What was accessed since the last loop or branch began; an update reads what it writes.
        self.seen: list[tuple[Boxes, BufferRegion]] = []

    def record(self, boxes: Boxes, region: BufferRegion) -> None:
        """Unite a region with those of the same buffer."""
        match = self.matches.get(region.buffer)
        if match is not None:
            region = in_source(match, region)
        if region.buffer.data in self.inside or self.is_known(boxes, region):
            return
        box = [self.widen(self.resolve(part)) for part in region.region]
        accessed = boxes.get(region.buffer)
        if accessed is not None:
            box = [
                a if same_set(a, b) else union((a, b), self.analyzer)
                for a, b in zip(accessed, box, strict=True)
            ]
        boxes[region.buffer] = box

    def is_known(self, boxes: Boxes, region: BufferRegion) -> bool:
        """Whether a region has been united with these boxes before."""
        for seen_boxes, other in self.seen:
            if seen_boxes is boxes and other.buffer is region.buffer:
                if all(map(same_range, other.region, region.region)):
                    return True
        self.seen.append((boxes, region))
        return False

    def widen(self, part: Range) -> IntSet:
        """The values of a range over all iterations of the loops inside the statement. What a call
        or a float decides may be any, as in TVM, and so may what memory from inside holds."""
        if _is_computed(part.min):
            return EVERYTHING
        moves = self.domains and uses_any(part, self.domains)
        side = eval_range(part, self.domains, self.analyzer) if moves else IntSet.from_range(part)
        if self.inside and any(end is not None and loads_any(end, self.inside) for end in side):
            return EVERYTHING
        return side

    def resolve(self, value: NodeType) -> NodeType:
        """The value in terms of what is known outside the statement."""
        return substitute(value, self.values) if self.values else value

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        domain = Range(self.resolve(loop.min), self.resolve(loop.extent))
        if self.domains.setdefault(loop.loop_var, domain) is domain:
            self.analyzer.bind(loop.loop_var, domain)
        else:
            self.domains[loop.loop_var] = domain
            self.analyzer = Analyzer(self.domains)
        self.seen = []
        self.visit(loop.body)

    @on(S.IfThenElse)
    def visit_branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        seen, self.seen = self.seen, list(self.seen)
        self.conditions.append(self.resolve(branch.condition))
        self.visit(branch.then_case)
        self.conditions.pop()
        # What a condition confines may be accessed without it, too.
        self.seen = seen
        if branch.else_case is not None:
            self.visit(branch.else_case)

    @on(S.LetStmt, E.Let)
    def visit_let(self, let: S.LetStmt | E.Let) -> None:
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
        for axis, value in realize.iterators:
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
        if operator_name(call) != "tvm_access_ptr":
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


def _is_computed(index: E.PrimExpr) -> bool:
    """Whether an index depends on the result of a call or on a float. (One that is loaded from
    memory is what the load gives.)"""
    if type(index) in (E.Var, E.IntImm):
        return False
    pending: list[Node] = [index]
    while pending:
        node = pending.pop()
        if isinstance(node, (E.Call, E.FloatImm)) and operator_name(node) != "vscale":
            return True
        if not isinstance(node, E.BufferLoad):
            pending += children(node)
    return False


def loads_any(value: Node, memory: Set[E.Var]) -> bool:
    """Whether a value is read from some memory, which is known by its data."""
    return any(load.buffer.data in memory for load in find_nodes(value, E.BufferLoad))


def element_region(buffer: Buffer, indices: Iterable[E.PrimExpr]) -> BufferRegion:
    """The region of one element; of a vector, the smallest region that is known to hold it."""
    ranges = []
    for index, extent in zip(indices, buffer.shape, strict=False):
        if dtypes.lane_count(index.dtype) == 1:
            ranges.append(Range(index, arithmetic.const(1, index.dtype)))
        elif (
            isinstance(index, E.Ramp)
            and isinstance(index.stride, E.IntImm)
            and isinstance(index.lanes, int)
        ):
            reach = index.stride.value * (index.lanes - 1)
            first = index.base if reach >= 0 else index.base + reach
            ranges.append(Range(first, arithmetic.const(abs(reach) + 1, first.dtype)))
        else:
            ranges.append(Range(arithmetic.const(0, extent.dtype), extent))
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


def same_set(a: IntSet, b: IntSet) -> bool:
    """Whether the ends of two sets are written alike."""
    return all(
        one is other or (one is not None and other is not None and same_expression(one, other))
        for one, other in zip(a, b, strict=True)
    )


def same_range(a: Range, b: Range) -> bool:
    """Whether two ranges are written alike."""
    return same_expression(a.min, b.min) and same_expression(a.extent, b.extent)
