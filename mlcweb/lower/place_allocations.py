"""The pass that moves allocations down to the smallest statement that holds all accesses.

An allocation may enter a loop only if no iteration sees what an earlier one wrote: every read in
the loop's body has to be covered by writes that the same iteration has surely done before. What is
not proved stays outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlcweb.analysis.effects import reads_before_storing
from mlcweb.analysis.threads import is_own, is_shared, thread_tag
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, children, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.optimize.accesses import Touched
from mlcweb.lower.thread_axes import reduced_across_threads
from mlcweb.schedule.rewriting.nests import in_loops
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.function import PrimFunc

Domains = Mapping[E.Var, Range]


@lowering_pass("PlaceAllocations", "PlanAndUpdateBufferAllocationLocation")
def place_allocations(func: PrimFunc) -> PrimFunc:
    """Allocate each buffer where its accesses have their lowest common ancestor."""
    return _placed(func, lambda buffer: False)


def place_outside_of_threads(func: PrimFunc) -> PrimFunc:
    """The same for threads that exchange data: of what a loop over them has around it, they have
    one together, unless it is "local". What is "shared" is one for them wherever it is."""
    return _placed(func, lambda buffer: not (is_own(buffer) or buffer.scope().startswith("shared")))


def place_in_threads(func: PrimFunc) -> PrimFunc:
    """The same where each axis of threads is one loop: of memory that is not shared, each thread
    has its own if it reads only what it has written itself. What threads reduce to is common."""
    common = reduced_across_threads(func)
    return _placed(func, lambda buffer: is_shared(buffer) or buffer.data in common)


def _placed(func: PrimFunc, is_common: Callable[[Buffer], bool]) -> PrimFunc:
    return func.with_body(_Placement(is_common).rewrite(func.body))


class _Placement(Mutator):
    def __init__(self, is_common: Callable[[Buffer], bool]) -> None:
        self.is_common = is_common
        self.domains: dict[E.Var, Range] = {}
        self.touched = Touched()

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.domains[loop.loop_var] = loop.domain
        new = self.rewrite_children(loop)
        del self.domains[loop.loop_var]
        return new

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        body = self.rewrite(statement.body)
        if statement.buffer.data not in self.touched.by(body):
            return body
        common = self.is_common(statement.buffer)
        placed = _Sinking(statement, self.touched, common).around(body, dict(self.domains))
        same = isinstance(placed, S.AllocBuffer) and placed.body is statement.body
        return statement if same else placed


class _Sinking:
    """Moves one allocation down."""

    def __init__(
        self, allocation: S.AllocBuffer, touched: Touched, stops_at_threads: bool = False
    ) -> None:
        self.stops_at_threads = stops_at_threads
        self.allocation = allocation
        self.buffer = allocation.buffer
        self.touched = touched

    def around(self, body: S.Stmt, domains: Domains) -> S.Stmt:
        """`body` with the allocation around the least part of it that may hold it; `domains` are
        those of the loops around it."""
        if isinstance(body, S.SeqStmt):
            data = self.buffer.data
            touching = [i for i, part in enumerate(body.seq) if data in self.touched.by(part)]
            first, last = touching[0], touching[-1] + 1
            inside = S.sequence(*body.seq[first:last])
            if last - first < len(body.seq):
                inner = self.around(inside, domains)
                return S.sequence(*body.seq[:first], inner, *body.seq[last:])
        elif isinstance(body, S.AllocBuffer):
            return replace(body, body=self.around(body.body, domains))
        elif isinstance(body, S.For):
            nest = _nest(body, self.stops_at_threads)
            depth = self.fresh_depth(nest, domains) if nest else 0
            if depth > 0:
                placed = self.around(nest[depth - 1].body, _inside(nest[:depth], domains))
                return in_loops(placed, nest[:depth])
        return replace(self.allocation, body=body)

    def fresh_depth(self, nest: Sequence[S.For], domains: Domains) -> int:
        """How many loops of a nest the allocation may enter."""
        # An iteration of an outer loop sees of others no more than those of an inner one do, which
        # mostly see nothing.
        if self.is_fresh(nest[-1], _inside(nest, domains)):
            return len(nest)
        for depth in range(1, len(nest)):
            if not self.is_fresh(nest[depth - 1], _inside(nest[:depth], domains)):
                return depth - 1
        return len(nest) - 1

    def is_fresh(self, loop: S.For, domains: Domains) -> bool:
        """Whether each iteration reads of the buffer only what it has written itself."""
        data, touched = self.buffer.data, self.touched.by
        return not self.is_opaque(loop.body) and not reads_before_storing(
            loop.body, self.buffer, domains, lambda node: data in touched(node)
        )

    def is_opaque(self, node: Node) -> bool:
        """Whether the buffer is touched in a way that is not followed: by its pointer, through
        another buffer, or with a vector of indices."""
        if self.buffer.data not in self.touched.by(node):
            return False
        if isinstance(node, (E.BufferLoad, S.BufferStore)) and node.buffer.data is self.buffer.data:
            if node.buffer is not self.buffer:
                return True
            if any(dtypes.lanes(index.dtype) > 1 for index in node.indices):
                return True
        return node is self.buffer.data or any(map(self.is_opaque, children(node)))


def _nest(loop: S.Stmt, stops_at_threads: bool) -> list[S.For]:
    """A loop and those that are all that is in it, outermost first; up to one over threads."""
    nest: list[S.For] = []
    while isinstance(loop, S.For) and not (stops_at_threads and thread_tag(loop)):
        nest.append(loop)
        loop = loop.body
    return nest


def _inside(nest: Sequence[S.For], domains: Domains) -> Domains:
    return {**domains, **{loop.loop_var: loop.domain for loop in nest}}
