"""The pass `tvm.tir.transform.Simplify`, with its options.

It does what the pass of the same name in the pipeline does (`mlcweb.lower.simplify`), and
computes from the values of variables instead of from the variables, which before code generation
would only be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from mlcweb.arith import Analyzer, Extension
from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import ConstIntBound, is_index_type
from mlcweb.arith.rules_comparison import negation
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import on
from mlcweb.lower.conjunctive_form import and_of_ors
from mlcweb.lower.options import SIMPLIFY, configured
from mlcweb.lower.simplify import Simplification
from mlcweb.lower.statement_simplifier import NOTHING, stores_what_is_there
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory


@dataclass(frozen=True, slots=True)
class StmtSimplifyConfig:
    """What is done beyond the usual: a < b and b < c prove a < c; conditions are put into
    conjunctive normal form; the operands of `and` and `or` are simplified by what the other one
    says. The other options of TVM change nothing here."""

    transitively_prove_inequalities: bool = False
    convert_boolean_to_and_of_ors: bool = False
    apply_constraints_to_boolean_branches: bool = False
    propagate_knowns_to_prove_conditional: bool = False
    propagate_knowns_to_simplify_expressions: bool = False


def stmt_simplify(func: PrimFunc) -> PrimFunc:
    """Simplify as TVM's pass does, by the option "tir.Simplify".

    Raises:
        TVMError: the option has a field that TVM does not know.
    """
    config = configured(SIMPLIFY, StmtSimplifyConfig)
    return func.with_body(_StmtSimplification(func, config).rewrite(func.body))


def assume_extents(analyzer: Analyzer, func: PrimFunc) -> None:
    """Learn of the variables of parameters' extents, `x * scale + shift`, that these are 0 or
    more."""
    for extent in (extent for buffer in func.buffer_map.values() for extent in buffer.shape):
        total = analyzer.canonical_sum(extent) if is_index_type(extent.dtype) else None
        terms = list(total.items()) if total is not None else []
        if total is None or len(terms) != 1:
            continue
        (digit, scale), shift = terms[0], total.constant
        if isinstance(digit.source, E.Var) and digit.lower == 1 and digit.upper is None:
            if scale > 0:
                analyzer.update(digit.source, ConstIntBound(-(shift // scale), inf))


class _StmtSimplification(Simplification):
    def __init__(self, func: PrimFunc, config: StmtSimplifyConfig) -> None:
        super().__init__()
        self.config = config
        if config.transitively_prove_inequalities:
            self.analyzer.enabled_extensions |= Extension.TransitivelyProveInequalities
        assume_extents(self.analyzer, func)

    def rewrite(self, node: Any) -> Any:
        if self.config.convert_boolean_to_and_of_ors and isinstance(node, (E.And, E.Or)):
            node = and_of_ors(node, self.analyzer.simplify)
        if self.config.apply_constraints_to_boolean_branches and isinstance(node, (E.And, E.Or)):
            return self.connective(super().rewrite(node))
        return super().rewrite(node)

    def connective(self, condition: E.PrimExpr) -> E.PrimExpr:
        """`a and b` where each is simplified as if the other held; `a or b` as if it did not."""
        if not isinstance(condition, (E.And, E.Or)):
            return condition
        is_and = isinstance(condition, E.And)
        a, b = self.connective(condition.a), self.connective(condition.b)
        with self.analyzer.constraint(a if is_and else negation(a)):
            b = self.rewrite(b)
        with self.analyzer.constraint(b if is_and else negation(b)):
            a = self.rewrite(a)
        return self.analyzer.simplify(type(condition)(a, b))

    def once(self, loop: S.For, low: E.PrimExpr) -> S.Stmt:
        """The loop stays, with what it is annotated with; its variable has the one value in it."""
        values = {} if reads_memory(low) else {loop.loop_var: low}
        return self.finished_loop(loop, self.with_values(loop.body, values))

    @on(S.LetStmt)
    def let(self, statement: S.LetStmt) -> S.Stmt:
        """The variable stays, and what is computed from it is computed from its value."""
        value = self.rewrite(statement.value)
        if not reads_memory(value):
            self.analyzer.bind(statement.var, value)
        body = self.rewrite(statement.body)
        same = value is statement.value and body is statement.body
        return statement if same else replace(statement, value=value, body=body)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        new = self.rewrite_children(store)
        return NOTHING if stores_what_is_there(new, same_expression) else new
