"""The pass `tvm.tir.transform.VectorizeLoop`: vectors of the loops that are marked, whole, whatever
a machine has. (`mlcweb.lower.optimize.vectorize` is the pass of the pipeline.)

A statement that has no vector form becomes a serial loop over the lanes: one whose condition or
choice differs between lanes, or that calls something else than an operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, find_nodes, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, is_const_int, multiply, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import BINARY_NODES, OPERATORS, operator_name
from mlcweb.tir.substitute import reads_memory, substitute, uses_any

_FOR_VECTORS = {*OPERATORS, "fma", "clz", "q_multiply_shift"} - {"if_then_else"}
"""The intrinsics that compute vectors element by element."""


class _NoVectorFormError(Exception):
    """A statement has to be computed for one lane after the other."""


def vectorize_loop(func: PrimFunc) -> PrimFunc:
    """Make vectors of the loops that are marked `vectorized`.

    Raises:
        DiagnosticError: such a loop does not begin at 0, has no constant number of iterations, or
            has a `while` in it.
    """
    return func.with_body(_LoopVectorization().rewrite(func.body))


class _LoopVectorization(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.kind != S.ForKind.VECTORIZED:
            return self.rewrite_children(loop)
        name, extent = loop.loop_var.name, loop.extent
        if not is_const_int(loop.min, 0):
            raise DiagnosticError(
                f'The vectorized loop "{name}" begins at {loop.min}, not at 0', loop.span
            )
        if not isinstance(extent, E.IntImm):
            raise DiagnosticError(
                f'The vectorized loop "{name}" has {extent} iterations; vectors have a constant '
                "number of lanes: split it by a factor",
                loop.span,
            )
        if extent.value < 2:
            return self.rewrite(replace(loop, kind=S.ForKind.SERIAL))
        return _Lanes(loop.loop_var, extent.value).rewrite(loop.body)


class _Lanes(Mutator):
    """What the iterations of a loop do, side by side. What is the same in all lanes stays a scalar,
    and is broadcast where it meets a vector."""

    def __init__(self, var: E.Var, lanes: int) -> None:
        self.var = var
        self.lanes = lanes
        ramp = E.Ramp(const(0, var.dtype), const(1, var.dtype), lanes)
        self.vectors: dict[E.Var, E.PrimExpr] = {var: ramp}
        self.copies: dict[Buffer, Buffer] = {}
        """Buffers that each lane has of its own -> one with those of all lanes."""

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return super().rewrite(node)
        try:
            return super().rewrite(node)
        except _NoVectorFormError:
            accesses = find_nodes(node, E.BufferLoad, S.BufferStore)
            if uses_any(node, self.vectors.keys() - {self.var}) or any(
                access.buffer in self.copies for access in accesses
            ):
                raise  # what it uses is there for all lanes at once
            return self.lane_by_lane(node)

    def lane_by_lane(self, statement: S.Stmt) -> S.Stmt:
        lane = E.Var(f"{self.var.name}_s", self.var.dtype)
        start, count = const(0, lane.dtype), const(self.lanes, lane.dtype)
        body = substitute(statement, {self.var: lane})
        return S.For(lane, start, count, S.ForKind.SERIAL, body, span=statement.span)

    def scalar(self, expression: E.PrimExpr) -> E.PrimExpr:
        """What has to be the same in all lanes."""
        new = self.rewrite(expression)
        if dtypes.lanes(new.dtype) != dtypes.lanes(expression.dtype):
            raise _NoVectorFormError
        return new

    # Expressions

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        return self.vectors.get(var, var)

    @on(*BINARY_NODES, E.Select)
    def operation(self, node: Any) -> E.PrimExpr:
        operands = [getattr(node, name) for name in node.child_fields]
        new = list(map(self.rewrite, operands))
        if all(map(is_, new, operands)):
            return node
        ramp = _combined(type(node), new)
        return type(node)(*_alike(new)) if ramp is None else ramp

    @on(E.Not)
    def negation(self, node: E.Not) -> E.PrimExpr:
        a = self.rewrite(node.a)
        return node if a is node.a else E.Not(a)

    @on(E.Cast)
    def conversion(self, node: E.Cast) -> E.PrimExpr:
        value = self.rewrite(node.value)
        dtype = dtypes.with_lanes(node.dtype, dtypes.lanes(value.dtype))
        return node if value is node.value else E.Cast(dtype, value)

    @on(E.Ramp)
    def ramp(self, node: E.Ramp) -> E.PrimExpr:
        base, stride = self.rewrite(node.base), self.scalar(node.stride)
        if isinstance(base, E.Ramp):
            if not Analyzer().can_prove_equal(base.stride, multiply(stride, node.lanes)):
                raise _NoVectorFormError
            return E.Ramp(base.base, stride, base.lanes * node.lanes)
        return replace(node, base=self.scalar(node.base), stride=stride)

    @on(E.Broadcast, E.Shuffle)
    def vector(self, node: Any) -> Any:
        new = self.rewrite_children(node)
        if new is not node:
            raise _NoVectorFormError
        return node

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        name = operator_name(call)
        if name in _FOR_VECTORS:
            args = _alike(map(self.rewrite, call.args))
        elif name == "if_then_else":
            args = [self.scalar(call.args[0]), *_alike(map(self.rewrite, call.args[1:]))]
        else:
            args = list(map(self.scalar, call.args))
            if reads_memory(call):
                raise _NoVectorFormError  # it may have an effect, once for each lane
        if all(map(is_, args, call.args)):
            return call
        return replace(call, args=tuple(args), dtype=_with_lanes_of(args[-1], call.dtype))

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        indices = self.indices_of(load)
        if indices is load.indices:
            return load
        return E.BufferLoad(self.copies.get(load.buffer, load.buffer), indices, span=load.span)

    def indices_of(self, access: E.BufferLoad | S.BufferStore) -> tuple[E.PrimExpr, ...]:
        """The indices of an access, of which the last alone may be a vector."""
        indices = access.indices
        if access.buffer in self.copies:
            last = add(multiply(indices[-1], const(self.lanes, indices[-1].dtype)), self.var)
            indices = (*indices[:-1], last)
        if not indices:
            return indices
        new = (*map(self.scalar, indices[:-1]), self.rewrite(indices[-1]))
        return access.indices if all(map(is_, new, access.indices)) else new

    @on(E.Let, S.LetStmt)
    def let(self, let: Any) -> Any:
        value = self.rewrite(let.value)
        if dtypes.lanes(value.dtype) == dtypes.lanes(let.var.dtype):
            return replace(let, value=value, body=self.rewrite(let.body))
        var = self.vectors[let.var] = E.Var(let.var.name, value.dtype, span=let.var.span)
        try:
            return replace(let, var=var, value=value, body=self.rewrite(let.body))
        finally:
            del self.vectors[let.var]

    # Statements

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        indices, value = self.indices_of(store), self.rewrite(store.value)
        index = indices[-1] if indices else const(0)
        reads = any(load.buffer is store.buffer for load in find_nodes(store.value, E.BufferLoad))
        if dtypes.lanes(index.dtype) == 1 and (dtypes.lanes(value.dtype) > 1 or reads):
            raise _NoVectorFormError  # lanes store into one element
        if dtypes.lanes(index.dtype) > 1 and not isinstance(index, E.Ramp) and reads:
            raise _NoVectorFormError  # lanes may update one element
        if indices is store.indices and value is store.value:
            return store
        buffer = self.copies.get(store.buffer, store.buffer)
        count = dtypes.lanes(index.dtype) * dtypes.lanes(buffer.dtype)
        return replace(store, buffer=buffer, indices=indices, value=_broadcast(value, count))

    @on(S.Evaluate, S.IfThenElse, S.AssertStmt, S.AttrStmt, S.For)
    def control(self, statement: Any) -> S.Stmt:
        """Expressions of statements that are for all lanes alike."""
        fields = {name: getattr(statement, name) for name in statement.child_fields}
        parts = {name: part for name, part in fields.items() if isinstance(part, E.PrimExpr)}
        bound = statement.loop_var if isinstance(statement, S.For) else None
        for part in parts.values():
            if part is not bound:
                self.scalar(part)
        return self.rewrite_children(statement)

    @on(S.While)
    def while_loop(self, loop: S.While) -> S.Stmt:
        raise DiagnosticError("A while loop inside a vectorized loop is not supported", loop.span)

    @on(S.BlockRealize)
    def block(self, realize: S.BlockRealize) -> S.Stmt:
        raise _NoVectorFormError

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        """Memory of each lane: the elements of all lanes are neighbours."""
        buffer = statement.buffer
        if not buffer.shape or buffer.strides or uses_any(statement.body, {buffer.data}):
            raise _NoVectorFormError
        last = multiply(buffer.shape[-1], const(self.lanes, buffer.shape[-1].dtype))
        copies = replace(buffer, shape=(*map(self.scalar, buffer.shape[:-1]), self.scalar(last)))
        self.copies[buffer] = copies
        try:
            return replace(statement, buffer=copies, body=self.rewrite(statement.body))
        finally:
            del self.copies[buffer]


def _combined(kind: type[E.PrimExpr], operands: list[E.PrimExpr]) -> E.Ramp | None:
    """A ramp where an operation with a scalar makes one of a ramp."""
    if len(operands) != 2:
        return None
    (a, b), zero = operands, const(0, dtypes.element_of(operands[0].dtype))
    if kind in (E.Add, E.Sub):
        combine = add if kind is E.Add else subtract
        if isinstance(b, E.Ramp) and dtypes.lanes(a.dtype) == 1:
            return E.Ramp(combine(a, b.base), combine(zero, b.stride), b.lanes)
        if isinstance(a, E.Ramp) and dtypes.lanes(b.dtype) == 1:
            return E.Ramp(combine(a.base, b), a.stride, a.lanes)
    if kind is E.Mul:
        for ramp, factor in ((a, b), (b, a)):
            if isinstance(ramp, E.Ramp) and dtypes.lanes(factor.dtype) == 1:
                if Analyzer().can_prove(E.GT(factor, zero)):
                    base, stride = (multiply(part, factor) for part in (ramp.base, ramp.stride))
                    return E.Ramp(base, stride, ramp.lanes)
    return None


def _alike(operands: Iterable[E.PrimExpr]) -> list[E.PrimExpr]:
    """Operands with the lanes of that which has most."""
    operands = list(operands)
    lanes = max(dtypes.lanes(operand.dtype) for operand in operands)
    return [_broadcast(operand, lanes) for operand in operands]


def _broadcast(value: E.PrimExpr, lanes: int) -> E.PrimExpr:
    have = dtypes.lanes(value.dtype)
    if have == lanes:
        return value
    if isinstance(value, E.Broadcast) and lanes % have == 0:
        return E.Broadcast(value.value, lanes)
    if have > 1:
        raise _NoVectorFormError
    return E.Broadcast(value, lanes)


def _with_lanes_of(value: E.PrimExpr, dtype: str) -> str:
    return dtypes.with_lanes(dtype, dtypes.lanes(value.dtype))
