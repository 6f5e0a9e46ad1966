"""The pass `tvm.tir.transform.Simplify`, with its options.

It does what the pass of the same name in the pipeline does (`mlcweb.lower.simplify`), and puts
values in the place of the names they were given, which before code generation would only be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from mlcweb.arith import Analyzer, Extension
from mlcweb.arith.interval import ConstIntBound, is_index_type
from mlcweb.arith.rules_comparison import negation
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes, on
from mlcweb.lower.conjunctive_form import and_of_ors
from mlcweb.lower.options import SIMPLIFY, configured
from mlcweb.lower.simplify import Simplification
from mlcweb.lower.statement_simplifier import NOTHING, stores_what_is_there
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute


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
        self.named_values: dict[E.Var, E.PrimExpr] = {}
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
        value = self.rewrite(statement.value)
        if reads_memory(value):
            return self.named(statement, value)
        constant = isinstance(value, (E.IntImm, E.FloatImm, E.Var))
        if not constant and not is_index_type(value.dtype):
            self.named_values[statement.var] = value
            return self.named(statement, value)
        self.analyzer.bind(statement.var, value)
        if any(statement.var in _described_by(buffer) for buffer in _buffers(statement.body)):
            return self.named(statement, value)
        return self.rewrite(substitute(statement.body, {statement.var: value}))

    def named(self, statement: S.LetStmt, value: E.PrimExpr) -> S.Stmt:
        body = self.rewrite(statement.body)
        same = value is statement.value and body is statement.body
        return statement if same else replace(statement, value=value, body=body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        if self.named_values:
            proof = self.rewrite(substitute(branch.condition, self.named_values))
            if isinstance(proof, E.IntImm):
                branch = replace(branch, condition=proof)
        return super().branch(branch)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        new = self.rewrite_children(store)
        return NOTHING if stores_what_is_there(new) else new


def _buffers(body: S.Stmt) -> set[Buffer]:
    """The buffers that a statement accesses or declares."""
    return {
        node.buffer
        for node in find_nodes(body, E.BufferLoad, S.BufferStore, S.DeclBuffer, S.AllocBuffer)
    }


def _described_by(buffer: Buffer) -> list[E.Var]:
    """The variables that say where a buffer is and how large."""
    parts = (buffer.data, buffer.elem_offset, *buffer.shape, *buffer.strides)
    return [node for part in parts for node in find_nodes(part, E.Var)]
