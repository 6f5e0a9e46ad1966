"""The passes that move conditions out of loops that do not change them (loop unswitching).

`for i: if n > 2: A` becomes `if n > 2: for i: A`; with an `else`, a loop is on each side. A
condition moves out of a loop whose body is that condition alone, or has it inside of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from mlcweb.analysis.queries import verify_ssa
from mlcweb.arith import Analyzer, conjuncts
from mlcweb.ir.node import replace
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.simplify import Simplification
from mlcweb.lower.statement_simplifier import is_nothing
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_not, may_trap
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt_functor import renew_defs
from mlcweb.tir.substitute import reads_memory, variables_in

MAX_HOISTED = 32
"""So many conditions move in one function: each one doubles what is inside of its loop."""


@lowering_pass("HoistIfThenElse")
def hoist_if_then_else(func: PrimFunc) -> PrimFunc:
    """Move the conditions of `if` statements out of loops."""
    return _Hoisting().run(func)


@lowering_pass("HoistExpression")
def hoist_expression(func: PrimFunc) -> PrimFunc:
    """Move conditions out of loops, also those joined by `and`, and of `T.if_then_else`; and
    variables whose values a loop does not change."""
    return _PartsHoisting().run(func)


class _Hoisting(Mutator):
    """Moves whole conditions of branches."""

    parts: ClassVar[bool] = False

    def __init__(self) -> None:
        self.left = MAX_HOISTED

    def run(self, func: PrimFunc) -> PrimFunc:
        """The function, the copies of loops with variables of their own."""
        new = func.with_body(self.rewrite(func.body))
        return new if new.body is func.body or verify_ssa(new) else renew_defs(new)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        return self.hoisted(self.rewrite_children(loop))

    def hoisted(self, loop: S.For) -> S.Stmt:
        """A loop, inside of the conditions that are in it and that it does not change."""
        if loop.kind == S.ForKind.THREAD_BINDING:
            return loop
        for condition in self.conditions(loop.body):
            if self.left and _is_fixed(condition, loop):
                self.left -= 1
                return self.chosen(loop, condition)
        return loop

    def chosen(self, loop: S.For, condition: E.PrimExpr) -> S.Stmt:
        """The loop with a condition around it, which decides it inside."""
        yes, no = (self.decided(loop, condition, holds) for holds in (True, False))
        condition = Analyzer().simplify(condition)
        if is_nothing(yes):
            return S.IfThenElse(logical_not(condition), no, span=loop.span)
        return S.IfThenElse(condition, yes, None if is_nothing(no) else no, span=loop.span)

    def decided(self, loop: S.For, condition: E.PrimExpr, holds: bool) -> S.Stmt:
        """The loop where a condition is known to hold, or not to hold."""
        simplification = Simplification()
        with simplification.assuming(condition if holds else logical_not(condition)):
            new = simplification.rewrite(_Decision(condition, holds).rewrite(loop))
        return self.hoisted(new) if isinstance(new, S.For) else new

    def conditions(self, body: S.Stmt) -> Iterator[E.PrimExpr]:
        """What could move out of a loop with this body, the first choice first."""
        while isinstance(body, S.IfThenElse):
            yield from self.of_branch(body)
            body = body.then_case

    def of_branch(self, branch: S.IfThenElse) -> Iterable[E.PrimExpr]:
        return [branch.condition]


class _PartsHoisting(_Hoisting):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        new = self.rewrite_children(loop)
        let = new.body
        if isinstance(let, S.LetStmt) and _is_fixed(let.value, new):
            inner = self.hoisted(replace(new, body=let.body))
            return replace(let, body=inner)
        return self.hoisted(new)

    def of_branch(self, branch: S.IfThenElse) -> Iterable[E.PrimExpr]:
        return conjuncts(branch.condition)

    def conditions(self, body: S.Stmt) -> Iterator[E.PrimExpr]:
        yield from super().conditions(body)
        while isinstance(body, S.IfThenElse):
            body = body.then_case
        if isinstance(body, S.BufferStore):
            for node in walk(body.value):
                if isinstance(node, E.Call) and operator_name(node) == "if_then_else":
                    yield from conjuncts(node.args[0])


class _Decision(Mutator):
    """Puts a truth value for a condition."""

    def __init__(self, condition: E.PrimExpr, holds: bool) -> None:
        self.condition = condition
        self.holds = const(holds)

    def rewrite(self, node: Any) -> Any:
        same = isinstance(node, E.PrimExpr) and structural_equal(node, self.condition)
        return self.holds if same else super().rewrite(node)


def _is_fixed(value: E.PrimExpr, loop: S.For) -> bool:
    """Whether a value can as well be computed before a loop, even one that has no iteration."""
    if loop.loop_var in variables_in(value) or reads_memory(value) or may_trap(value):
        return False
    return not isinstance(value, E.IntImm)
