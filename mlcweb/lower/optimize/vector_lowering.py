"""Statements in vector form: what the iterations of a chunk of a loop do, side by side."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from mlcweb.ir.node import replace
from mlcweb.lower.optimize.accesses import Access
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, may_trap
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.operators import BINARY_NODES, OPERATORS, SHIFT, operator_name

if TYPE_CHECKING:
    from mlcweb.lower.optimize.rewriter import Rewriter


class NoVectorForm(Exception):
    """A loop cannot be vectorised."""


class VectorLowering:
    """Turns statements of a loop over `var` into those of `lanes` iterations from `base` on.

    Expressions that do not depend on `var` stay scalar, and are broadcast where they meet vectors.
    Without `gathers`, accesses need unit stride; loads from memory may have a stride of two, which
    takes two vectors.
    """

    def __init__(
        self,
        rewriter: Rewriter,
        machine: MachineModel,
        var: E.Var,
        base: E.PrimExpr,
        lanes: int,
        gathers: bool,
    ) -> None:
        self.rewriter = rewriter
        self.machine = machine
        self.base = base
        self.lanes = lanes
        self.gathers = gathers
        self.lane = E.Var(f"{var.name}_lane", var.dtype)
        rewriter.indices.bind(self.lane, 0, lanes - 1)
        self.of_lane = {var: base + self.lane}
        self.vectors: dict[E.Var, E.Var] = {var: self.lane}

    def depends(self, expression: E.PrimExpr) -> bool:
        return not self.rewriter.indices.variables(expression).isdisjoint(self.vectors)

    def statement(self, statement: S.Stmt) -> S.Stmt:
        handler = _STATEMENTS.get(type(statement))
        if handler is None:
            raise NoVectorForm
        return handler(self, statement)

    def vector(self, expression: E.PrimExpr) -> E.PrimExpr:
        """The expression for all lanes, as a vector also where they agree."""
        value = self.value(expression)
        if dtypes.lanes(value.dtype) == 1:
            return E.Broadcast(value, self.lanes)
        return value

    def value(self, expression: E.PrimExpr) -> E.PrimExpr:
        """The expression for all lanes; a scalar where it does not depend on the lane."""
        dtype = expression.dtype
        if dtypes.lanes(dtype) > 1:
            raise NoVectorForm
        if dtypes.kind(dtype) == "bfloat" and not self.machine.emulates(dtype):
            raise NoVectorForm
        if not self.depends(expression):
            return expression
        handler = _EXPRESSIONS.get(type(expression))
        if handler is None:
            raise NoVectorForm
        return handler(self, expression)

    def wide(self, dtype: str) -> str:
        return dtypes.with_lanes(dtype, self.lanes)

    def index(self, index: E.PrimExpr, longest: int) -> E.PrimExpr:
        """An index as a ramp, without gathers of a stride of up to `longest`; a scalar where it
        does not depend on the lane."""
        if not self.depends(index):
            return index
        if set(self.vectors) - set(self.of_lane) & self.rewriter.indices.variables(index):
            raise NoVectorForm
        indices = self.rewriter.indices
        whole = indices.sum_of(self.rewriter.with_values(index, self.of_lane))
        stride, rest = whole.terms.get(self.lane, 0), whole.without(self.lane)
        if any(self.lane in indices.variables(atom) for atom in rest.terms):
            raise NoVectorForm
        first = indices.expression(rest)
        if stride == 0:
            return first
        if not (1 <= stride <= longest or self.gathers):
            raise NoVectorForm
        return E.Ramp(first, const(stride, first.dtype), self.lanes)

    def place(self, access: Access) -> tuple[E.PrimExpr, ...]:
        """The indices of an access, of which the last alone can be a ramp."""
        longest = 1 if isinstance(access, S.BufferStore) or self.fits(access.buffer) else 2
        indices = tuple(self.index(index, longest) for index in access.indices)
        if any(dtypes.lanes(index.dtype) > 1 for index in indices[:-1]):
            raise NoVectorForm
        return indices

    def fits(self, buffer: Buffer) -> bool:
        """Whether a buffer may come to live in registers, which have no vectors that overlap with
        others in part."""
        shape = constant_shape(buffer)
        if shape is None or buffer in self.rewriter.function.parameter_buffers:
            return False
        return prod(shape) * self.machine.size_of(buffer.dtype) <= self.machine.register_bytes


def _store(lowering: VectorLowering, store: S.BufferStore) -> S.Stmt:
    indices = lowering.place(store)
    if not indices or dtypes.lanes(indices[-1].dtype) == 1:
        raise NoVectorForm
    return replace(store, indices=indices, value=lowering.vector(store.value))


def _branch(lowering: VectorLowering, branch: S.IfThenElse) -> S.Stmt:
    if lowering.depends(branch.condition):
        raise NoVectorForm
    other = branch.else_case
    return replace(
        branch,
        then_case=lowering.statement(branch.then_case),
        else_case=None if other is None else lowering.statement(other),
    )


def _loop(lowering: VectorLowering, loop: S.For) -> S.Stmt:
    if lowering.depends(loop.min) or lowering.depends(loop.extent):
        raise NoVectorForm
    return replace(loop, body=lowering.statement(loop.body))


def _let(lowering: VectorLowering, let: S.LetStmt) -> S.Stmt:
    if not lowering.depends(let.value):
        return replace(let, body=lowering.statement(let.body))
    value = lowering.vector(let.value)
    var = E.Var(let.var.name, value.dtype)
    lowering.vectors[let.var] = var
    body = lowering.statement(let.body)
    del lowering.vectors[let.var]  # Another copy of the body may define it as a scalar.
    return S.LetStmt(var, value, body, span=let.span)


_STATEMENTS: dict[type, Callable[[VectorLowering, Any], S.Stmt]] = {
    S.BufferStore: _store,
    S.SeqStmt: lambda lowering, sequence: S.sequence(*map(lowering.statement, sequence.seq)),
    S.IfThenElse: _branch,
    S.For: _loop,
    S.LetStmt: _let,
}


def _variable(lowering: VectorLowering, var: E.Var) -> E.PrimExpr:
    if var in lowering.of_lane:
        return E.Ramp(lowering.base, const(1, var.dtype), lowering.lanes)
    return lowering.vectors[var]


def _load(lowering: VectorLowering, load: E.BufferLoad) -> E.PrimExpr:
    return replace(load, indices=lowering.place(load))


def _binary(lowering: VectorLowering, expression: E.BinaryExpr) -> E.PrimExpr:
    if not lowering.machine.vectors_have(type(expression), expression.a.dtype):
        raise NoVectorForm
    return type(expression)(lowering.vector(expression.a), lowering.vector(expression.b))


def _cast(lowering: VectorLowering, expression: E.Cast) -> E.PrimExpr:
    if not lowering.machine.has_vector_cast(expression.value.dtype, expression.dtype):
        raise NoVectorForm
    return E.Cast(lowering.wide(expression.dtype), lowering.vector(expression.value))


def _select(lowering: VectorLowering, expression: E.Select) -> E.PrimExpr:
    yes, no = lowering.vector(expression.true_value), lowering.vector(expression.false_value)
    if not lowering.depends(expression.condition):
        return E.Select(expression.condition, yes, no)
    return E.Select(lowering.vector(expression.condition), yes, no)


def _can_be_speculated(lowering: VectorLowering, expression: E.PrimExpr) -> bool:
    """Whether an expression may be computed although its condition does not hold: everything that
    it reads is inside its buffer, and nothing divides by zero."""
    if may_trap(expression):
        return False
    in_bounds = lowering.rewriter.indices.in_bounds
    loads = lowering.rewriter.accesses.of(expression)
    return all(in_bounds(load.buffer, load.indices) for load in loads)


def _call(lowering: VectorLowering, call: E.Call) -> E.PrimExpr:
    name = operator_name(call)
    if name == "if_then_else":
        condition, yes, no = call.args
        if not lowering.depends(condition):
            sides = lowering.vector(yes), lowering.vector(no)
            return E.Call(lowering.wide(call.dtype), call.op, (condition, *sides), span=call.span)
        if not (_can_be_speculated(lowering, yes) and _can_be_speculated(lowering, no)):
            raise NoVectorForm
        return _select(lowering, E.Select(condition, yes, no))
    machine = lowering.machine
    if name not in OPERATORS or not machine.vectors_have(name, call.args[0].dtype):
        raise NoVectorForm
    if OPERATORS[name].precedence == SHIFT and machine.shifts_alike:
        if lowering.depends(call.args[1]):
            raise NoVectorForm
    args = tuple(lowering.vector(argument) for argument in call.args)
    return E.Call(lowering.wide(call.dtype), call.op, args, span=call.span)


def _let_in_expression(lowering: VectorLowering, let: E.Let) -> E.PrimExpr:
    if not lowering.depends(let.value):
        return replace(let, body=lowering.value(let.body))
    value = lowering.vector(let.value)
    var = E.Var(let.var.name, value.dtype)
    lowering.vectors[let.var] = var
    body = lowering.vector(let.body)
    del lowering.vectors[let.var]
    return E.Let(var, value, body)


_EXPRESSIONS: dict[type, Callable[[VectorLowering, Any], E.PrimExpr]] = {
    E.Var: _variable,
    E.BufferLoad: _load,
    E.Not: lambda lowering, expression: E.Not(lowering.vector(expression.a)),
    E.Cast: _cast,
    E.Select: _select,
    E.Call: _call,
    E.Let: _let_in_expression,
    **dict.fromkeys(BINARY_NODES, _binary),
}
