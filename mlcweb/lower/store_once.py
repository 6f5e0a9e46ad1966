"""The pass that lets one thread do what all threads of an axis would do alike.

A store to shared memory whose element, value and conditions are the same for all threads of an axis
(a tile that each thread would fetch as a whole, a sum that each would compute) runs in the first
thread of the axis only. Run by all, a sum would also count what the others have added already.
"""

from __future__ import annotations

from typing import Any

from mlcweb.analysis.threads import is_shared, thread_tag
from mlcweb.arith import conjunction
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.lower.thread_axes import Varying
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.function import PrimFunc


def store_once(func: PrimFunc) -> PrimFunc:
    """Put `if threadIdx.x == 0` and the like around stores that do not vary along an axis."""
    return func.with_body(_Once().rewrite(func.body))


class _Once(Mutator):
    def __init__(self) -> None:
        self.varying = Varying()
        self.settled: set[str] = set()

    def rewrite(self, node: Any) -> Any:
        if not self.varying.axes or not isinstance(node, S.Stmt):
            return super().rewrite(node)
        axes = self.alike(node)
        if not axes:
            return super().rewrite(node)
        tags = {thread_tag(loop) for loop in axes}
        self.settled |= tags
        new = self.rewrite(node)
        self.settled -= tags
        condition = conjunction(E.EQ(loop.loop_var, loop.min) for loop in axes)
        return S.IfThenElse(condition, new, span=node.span)

    def alike(self, statement: S.Stmt) -> list[S.For]:
        """The axes along which a statement, which only stores to shared memory, does the same."""
        if isinstance(statement, S.AllocBuffer) or not _only_shares(statement):
            return []
        tags = self.varying.of(statement) | self.settled
        return [
            loop
            for loop in self.varying.axes
            if thread_tag(loop) not in tags and not is_const_int(loop.extent, 1)
        ]

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        entered = self.varying.enter(loop)
        new = self.diverging(loop, loop.min, loop.extent)
        if entered:
            self.varying.axes.pop()
        return new

    @on(S.IfThenElse, S.While)
    def branch(self, branch: S.IfThenElse | S.While) -> S.Stmt:
        return self.diverging(branch, branch.condition)

    def diverging(self, statement: Any, *conditions: E.PrimExpr) -> S.Stmt:
        """Inside, the first thread of an axis may be none of those that conditions let in."""
        outer = self.settled
        self.settled = outer.union(*map(self.varying.of, conditions))
        new = self.rewrite_children(statement)
        self.settled = outer
        return new

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        self.varying.let(let.var, let.value)
        return let.rewritten(self)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        self.varying.allocate(statement.buffer)
        return self.rewrite_children(statement)


def _only_shares(statement: S.Stmt) -> bool:
    """Whether a statement stores, and to shared memory only."""
    stores = False
    for part in walk(statement):
        if isinstance(part, (S.Evaluate, S.AllocBuffer)) or thread_tag(part):
            return False
        if isinstance(part, S.BufferStore):
            if not is_shared(part.buffer):
                return False
            stores = True
    return stores
