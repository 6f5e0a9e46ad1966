"""The pass that simplifies expressions and drops statements that do nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from mlcweb.arith import Analyzer, conjunction, conjuncts
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.statement_simplifier import StatementSimplifier
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory


@lowering_pass("Simplify", "StmtSimplify")
def simplify(func: PrimFunc) -> PrimFunc:
    """Simplify by what loops and conditions say of their variables.

    Conditions that always or never hold disappear, and so do loops of one iteration, unless a
    thread is bound to them. What reads memory is assumed nowhere: a statement may overwrite it.
    """
    return func.with_body(Simplification().rewrite(func.body))


class Simplification(StatementSimplifier):
    """Simplifies a statement under what is known of its variables."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, E.PrimExpr):
            return super().rewrite(node)
        if isinstance(node, E.BufferLoad):
            return self.rewrite_children(node)
        return self.analyzer.simplify(node)

    def enter(self, variable: E.Var, low: E.PrimExpr, extent: E.PrimExpr) -> None:
        if not (reads_memory(low) or reads_memory(extent)):
            self.analyzer.bind(variable, Range(low, extent))

    def assuming(self, condition: E.PrimExpr) -> AbstractContextManager[None]:
        """The conjuncts that go on holding, whatever is stored, are assumed."""
        parts = [part for part in conjuncts(condition) if not reads_memory(part)]
        return self.analyzer.constraint(conjunction(parts))
