"""The pass that simplifies expressions and drops statements that do nothing."""

from __future__ import annotations

from typing import Any

from mlcweb.arith import Analyzer, conjuncts
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_and, logical_not
from mlcweb.tir.buffer import Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute


def simplify(func: PrimFunc) -> PrimFunc:
    """Simplify by what loops and conditions say of their variables.

    Conditions that always or never hold disappear, and so do loops of one iteration, unless a
    thread is bound to them. What reads memory is assumed nowhere: a statement may overwrite it.
    """
    body = _Simplification().rewrite(func.body)
    return func if body is func.body else replace(func, body=body)


NOTHING = S.Evaluate(E.IntImm("int32", 0))


class _Simplification(Mutator):
    def __init__(self) -> None:
        self.analyzer = Analyzer()

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, E.PrimExpr):
            return self.expression(node)
        return super().rewrite(node)

    def expression(self, expression: E.PrimExpr) -> E.PrimExpr:
        if isinstance(expression, E.BufferLoad):
            return self.rewrite_children(expression)
        return self.analyzer.simplify(expression)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        if isinstance(extent, E.IntImm) and extent.value <= 0:
            return NOTHING
        single = isinstance(extent, E.IntImm) and extent.value == 1
        if single and loop.kind != S.ForKind.THREAD_BINDING:
            if reads_memory(low):
                return self.rewrite(S.LetStmt(loop.loop_var, low, loop.body, span=loop.span))
            return self.rewrite(substitute(loop.body, {loop.loop_var: low}))
        if not (reads_memory(low) or reads_memory(extent)):
            self.analyzer.bind(loop.loop_var, Range(low, extent))
        body = self.rewrite(loop.body)
        if body is NOTHING:
            return NOTHING
        same = low is loop.min and extent is loop.extent and body is loop.body
        return loop if same else replace(loop, min=low, extent=extent, body=body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        condition = self.rewrite(branch.condition)
        if isinstance(condition, E.IntImm):
            taken = branch.then_case if condition.value else branch.else_case
            return NOTHING if taken is None else self.rewrite(taken)
        with self.analyzer.constraint(_lasting(condition)):
            then_case = self.rewrite(branch.then_case)
        else_case = branch.else_case
        if else_case is not None:
            with self.analyzer.constraint(_lasting(logical_not(condition))):
                else_case = self.rewrite(else_case)
            else_case = None if else_case is NOTHING else else_case
        if then_case is NOTHING and else_case is None:
            return NOTHING
        return replace(branch, condition=condition, then_case=then_case, else_case=else_case)

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> S.Stmt:
        parts = self.rewrite_tuple(statement.seq)
        kept = [part for part in parts if part is not NOTHING]
        if len(kept) == len(statement.seq) and parts is statement.seq:
            return statement
        return S.sequence(*kept) if kept else NOTHING

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        body = self.rewrite(statement.body)
        if body is NOTHING or body is statement.body:
            return statement if body is statement.body else NOTHING
        return replace(statement, body=body)


def _lasting(condition: E.PrimExpr) -> E.PrimExpr:
    """The conjuncts that go on holding, whatever is stored."""
    if not reads_memory(condition):
        return condition
    lasting: E.PrimExpr = const(True)
    for part in conjuncts(condition):
        if not reads_memory(part):
            lasting = logical_and(lasting, part)
    return lasting
