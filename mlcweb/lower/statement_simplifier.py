"""How statements become simpler once their expressions are: what does nothing, never runs, or runs
once and so needs no loop, is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any, ClassVar

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import logical_not
from mlcweb.tir.substitute import reads_memory, substitute

NOTHING = S.Evaluate(E.IntImm("int32", 0))
"""The statement that does nothing."""


def is_nothing(statement: S.Stmt | None) -> bool:
    return isinstance(statement, S.Evaluate) and isinstance(statement.value, E.IntImm)


def stores_what_is_there(
    store: S.BufferStore, are_equal: Callable[[E.PrimExpr, E.PrimExpr], bool]
) -> bool:
    """Whether a store puts into an element what that holds already."""
    value = store.value
    if not isinstance(value, E.BufferLoad) or value.buffer is not store.buffer:
        return False
    return all(map(are_equal, value.indices, store.indices))


def in_sequence(statements: Iterable[S.Stmt]) -> S.Stmt:
    """Statements one after another, without those that do nothing."""
    kept = [statement for statement in statements if not is_nothing(statement)]
    return S.sequence(*kept) if kept else NOTHING


def resequenced(old: S.SeqStmt, parts: list[S.Stmt]) -> S.Stmt:
    """Statements one after another; the old sequence where they are the same."""
    same = len(parts) == len(old.seq) and all(map(is_, parts, old.seq))
    return old if same else S.sequence(*parts)


class StatementSimplifier(Mutator):
    """Simplifies statements. Subclasses say how expressions are simplified, and what is made of the
    domains of loops and of the conditions of branches."""

    keeps_threads: ClassVar[bool] = True
    """Whether a loop that is bound to a thread stays although it has one iteration."""

    def with_values(self, node: Any, values: Mapping[E.Var, E.PrimExpr]) -> Any:
        """`node` rewritten with some variables replaced."""
        return self.rewrite(substitute(node, values))

    def enter(self, variable: E.Var, low: E.PrimExpr, extent: E.PrimExpr) -> None:
        """Called with the domain of a loop before its body is rewritten."""

    def assuming(self, condition: E.PrimExpr) -> AbstractContextManager[None]:
        """Around what runs only where a condition held before it."""
        return nullcontext()

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        if isinstance(extent, E.IntImm) and extent.value <= 1:
            if extent.value <= 0:
                return NOTHING
            if not (self.keeps_threads and loop.kind == S.ForKind.THREAD_BINDING):
                return self.once(loop, low)
        self.enter(loop.loop_var, low, extent)
        body = self.rewrite(loop.body)
        if low is not loop.min or extent is not loop.extent:
            loop = replace(loop, min=low, extent=extent)
        return self.finished_loop(loop, body)

    def once(self, loop: S.For, low: E.PrimExpr) -> S.Stmt:
        """The body of a loop in which the variable has one value."""
        if reads_memory(low):  # which the body may overwrite
            return self.rewrite(S.LetStmt(loop.loop_var, low, loop.body, span=loop.span))
        return self.with_values(loop.body, {loop.loop_var: low})

    def finished_loop(self, loop: S.For, body: S.Stmt) -> S.Stmt:
        """The loop with its rewritten body."""
        if is_nothing(body):
            return NOTHING
        return loop if body is loop.body else replace(loop, body=body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        condition = self.rewrite(branch.condition)
        if isinstance(condition, E.IntImm):
            chosen = branch.then_case if condition.value else branch.else_case
            return NOTHING if chosen is None else self.rewrite(chosen)
        with self.assuming(condition):
            then_case = self.rewrite(branch.then_case)
        else_case = branch.else_case
        if else_case is not None:
            with self.assuming(logical_not(condition)):
                else_case = self.rewrite(else_case)
        if is_nothing(else_case):
            else_case = None
        if is_nothing(then_case) and else_case is None:
            return NOTHING
        same = condition is branch.condition and then_case is branch.then_case
        if same and else_case is branch.else_case:
            return branch
        return S.IfThenElse(condition, then_case, else_case, span=branch.span)

    @on(S.SeqStmt)
    def statements(self, statement: S.SeqStmt) -> S.Stmt:
        new = self.rewrite_tuple(statement.seq)
        same = new is statement.seq and not any(map(is_nothing, new))
        return statement if same else in_sequence(new)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        new = self.rewrite_children(statement)
        launches_nothing = isinstance(new.node, S.IterVar) and is_nothing(new.body)
        return NOTHING if launches_nothing else new

    @on(S.AllocBuffer)
    def allocation(self, allocation: S.AllocBuffer) -> S.Stmt:
        body = self.rewrite(allocation.body)
        if is_nothing(body):
            return NOTHING
        return allocation if body is allocation.body else replace(allocation, body=body)
