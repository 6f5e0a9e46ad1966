"""The pass that shrinks allocated buffers to the part that is really touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import inf

from mlcweb.analysis.threads import is_shared, thread_tag
from mlcweb.arith import (
    Analyzer,
    IntSet,
    estimate_region_upper_bound,
    eval_set,
    intersect,
    same_expression,
    union,
)
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, Visitor, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, logical_and, multiply, subtract
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory


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
        self.outer[loop.loop_var] = domain = Range(loop.min, loop.extent)
        if thread_tag(loop):
            self.threads[loop.loop_var] = domain
        new = self.rewrite_children(loop)
        del self.outer[loop.loop_var]
        self.threads.pop(loop.loop_var, None)
        return new

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        buffer = statement.buffer
        threads = self.threads if is_shared(buffer) else {}
        outer = {var: domain for var, domain in self.outer.items() if var not in threads}
        box = _touched(statement, outer, threads) if self.suits(buffer) else None
        if box is None:
            return self.rewrite_children(statement)
        types = (extent.dtype for extent in buffer.shape)
        sizes = (const(size, dtype) for (_, size), dtype in zip(box, types, strict=True))
        small = replace(buffer, shape=tuple(sizes))
        self.moved[buffer] = small, [low for low, _ in box]
        return replace(statement, buffer=small, body=self.rewrite(statement.body))

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
    statement: S.AllocBuffer, outer: Mapping[E.Var, Range], threads: Mapping[E.Var, Range]
) -> list[tuple[E.PrimExpr, int]] | None:
    """Least index and extent of each dimension; None where nothing can be saved."""
    buffer = statement.buffer
    search = _Search(buffer, threads)
    search.visit(statement.body)
    if search.opaque or search.box is None or buffer.strides:
        return None
    analyzer = Analyzer(outer)
    result: list[tuple[E.PrimExpr, int]] = []
    smaller = False
    for touched, extent in zip(search.box, buffer.shape, strict=True):
        if not isinstance(extent, E.IntImm):
            return None
        whole = IntSet.from_min_extent(const(0, extent.dtype), extent)
        low, high = intersect(touched, whole, analyzer)
        assert low is not None
        assert high is not None
        size = analyzer.const_int_bound(analyzer.simplify(subtract(high, low))).max_value + 1
        if 0 < size < extent.value:
            result.append((low, int(size)))
            smaller = True
        else:
            result.append((const(0, extent.dtype), extent.value))
    return result if smaller else None


class _Search(Visitor):
    """Finds the box of a buffer that a statement touches, in terms of the loops around it, but for
    those over the threads that share it."""

    def __init__(self, buffer: Buffer, threads: Mapping[E.Var, Range]) -> None:
        self.buffer = buffer
        self.box: list[IntSet] | None = None
        self.opaque = False
        self.inner: dict[E.Var, Range] = dict(threads)
        self.analyzer = Analyzer(threads)
        self.conditions: list[E.PrimExpr] = []
        # Where it was touched since the last loop began; an update reads what it writes.
        self.seen: list[tuple[E.PrimExpr, ...]] = []

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        self.seen = []
        again = loop.loop_var in self.inner
        self.inner[loop.loop_var] = domain = Range(loop.min, loop.extent)
        if again:
            self.analyzer = Analyzer(self.inner)
        else:
            self.analyzer.bind(loop.loop_var, domain)
        self.visit_children(loop)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        seen, self.seen = self.seen, list(self.seen)
        self.conditions.append(branch.condition)
        self.visit(branch.then_case)
        self.conditions.pop()
        # What a condition confines may be touched without it, too.
        self.seen = seen
        if branch.else_case is not None:
            self.visit(branch.else_case)

    @on(S.LetStmt, E.Let)
    def let(self, let: S.LetStmt | E.Let) -> None:
        # Indices may use the variable, whose values are not followed.
        self.opaque = self.opaque or dtypes.is_integer(let.var.dtype)
        self.visit_children(let)

    @on(E.Var)
    def variable(self, var: E.Var) -> None:
        self.opaque = self.opaque or var is self.buffer.data

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> None:
        self.visit_children(node)
        if node.buffer.data is not self.buffer.data:
            return
        if node.buffer is not self.buffer:
            self.opaque = True
            return
        if any(all(map(same_expression, node.indices, known)) for known in self.seen):
            return
        self.seen.append(node.indices)
        sides = [self.side(index) for index in node.indices]
        if self.box is not None:
            sides = [union(pair, self.analyzer) for pair in zip(self.box, sides, strict=True)]
        self.box = sides

    def side(self, index: E.PrimExpr) -> IntSet:
        first = index.base if isinstance(index, E.Ramp) else index
        ends = self.values_of(first)
        if not isinstance(index, E.Ramp):
            return ends if dtypes.lanes(index.dtype) == 1 else IntSet(None, None)
        last = add(first, multiply(index.stride, index.lanes - 1))
        return union([ends, self.values_of(last)], self.analyzer)

    def values_of(self, index: E.PrimExpr) -> IntSet:
        if self.conditions:
            predicate = reduce(logical_and, self.conditions)
            one = Range(index, const(1, index.dtype))
            [ends] = estimate_region_upper_bound([one], self.inner, predicate, self.analyzer)
        else:
            ends = eval_set(index, self.inner, self.analyzer)
        if not any(end is not None and reads_memory(end) for end in ends):
            return ends
        # A store may change what the ends read before the next access.
        low, high = self.analyzer.const_int_bound(index)
        if low == -inf or high == inf:
            return IntSet(None, None)
        return IntSet(const(int(low), index.dtype), const(int(high), index.dtype))
