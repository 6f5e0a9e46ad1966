"""The pass that moves allocations down to the smallest statement that holds all accesses.

An allocation may enter a loop only if no iteration sees what an earlier one wrote: every read in
the loop's body has to be covered by writes that the same iteration has surely done before. What is
not proved stays outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlcweb.analysis.threads import is_shared, thread_tag
from mlcweb.arith import Analyzer, estimate_region, same_expression
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, children, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.thread_axes import reduced_across_threads
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, is_const_int, less_equal
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute, uses_any, variables_in

Box = Sequence[Range]
Domains = Mapping[E.Var, Range]


@lowering_pass("PlaceAllocations", "PlanAndUpdateBufferAllocationLocation")
def place_allocations(func: PrimFunc) -> PrimFunc:
    """Allocate each buffer where its accesses have their lowest common ancestor."""
    return func.with_body(_Placement().rewrite(func.body))


def place_outside_of_threads(func: PrimFunc) -> PrimFunc:
    """The same for threads that exchange data: of what a loop over them has around it, they have
    one together, unless it is "local". What is "shared" is one for them wherever it is."""
    return _placed(func, lambda buffer: not buffer.scope().startswith(("local", "shared")))


def place_in_threads(func: PrimFunc) -> PrimFunc:
    """The same where each axis of threads is one loop: of memory that is not shared, each thread
    has its own if it reads only what it has written itself. What threads reduce to is common."""
    common = reduced_across_threads(func)
    return _placed(func, lambda buffer: is_shared(buffer) or buffer.data in common)


def _placed(func: PrimFunc, is_common: Callable[[Buffer], bool]) -> PrimFunc:
    return func.with_body(_Placement(is_common).rewrite(func.body))


class _Placement(Mutator):
    def __init__(self, is_common: Callable[[Buffer], bool] = lambda buffer: False) -> None:
        self.is_common = is_common
        self.domains: dict[E.Var, Range] = {}
        self.touched = Touched()

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.domains[loop.loop_var] = Range(loop.min, loop.extent)
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


class Touched:
    """The data of the buffers that parts of a function touch, found once for each part."""

    def __init__(self) -> None:
        self._known: dict[Node, frozenset[E.Var]] = {}

    def by(self, node: Node) -> frozenset[E.Var]:
        """The pointers in a statement or expression, those of the buffers accessed included."""
        if isinstance(node, E.Var):
            return frozenset((node,)) if node.dtype == "handle" else _NOTHING
        known = self._known.get(node)
        if known is None:
            accesses = isinstance(node, (E.BufferLoad, S.BufferStore))
            found = frozenset((node.buffer.data,)) if accesses else _NOTHING
            for child in children(node):
                if type(child) is not E.IntImm:
                    found |= self.by(child)
            known = self._known[node] = found
        return known


_NOTHING: frozenset[E.Var] = frozenset()


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
                for loop in reversed(nest[:depth]):
                    placed = replace(loop, body=placed)
                return placed
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
        coverage = _Coverage(self.buffer, set(domains), self.touched)
        return not self.is_opaque(loop.body) and coverage.check(loop.body, [], domains) is not None

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
    return {**domains, **{loop.loop_var: Range(loop.min, loop.extent) for loop in nest}}


@dataclass(slots=True)
class _Written:
    """What is surely written: a box, while the `loops` that it knows nothing of run, the innermost
    first. Most of what is written is never asked about."""

    box: Box | None
    loops: tuple[S.For, ...] = ()

    def over(self, loop: S.For) -> _Written:
        """The same while another loop runs, around the others."""
        return _Written(self.box, (*self.loops, loop))

    def whole(self) -> Box | None:
        """The box over all iterations; None where that is no box."""
        loops, self.loops = self.loops, ()
        if self.box is None or not loops:
            return self.box
        domains = {loop.loop_var: Range(loop.min, loop.extent) for loop in loops}
        if not any(uses_any(side, domains) for side in domains.values()):
            # A part that one loop alone leaves open another may fill, as the loops of a split do.
            together = estimate_region(self.box, domains)
            if together is not None:
                self.box = together
                return together
        for var, domain in domains.items():
            self.box = self.box and estimate_region(self.box, {var: domain})
        return self.box


class _Coverage:
    """Goes through a statement in the order of execution and checks reads against sure writes.

    `outside` are the variables of the loops around the statement.
    """

    def __init__(self, buffer: Buffer, outside: set[E.Var], touched: Touched) -> None:
        self.buffer = buffer
        self.outside = outside
        self.touched = touched

    def check(
        self, statement: S.Stmt, written: list[_Written], domains: Domains
    ) -> list[_Written] | None:
        """What the statement surely writes; None if it reads outside `written`."""
        if self.buffer.data not in self.touched.by(statement):
            return []
        if isinstance(statement, S.SeqStmt):
            done: list[_Written] = []
            for part in statement.seq:
                more = self.check(part, [*written, *done], domains)
                if more is None:
                    return None
                done += more
            return done
        if isinstance(statement, S.For):
            return self.check_loop(statement, written, domains)
        if isinstance(statement, S.BufferStore):
            if not self.reads_covered(statement, written, domains):
                return None
            if statement.buffer is not self.buffer or any(map(reads_memory, statement.indices)):
                return []
            one = [Range(index, const(1, index.dtype)) for index in statement.indices]
            return [_Written(one)]
        if isinstance(statement, (S.AllocBuffer, S.AttrStmt)):
            return self.check(statement.body, written, domains)
        if isinstance(statement, S.IfThenElse):
            parts = [statement.then_case, statement.else_case]
            sure = [self.check(part, written, domains) for part in parts if part is not None]
            if not self.reads_covered(statement.condition, written, domains) or None in sure:
                return None
            return self.done_at_start(statement.condition, sure[0] or [], domains)
        return None

    def done_at_start(
        self, condition: E.PrimExpr, written: list[_Written], domains: Domains
    ) -> list[_Written]:
        """Of what is written where a condition holds, that which is written for sure: the condition
        is about inner loops alone, holds in their first iteration, and the place written is the
        same in all. The init of a reduction is like that."""
        variables = variables_in(condition)
        if not variables <= domains.keys() - self.outside:
            return []
        start = substitute(condition, {var: domains[var].min for var in variables})
        if not Analyzer().can_prove(start):
            return []
        return [
            item
            for item in written
            if not any(variables & variables_in(side.min) for side in item.whole() or ())
        ]

    def check_loop(
        self, loop: S.For, written: list[_Written], domains: Domains
    ) -> list[_Written] | None:
        domain = Range(loop.min, loop.extent)
        inside = self.check(loop.body, written, {**domains, loop.loop_var: domain})
        if inside is None:
            return None
        runs = isinstance(loop.extent, E.IntImm) and loop.extent.value > 0
        return [item.over(loop) for item in inside] if runs else []

    def reads_covered(
        self, part: S.Stmt | E.PrimExpr, written: list[_Written], domains: Domains
    ) -> bool:
        if self.buffer.data not in self.touched.by(part):
            return True
        loads = [
            node
            for node in walk(part)
            if isinstance(node, E.BufferLoad) and node.buffer is self.buffer
        ]
        if not loads or not written:
            return not loads
        analyzer = Analyzer(domains)
        return all(
            any(_contains(item.whole(), node.indices, analyzer) for item in written)
            for node in loads
        )


def _contains(box: Box | None, indices: Sequence[E.PrimExpr], analyzer: Analyzer) -> bool:
    if box is None:
        return False
    return all(_reaches(side, index, analyzer) for side, index in zip(box, indices, strict=True))


def _reaches(side: Range, index: E.PrimExpr, analyzer: Analyzer) -> bool:
    """Whether an index is known to lie in a range."""
    if same_expression(side.min, index) and is_const_int(side.extent, 1):
        return True
    return analyzer.can_prove(less_equal(side.min, index)) and analyzer.can_prove(
        less_equal(add(index, 1), add(side.min, side.extent))
    )
