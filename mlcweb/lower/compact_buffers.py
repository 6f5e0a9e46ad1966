"""The pass that shrinks allocated buffers to the part that is really touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from mlcweb.analysis.access_regions import AccessVisitor, Boxes
from mlcweb.analysis.threads import is_shared, thread_tag
from mlcweb.arith import Analyzer, IntSet, bounding_box, conjunction, conjuncts, intersect
from mlcweb.arith.known import without_hint
from mlcweb.arith.rules_comparison import negation
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, constant_value, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import reads_memory, variables_in

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


def compact_beyond_shapes(func: PrimFunc) -> PrimFunc:
    """The same where accesses may leave the shapes of buffers, which then are too small."""
    return func.with_body(_Compaction(strict=False).rewrite(func.body))


def compact_shared_buffers(func: PrimFunc) -> PrimFunc:
    """The same for buffers that threads share, while these stand where they are used."""
    return func.with_body(_Compaction(is_shared).rewrite(func.body))


class _Compaction(Mutator):
    """`strict` says that no access leaves the shape of its buffer."""

    def __init__(
        self, suits: Callable[[Buffer], bool] = lambda buffer: True, strict: bool = True
    ) -> None:
        self.suits = suits
        self.strict = strict
        self.outer: dict[E.Var, Range] = {}
        self.threads: list[S.For] = []
        self.moved: dict[Buffer, tuple[Buffer, list[E.PrimExpr]]] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.outer[loop.loop_var] = loop.domain
        around, self.threads = self.threads, [*self.threads, *([loop] if thread_tag(loop) else ())]
        new = self.rewrite_children(loop)
        del self.outer[loop.loop_var]
        self.threads = around
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
        shares = "threadIdx.x" if buffer.scope() == "warp" else ""
        threads = {
            loop.loop_var: loop.domain
            for loop in self.threads
            if is_shared(buffer) and thread_tag(loop).startswith(shares)
        }
        outer = {var: domain for var, domain in self.outer.items() if var not in threads}
        box = None
        if self.suits(buffer):
            box = _touched(buffer, parts, outer, threads, self.strict)
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
    strict: bool,
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
        least, sizes = constant_value(extent), [_size(touched, analyzer)]
        if least is not None and strict:
            whole = IntSet.from_min_extent(const(0, extent.dtype), extent)
            touched = intersect(touched, whole, analyzer)
            sizes.append(_size(touched, analyzer))
        low, size = touched.min_value, min(sizes)
        if low is None or touched.max_value is None:
            return None
        limit = MOST if least is None or not strict else least
        if 0 < size < limit:
            result.append((low, int(size)))
            smaller = smaller or least is None or size != least
        elif least is not None:
            result.append((const(0, extent.dtype), int(least)))
        else:
            return None
    return result if smaller else None


def _size(touched: IntSet, analyzer: Analyzer) -> float:
    """How many elements there are at most from the first to the last of a set."""
    low, high = touched
    if low is None or high is None:
        return inf
    return analyzer.const_int_bound(analyzer.simplify(subtract(high, low))).max_value + 1


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
        """What is in a block decides, not what it declares; a view of the buffer reaches the region
        that it is of, and all where it says how that is laid out."""
        block = realize.block
        self.values.update((axis.var, self.resolve(value)) for axis, value in realize.iterators)
        for match in block.match_buffers:
            view, source = match.buffer, match.source
            if source.buffer is self.buffer and all(isinstance(s, E.Var) for s in view.strides):
                self.record(self.touched, source)
            elif source.buffer.data is self.buffer.data:
                self.opaque[self.buffer] = []
        for part in (block.init, block.body):
            if part is not None:
                self.under(realize.predicate, part)

    def under(self, condition: E.PrimExpr, part: Node) -> None:
        """Visit what is only computed where a condition holds."""
        outer, seen = self.conditions, self.seen
        holds = [without_hint(each) for each in conjuncts(self.resolve(condition))]
        self.conditions, self.seen = [*outer, *holds], list(seen) if holds else seen
        self.visit(part)
        self.conditions, self.seen = outer, seen

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        self.under(branch.condition, branch.then_case)
        if branch.else_case is not None:
            self.under(negation(branch.condition), branch.else_case)

    @on(E.Call)
    def call(self, call: E.Call) -> None:
        if operator_name(call) != "if_then_else":
            super().visit_call(call)
            return
        condition, then_value, else_value = call.args
        self.visit(condition)
        self.under(condition, then_value)
        self.under(negation(condition), else_value)

    def widen(self, part: Range) -> IntSet:
        """The values of a range where the conditions around it hold."""
        if self.conditions and not self.plain:
            [ends] = bounding_box([part], self.domains, conjunction(self.conditions), self.analyzer)
            own = variables_in(part.min) & self.domains.keys()
            about_it = [each for each in self.conditions if variables_in(each) <= own]
            if len(about_it) < len(self.conditions):
                # What is about other variables can hide what these say.
                alone = bounding_box([part], self.domains, conjunction(about_it), self.analyzer)
                ends = min(ends, *alone, key=lambda ends: _size(ends, self.analyzer))
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
