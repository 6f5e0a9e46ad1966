"""The pass that moves loads and other invariant work out of loops.

What does not change from one iteration to the next is computed once before the loop, under a name:
loads from buffers that the loop does not write, broadcasts to vectors, divisions. It has to run in
every iteration as it stands (nothing is tried that the program might not do), and loops that may
not run at all are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, Replacement, children, on
from mlcweb.lower.optimize.accesses import (
    REGISTER_SCOPE,
    aliasing,
    has_effects,
    sure_statements,
    surely_runs,
)
from mlcweb.lower.optimize.indices import Indices
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import is_choice, variables_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.contents import accesses_in, buffers_written, variables_used
from mlcweb.tir.function import PrimFunc

_LEAVES = (E.Var, E.IntImm, E.FloatImm, E.StringImm)


def hoist(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Compute what a loop does not change before the loop."""
    return func.with_body(_Hoisting(func, machine.registers).rewrite(func.body))


class _Hoisting(Mutator):
    """At most `registers` values are held over a loop; more would not find a register."""

    def __init__(self, func: PrimFunc, registers: int) -> None:
        self.may_alias = aliasing(func)
        self.registers = registers
        self.indices = Indices()

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        return store

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if not surely_runs(loop) or has_effects(loop.body):
            return self.rewrite_children(loop)
        search = _Search(self, variables_of(loop), buffers_written(loop.body))
        search.statement(loop.body)
        if not search.found:
            return self.rewrite_children(loop)
        names = {
            key: E.Var(name_of(value), value.dtype)
            for key, value in list(search.found.items())[: self.registers]
        }

        def named(node: Any) -> Any:
            if isinstance(node, _LEAVES):
                return node
            return names.get(self.indices.interned(node)) if isinstance(node, E.PrimExpr) else None

        body = Replacement(named).rewrite(loop.body)
        result: S.Stmt = self.rewrite_children(replace(loop, body=body))
        for key, var in reversed(names.items()):
            result = S.LetStmt(var, search.found[key], result, span=loop.span)
        return result


@dataclass
class _Search:
    """Collects the largest invariant expressions worth a name that a statement surely computes."""

    hoisting: _Hoisting
    moving: set[E.Var]
    written: list[Buffer]
    found: dict[object, E.PrimExpr] = field(default_factory=dict)

    def statement(self, statement: S.Stmt) -> None:
        for part in sure_statements(statement):
            if isinstance(part, (S.BufferStore, S.LetStmt)):
                self.expression(part.value)
            elif isinstance(part, S.IfThenElse):
                self.expression(part.condition)

    def expression(self, expression: E.PrimExpr) -> None:
        if isinstance(expression, _LEAVES):
            return
        if self.is_invariant(expression):
            if is_worth_a_name(expression):
                self.found.setdefault(self.hoisting.indices.interned(expression), expression)
                return
        for operand in sure_operands(expression):
            self.expression(operand)

    def is_invariant(self, expression: E.PrimExpr) -> bool:
        if not self.moving.isdisjoint(variables_used(expression)):
            return False
        return not any(
            self.hoisting.may_alias(load.buffer, buffer)
            for load in accesses_in(expression)
            for buffer in self.written
        )


def sure_operands(expression: E.PrimExpr) -> list[E.PrimExpr]:
    """The operands that are computed whenever an expression is; not the indices of loads."""
    if isinstance(expression, E.BinaryExpr):
        return [expression.a, expression.b]
    if isinstance(expression, E.BufferLoad):
        return []
    if isinstance(expression, (E.And, E.Or)):
        return [expression.a]
    if isinstance(expression, E.Select):
        return [expression.condition]
    if isinstance(expression, E.Let):
        return [expression.value]
    if is_choice(expression):
        return [expression.args[0]]  # type: ignore[attr-defined]
    return [child for child in children(expression) if isinstance(child, E.PrimExpr)]


def is_worth_a_name(expression: E.PrimExpr) -> bool:
    """Whether computing an expression costs more than reading a register. Constants do not, and
    plain index arithmetic is the business of address selection."""
    if isinstance(expression, E.Broadcast):
        return not isinstance(expression.value, (E.IntImm, E.FloatImm))
    if isinstance(expression, (E.Add, E.Sub, E.Mul, E.Ramp, E.Cast)):
        simple = dtypes.is_integer(expression.dtype)
        return not simple or bool(accesses_in(expression))
    if isinstance(expression, E.BufferLoad):
        return expression.buffer.scope() != REGISTER_SCOPE
    return not isinstance(expression, E.StringImm)


def name_of(expression: E.PrimExpr) -> str:
    loads = accesses_in(expression)
    return f"{loads[0].buffer.name}_value" if loads else "invariant"
