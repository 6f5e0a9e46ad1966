"""Checked code, too: an axis of a block whose value is outside of its domain stops the kernel.

As long as there are blocks, their bodies get an assertion of each axis that is not known to stay
inside.
"""

from __future__ import annotations

from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, greater_equal, less, logical_and
from mlcweb.tir.buffer import Range
from mlcweb.tir.function import PrimFunc


def check_domains(func: PrimFunc) -> PrimFunc:
    """The function with assertions of the domains of its blocks' axes."""
    return func.with_body(_DomainChecks().rewrite(func.body))


CHECK_DOMAINS = LoweringPass(check_domains, "InstrumentDomainChecks", needed=True)


class _DomainChecks(Mutator):
    def __init__(self) -> None:
        self.domains: dict[E.Var, Range] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.domains[loop.loop_var] = loop.domain
        return self.rewrite_children(loop)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        block = realize.block
        analyzer = Analyzer(self.domains)
        unproved: list[tuple[S.IterVar, Range]] = []
        with analyzer.constraint(realize.predicate):
            for axis, value in realize.iterators:
                if axis.dom is None:
                    continue
                self.domains[axis.var] = axis.dom
                if not analyzer.can_prove(is_inside(value, axis.dom)):
                    unproved.append((axis, axis.dom))
        new = self.rewrite_children(realize)
        body = new.block.body
        for axis, domain in unproved:
            message = (
                f'Axis "{axis.var.name}" of block "{block.name_hint}" is outside its domain '
                f"[{domain.min!r}, {add(domain.min, domain.extent)!r})"
            )
            body = S.AssertStmt(
                is_inside(axis.var, domain),
                E.StringImm(message),
                body,
                span=axis.span or block.span,
            )
        return replace(new, block=replace(new.block, body=body)) if unproved else new


def is_inside(value: E.PrimExpr, domain: Range) -> E.PrimExpr:
    """The condition that a value lies in a range."""
    end = add(domain.min, domain.extent)
    return logical_and(greater_equal(value, domain.min), less(value, end))
