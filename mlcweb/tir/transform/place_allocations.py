"""The pass that moves allocations down to the smallest statement that holds all accesses.

An allocation may enter a loop only if no iteration sees what an earlier one wrote: every read in
the loop's body has to be covered by writes that the same iteration has surely done before. What is
not proved stays outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith import Analyzer, estimate_region
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, less_equal
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute, variables_in

Box = Sequence[Range]
Domains = Mapping[E.Var, Range]


def place_allocations(func: PrimFunc) -> PrimFunc:
    """Allocate each buffer where its accesses have their lowest common ancestor."""
    body = _Placement().rewrite(func.body)
    return func if body is func.body else replace(func, body=body)


class _Placement(Mutator):
    def __init__(self) -> None:
        self.domains: dict[E.Var, Range] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.domains[loop.loop_var] = Range(loop.min, loop.extent)
        new = self.rewrite_children(loop)
        del self.domains[loop.loop_var]
        return new

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        body = self.rewrite(statement.body)
        if not _touches(body, statement.buffer):
            return body
        placed = _sink(statement, body, dict(self.domains))
        same = isinstance(placed, S.AllocBuffer) and placed.body is statement.body
        return statement if same else placed


def _sink(allocation: S.AllocBuffer, body: S.Stmt, domains: Domains) -> S.Stmt:
    """`body` with the allocation around the least part of it that may hold it; `domains` are those
    of the loops around it."""
    buffer = allocation.buffer
    if isinstance(body, S.SeqStmt):
        touching = [i for i, part in enumerate(body.seq) if _touches(part, buffer)]
        first, last = touching[0], touching[-1] + 1
        inside = S.sequence(*body.seq[first:last])
        if last - first < len(body.seq):
            inner = _sink(allocation, inside, domains)
            return S.sequence(*body.seq[:first], inner, *body.seq[last:])
    elif isinstance(body, S.AllocBuffer):
        return replace(body, body=_sink(allocation, body.body, domains))
    elif isinstance(body, S.For):
        nest = _nest(body)
        depth = _fresh_depth(nest, buffer, domains)
        if depth > 0:
            placed = _sink(allocation, nest[depth - 1].body, _inside(nest[:depth], domains))
            for loop in reversed(nest[:depth]):
                placed = replace(loop, body=placed)
            return placed
    return replace(allocation, body=body)


def _nest(loop: S.For) -> list[S.For]:
    """A loop and those that are all that is in it, outermost first."""
    nest = [loop]
    while isinstance(nest[-1].body, S.For):
        nest.append(nest[-1].body)
    return nest


def _inside(nest: Sequence[S.For], domains: Domains) -> Domains:
    return {**domains, **{loop.loop_var: Range(loop.min, loop.extent) for loop in nest}}


def _fresh_depth(nest: Sequence[S.For], buffer: Buffer, domains: Domains) -> int:
    """How many loops of a nest the allocation may enter."""
    # An iteration of an outer loop sees of others no more than those of an inner one do, which
    # mostly see nothing.
    if _is_fresh(nest[-1], buffer, _inside(nest, domains)):
        return len(nest)
    for depth in range(1, len(nest)):
        if not _is_fresh(nest[depth - 1], buffer, _inside(nest[:depth], domains)):
            return depth - 1
    return len(nest) - 1


def _touches(statement: S.Stmt, buffer: Buffer) -> bool:
    return any(
        node is buffer.data
        or (isinstance(node, (E.BufferLoad, S.BufferStore)) and node.buffer.data is buffer.data)
        for node in walk(statement)
    )


def _is_fresh(loop: S.For, buffer: Buffer, domains: Domains) -> bool:
    """Whether each iteration reads of the buffer only what it has written itself."""
    for node in walk(loop.body):
        if node is buffer.data:
            return False
        if isinstance(node, (E.BufferLoad, S.BufferStore)):
            vector = any(dtypes.lanes(index.dtype) > 1 for index in node.indices)
            if node.buffer.data is buffer.data and (vector or node.buffer is not buffer):
                return False
    return _Coverage(buffer, set(domains)).check(loop.body, [], domains) is not None


class _Coverage:
    """Goes through a statement in the order of execution and checks reads against sure writes.

    `outside` are the variables of the loops around the statement.
    """

    def __init__(self, buffer: Buffer, outside: set[E.Var]) -> None:
        self.buffer = buffer
        self.outside = outside

    def check(self, statement: S.Stmt, written: list[Box], domains: Domains) -> list[Box] | None:
        """The boxes that the statement surely writes; None if it reads outside `written`."""
        if isinstance(statement, S.SeqStmt):
            done: list[Box] = []
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
            if statement.buffer is not self.buffer:
                return []
            return [[Range(index, const(1, index.dtype)) for index in statement.indices]]
        if isinstance(statement, (S.AllocBuffer, S.AttrStmt)):
            return self.check(statement.body, written, domains)
        if isinstance(statement, S.IfThenElse):
            parts = [statement.then_case, statement.else_case]
            sure = [self.check(part, written, domains) for part in parts if part is not None]
            if not self.reads_covered(statement.condition, written, domains) or None in sure:
                return None
            return self.done_at_start(statement.condition, sure[0] or [], domains)
        return [] if not _touches(statement, self.buffer) else None

    def done_at_start(self, condition: E.PrimExpr, boxes: list[Box], domains: Domains) -> list[Box]:
        """Of what is written where a condition holds, that which is written for sure: the condition
        is about inner loops alone, holds in their first iteration, and the place written is the
        same in all. The init of a reduction is like that."""
        variables = variables_in(condition)
        if not variables <= domains.keys() - self.outside:
            return []
        start = substitute(condition, {var: domains[var].min for var in variables})
        if not Analyzer().can_prove(start):
            return []
        return [box for box in boxes if not any(variables & variables_in(side.min) for side in box)]

    def check_loop(self, loop: S.For, written: list[Box], domains: Domains) -> list[Box] | None:
        domain = Range(loop.min, loop.extent)
        inside = self.check(loop.body, written, {**domains, loop.loop_var: domain})
        if inside is None:
            return None
        runs = isinstance(loop.extent, E.IntImm) and loop.extent.value > 0
        widened = [estimate_region(box, {loop.loop_var: domain}) for box in inside if runs]
        return [box for box in widened if box is not None]

    def reads_covered(
        self, part: S.Stmt | E.PrimExpr, written: list[Box], domains: Domains
    ) -> bool:
        loads = [
            node
            for node in walk(part)
            if isinstance(node, E.BufferLoad) and node.buffer is self.buffer
        ]
        if not loads:
            return True
        analyzer = Analyzer(domains)
        return all(any(_contains(box, node.indices, analyzer) for box in written) for node in loads)


def _contains(box: Box, indices: Sequence[E.PrimExpr], analyzer: Analyzer) -> bool:
    return all(
        analyzer.can_prove(less_equal(side.min, index))
        and analyzer.can_prove(less_equal(add(index, 1), add(side.min, side.extent)))
        for side, index in zip(box, indices, strict=True)
    )
