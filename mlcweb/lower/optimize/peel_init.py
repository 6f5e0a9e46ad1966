"""The pass that moves the start of a reduction out of its loop.

`for k: {if k == 0: S; T}` is `S; for k: T`, since S would be the first thing that the loop does.
"""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.optimize.accesses import surely_runs
from mlcweb.lower.statement_simplifier import in_sequence
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import logical_and
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute, uses


@lowering_pass("PeelInit")
def peel_init(func: PrimFunc) -> PrimFunc:
    """Move statements that only the first iteration of a loop runs, first, before the loop."""
    return func.with_body(_PeelInit().rewrite(func.body))


class _PeelInit(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        loop = self.rewrite_children(loop)
        body = loop.body
        if not surely_runs(loop):
            return loop
        if not (isinstance(body, S.SeqStmt) and isinstance(branch := body.seq[0], S.IfThenElse)):
            return loop
        condition = _without(branch.condition, loop.loop_var, loop.min)
        if condition is None or branch.else_case is not None:
            return loop
        first: S.Stmt = substitute(branch.then_case, {loop.loop_var: loop.min})
        if not isinstance(condition, E.IntImm):
            first = replace(branch, condition=condition, then_case=first)
        return S.sequence(first, replace(loop, body=in_sequence(body.seq[1:])))


def _without(condition: E.PrimExpr, var: E.Var, low: E.PrimExpr) -> E.PrimExpr | None:
    """What a conjunction says besides `var == low`; None where it does not say that, or says more
    of `var`."""
    true = E.IntImm("bool", 1)
    if isinstance(condition, E.And):
        a, b = _without(condition.a, var, low), _without(condition.b, var, low)
        if a is not None and not uses(condition.b, var):
            return logical_and(a, condition.b)
        if b is not None and not uses(condition.a, var):
            return logical_and(condition.a, b)
        return None
    if isinstance(condition, E.EQ) and condition.a is var:
        same = (
            isinstance(condition.b, E.IntImm)
            and isinstance(low, E.IntImm)
            and condition.b.value == low.value
        )
        return true if same else None
    return None
