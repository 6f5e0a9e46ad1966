"""The pass `tvm.tir.transform.VectorizeLoop`: vectors of the loops that are marked, whole, whatever
a machine has. (`mlcweb.lower.optimize.vectorize` is the pass of the pipeline.)

A statement that has no vector form becomes a serial loop over the lanes: one whose condition or
choice differs between lanes, or that calls something else than an operator. For machines whose
vectors have no fixed length, a loop of `T.vscale() * n` iterations becomes a scalable vector, and
conditions that the last lanes do not fulfil become masks of accesses.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.node import replace
from mlcweb.ir.transform import PassContext
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.lower.options import PREDICATION
from mlcweb.lower.predicate_accesses import predicated
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, const, is_const_int, multiply, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.constructors import make_ramp
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
        DiagnosticError: such a loop does not begin at 0, has a number of iterations that no vector
            of the target has, or has a `while` in it.
    """
    target = func.attrs.get("target") or provided(__name__, "current_target")()
    return func.with_body(_LoopVectorization(target).rewrite(func.body))


def _has_scalable_vectors(target: Any) -> bool:
    """Whether a target has Arm's scalable vector extension, or RISC-V's."""
    options = getattr(target, "attrs", {})
    features = options.get("mattr", ())
    return "+sve" in features or ("+v" in features and "riscv" in options.get("mtriple", ""))


class _LoopVectorization(Mutator):
    def __init__(self, target: Any) -> None:
        self.target = target

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
            scalable = any(operator_name(node) == "vscale" for node in walk(extent))
            if not (scalable and _has_scalable_vectors(self.target)):
                raise DiagnosticError(
                    f"Failed to vectorize loop with extent {extent} for target {self.target}: "
                    f'vectors have a constant number of lanes there; split "{name}" by a factor',
                    loop.span,
                )
        elif extent.value < 2:
            return self.rewrite(replace(loop, kind=S.ForKind.SERIAL))
        index = make_ramp(const(0, loop.loop_var.dtype), 1, extent)
        masks = PassContext.current().config.get(PREDICATION)
        if masks is None:
            masks = _has_scalable_vectors(self.target)
        return _Lanes(loop.loop_var, index, masks).rewrite(loop.body)


class _Lanes(Mutator):
    """What the iterations of a loop do, side by side. What is the same in all lanes stays a scalar,
    and is broadcast where it meets a vector. `masks` says that accesses may be masked."""

    def __init__(self, var: E.Var, index: E.Ramp, masks: bool) -> None:
        self.var = var
        self.masks = masks
        self.lanes = index.lanes
        self.vectors: dict[E.Var, E.PrimExpr] = {var: index}
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
        start, count = const(0, lane.dtype), cast(lane.dtype, self.lanes)
        body = substitute(statement, {self.var: lane})
        return S.For(lane, start, count, S.ForKind.SERIAL, body, span=statement.span)

    def scalar(self, expression: E.PrimExpr) -> E.PrimExpr:
        """What has to be the same in all lanes."""
        new = self.rewrite(expression)
        if dtypes.lane_count(new.dtype) != dtypes.lane_count(expression.dtype):
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
        dtype = dtypes.like(node.dtype, value.dtype)
        return node if value is node.value else E.Cast(dtype, value)

    @on(E.Ramp)
    def ramp(self, node: E.Ramp) -> E.PrimExpr:
        base, stride = self.rewrite(node.base), self.scalar(node.stride)
        if dtypes.lane_count(base.dtype) != 1:
            if not isinstance(self.lanes, int):
                raise DiagnosticError(
                    "Creating scalable vectors from existing vectors is not supported."
                )
            if not isinstance(node.lanes, int):
                raise DiagnosticError(
                    "Vectorizing over existing scalable vectors is not supported."
                )
        if isinstance(base, E.Ramp) and isinstance(base.lanes, int) and isinstance(node.lanes, int):
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
        return replace(call, args=tuple(args), dtype=dtypes.like(call.dtype, args[-1].dtype))

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
            last = add(multiply(indices[-1], cast(indices[-1].dtype, self.lanes)), self.var)
            indices = (*indices[:-1], last)
        if not indices:
            return indices
        new = (*map(self.scalar, indices[:-1]), self.rewrite(indices[-1]))
        return access.indices if all(map(is_, new, access.indices)) else new

    @on(E.Let, S.LetStmt)
    def let(self, let: Any) -> Any:
        value = self.rewrite(let.value)
        if dtypes.lane_count(value.dtype) == dtypes.lane_count(let.var.dtype):
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
        is_vector = dtypes.lane_count(index.dtype) != 1
        if not is_vector and (dtypes.lane_count(value.dtype) != 1 or reads):
            raise _NoVectorFormError  # lanes store into one element
        if is_vector and not isinstance(index, E.Ramp) and reads:
            raise _NoVectorFormError  # lanes may update one element
        if indices is store.indices and value is store.value:
            return store
        buffer = self.copies.get(store.buffer, store.buffer)
        if dtypes.lane_count(buffer.dtype) < 0:
            raise DiagnosticError(
                "Vectorizing over scalable buffer elements is not supported in vectorizer."
            )
        value = _broadcast(value, dtypes.vector_at(buffer.dtype, index.dtype))
        return replace(store, buffer=buffer, indices=indices, value=value)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        condition = self.rewrite(branch.condition)
        if dtypes.lane_count(condition.dtype) == 1:
            return self.control(branch)
        if self.masks and branch.else_case is None:
            masked = predicated(condition, self.rewrite(branch.then_case))
            if masked is not None:
                return masked
        raise _NoVectorFormError

    @on(S.Evaluate, S.AssertStmt, S.AttrStmt, S.For)
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
        last = multiply(buffer.shape[-1], cast(buffer.shape[-1].dtype, self.lanes))
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
        if isinstance(b, E.Ramp) and dtypes.lane_count(a.dtype) == 1:
            return E.Ramp(combine(a, b.base), combine(zero, b.stride), b.lanes)
        if isinstance(a, E.Ramp) and dtypes.lane_count(b.dtype) == 1:
            return E.Ramp(combine(a.base, b), a.stride, a.lanes)
    if kind is E.Mul:
        for ramp, factor in ((a, b), (b, a)):
            if isinstance(ramp, E.Ramp) and dtypes.lane_count(factor.dtype) == 1:
                if Analyzer().can_prove(E.GT(factor, zero)):
                    base, stride = (multiply(part, factor) for part in (ramp.base, ramp.stride))
                    return E.Ramp(base, stride, ramp.lanes)
    return None


def _alike(operands: Iterable[E.PrimExpr]) -> list[E.PrimExpr]:
    """Operands with the lanes of that which has most."""
    operands = list(operands)
    longest = max((operand.dtype for operand in operands), key=lambda t: abs(dtypes.lane_count(t)))
    return [_broadcast(operand, longest) for operand in operands]


def _broadcast(value: E.PrimExpr, dtype: str) -> E.PrimExpr:
    """A value with the lanes of a type."""
    have, count = dtypes.lane_count(value.dtype), dtypes.lane_count(dtype)
    if have == count:
        return value
    if isinstance(value, E.Broadcast) and have > 0 and count % have == 0:
        return E.Broadcast(value.value, E.lanes_of(dtype))
    if have != 1:
        raise _NoVectorFormError
    return E.Broadcast(value, E.lanes_of(dtype))
