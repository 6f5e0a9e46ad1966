"""Statements in vector form: what the iterations of a chunk of a loop do, side by side."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Dispatcher, on
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, may_trap
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.contents import Access, accesses_in, variables_used
from mlcweb.tir.operators import BINARY_NODES, OPERATORS, SHIFT, operator_name

if TYPE_CHECKING:
    from mlcweb.lower.optimize.rewriter import Rewriter


class NoVectorForm(Exception):
    """A loop cannot be vectorised."""


class VectorLowering(Dispatcher):
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
        return not variables_used(expression).isdisjoint(self.vectors)

    def lowered(self, node: Any) -> Any:
        """A statement for all lanes, or an expression that depends on the lane."""
        handler = self.table.get(type(node))
        if handler is None:
            raise NoVectorForm
        return handler(self, node)

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
        return self.lowered(expression) if self.depends(expression) else expression

    def wide(self, dtype: str) -> str:
        return dtypes.with_lanes(dtype, self.lanes)

    def index(self, index: E.PrimExpr, longest: int) -> E.PrimExpr:
        """An index as a ramp, without gathers of a stride of up to `longest`; a scalar where it
        does not depend on the lane."""
        if not self.depends(index):
            return index
        if set(self.vectors) - set(self.of_lane) & variables_used(index):
            raise NoVectorForm
        indices = self.rewriter.indices
        whole = indices.sum_of(self.rewriter.with_values(index, self.of_lane))
        stride, rest = whole.terms.get(self.lane, 0), whole.without(self.lane)
        if any(self.lane in variables_used(atom) for atom in rest.terms):
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

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        indices = self.place(store)
        if not indices or dtypes.lanes(indices[-1].dtype) == 1:
            raise NoVectorForm
        return replace(store, indices=indices, value=self.vector(store.value))

    @on(S.SeqStmt)
    def sequence(self, sequence: S.SeqStmt) -> S.Stmt:
        return S.sequence(*map(self.lowered, sequence.seq))

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        if self.depends(branch.condition):
            raise NoVectorForm
        other = branch.else_case and self.lowered(branch.else_case)
        return replace(branch, then_case=self.lowered(branch.then_case), else_case=other)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if self.depends(loop.min) or self.depends(loop.extent):
            raise NoVectorForm
        return replace(loop, body=self.lowered(loop.body))

    @on(S.LetStmt, E.Let)
    def let(self, let: Any) -> Any:
        is_statement = isinstance(let, S.LetStmt)
        if not self.depends(let.value):
            return replace(let, body=(self.lowered if is_statement else self.value)(let.body))
        value = self.vector(let.value)
        var = self.vectors[let.var] = E.Var(let.var.name, value.dtype)
        body = (self.lowered if is_statement else self.vector)(let.body)
        del self.vectors[let.var]  # Another copy of the body may define it as a scalar.
        return replace(let, var=var, value=value, body=body)

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        if var in self.of_lane:
            return E.Ramp(self.base, const(1, var.dtype), self.lanes)
        return self.vectors[var]

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        return replace(load, indices=self.place(load))

    @on(*BINARY_NODES)
    def binary(self, expression: E.BinaryExpr) -> E.PrimExpr:
        if not self.machine.vectors_have(type(expression), expression.a.dtype):
            raise NoVectorForm
        return type(expression)(self.vector(expression.a), self.vector(expression.b))

    @on(E.Not)
    def negation(self, expression: E.Not) -> E.PrimExpr:
        return E.Not(self.vector(expression.a))

    @on(E.Cast)
    def cast(self, expression: E.Cast) -> E.PrimExpr:
        if not self.machine.has_vector_cast(expression.value.dtype, expression.dtype):
            raise NoVectorForm
        return E.Cast(self.wide(expression.dtype), self.vector(expression.value))

    @on(E.Select)
    def select(self, expression: E.Select) -> E.PrimExpr:
        condition, *values = (getattr(expression, name) for name in expression.child_fields)
        if self.depends(condition):
            condition = self.vector(condition)
        return E.Select(condition, *map(self.vector, values))

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        name, args, machine = operator_name(call), call.args, self.machine
        if name == "if_then_else" and self.depends(args[0]):
            if not all(map(self.can_be_speculated, args[1:])):
                raise NoVectorForm
            return self.select(E.Select(*args))
        if name == "if_then_else":
            args = (args[0], *map(self.vector, args[1:]))
        elif name not in OPERATORS or not machine.vectors_have(name, args[0].dtype):
            raise NoVectorForm
        else:
            shifts = OPERATORS[name].precedence == SHIFT
            if shifts and machine.shifts_alike and self.depends(args[1]):
                raise NoVectorForm
            args = tuple(map(self.vector, args))
        return E.Call(self.wide(call.dtype), call.op, args, span=call.span)

    def can_be_speculated(self, expression: E.PrimExpr) -> bool:
        """Whether an expression may be computed although its condition does not hold: everything
        that it reads is inside its buffer, and nothing divides by zero."""
        in_bounds = self.rewriter.indices.in_bounds
        loads = accesses_in(expression)
        return not may_trap(expression) and all(in_bounds(a.buffer, a.indices) for a in loads)
