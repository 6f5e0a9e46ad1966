"""Copies to shared memory that go on while a thread computes: `cp.async` of NVIDIA's GPUs.

A program has them as stores under `async_scope`, with the attributes of `async_stages.py` around
them, or writes the instructions: `T.ptx_cp_async`, `T.ptx_commit_group`, `T.ptx_wait_group`.
Lowering knows one form: a copy is a store under `async_scope`, and a call commits or waits. A
language that has the instructions writes them, a simulated GPU watches who reads what has not
arrived, and all others copy at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlcweb.analysis.threads import is_shared
from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.ir.transform import PassContext, register_option
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.async_stages import ASYNC_SCOPE, COMMIT, IN_FLIGHT, WAIT
from mlcweb.lower.statement_simplifier import NOTHING, is_nothing
from mlcweb.lower.thread_sync import barrier
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, constant_value, is_const_int
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import call
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import substitute, uses

USE_ASYNC_COPY = register_option("tir.use_async_copy", bool)
"""Whether stages that a pipeline names asynchronous are so; else they copy at once."""

SIZES = (4, 8, 16)
"""How many bytes an instruction copies."""

_CALLS = ("ptx_cp_async", "ptx_commit_group", "ptx_wait_group")
_SCOPES = (ASYNC_SCOPE, COMMIT, WAIT, IN_FLIGHT)


def has_async_copies(func: PrimFunc) -> bool:
    """Whether a function has asynchronous copies, as attributes or as instructions."""
    return any(
        part.attr_key in _SCOPES if isinstance(part, S.AttrStmt) else _instruction(part) != ""
        for part in S.statements_in(func.body)
    )


def _instruction(statement: S.Stmt) -> str:
    call = S.called_by(statement, _CALLS)
    return "" if call is None else operator_name(call)


def copies_at_once(func: PrimFunc) -> PrimFunc:
    """The function with stores in the place of asynchronous copies, and nobody waiting."""
    if not has_async_copies(func):
        return func
    return func.with_body(_AtOnce(func.buffers_by_data()).rewrite(func.body))


def commits_and_waits(func: PrimFunc) -> PrimFunc:
    """The function with calls that commit and wait in the place of attributes; asynchronous copies
    are stores under `async_scope`. Where a program has the attributes alone, it has none of these
    unless the option "tir.use_async_copy" is set."""
    parts = list(S.statements_in(func.body))
    if not (any(map(_instruction, parts)) or PassContext.current().config.get(USE_ASYNC_COPY)):
        return copies_at_once(func)
    return watched_copies(func)


def watched_copies(func: PrimFunc) -> PrimFunc:
    """The same whatever the option says."""
    if not has_async_copies(func):
        return func
    queues = {constant_value(part.value) for part in S.find_attributes(func.body, COMMIT)}
    lowering = _CommitsAndWaits(func.buffers_by_data(), len(queues) < 2)
    return func.with_body(lowering.rewrite(func.body))


class _Copies(Mutator):
    """Has instructions that copy be stores under `async_scope`."""

    def __init__(self, buffers: Mapping[E.Var, Buffer]) -> None:
        self.buffers = buffers

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        if _instruction(statement) != "ptx_cp_async":
            return statement
        copied = self.stores(statement.value)
        return statement if copied is None else self.copy(copied)

    def copy(self, store: S.Stmt) -> S.Stmt:
        raise NotImplementedError

    def stores(self, copy: Any) -> S.Stmt | None:
        """What an instruction copies, as a loop; None for memory that is not known."""
        target, source = (self.flat(data) for data in (copy.args[0], copy.args[2]))
        if target is None or source is None or target.dtype != source.dtype:
            return None
        count, rest = divmod(constant_value(copy.args[4]) or 0, dtypes.size_in_bytes(target.dtype))
        if not count or rest:
            return None
        lane = E.Var("lane", copy.args[1].dtype)
        value: E.PrimExpr = E.BufferLoad(source, (add(copy.args[3], lane),))
        store: S.Stmt = S.BufferStore(target, value, (add(copy.args[1], lane),), span=copy.span)
        if len(copy.args) > 5:
            zero = replace(store, value=const(0, target.dtype))
            store = S.IfThenElse(copy.args[5], store, zero)
        extent = const(int(count), lane.dtype)
        return S.For(lane, const(0, lane.dtype), extent, S.ForKind.VECTORIZED, store)

    def flat(self, data: Any) -> Buffer | None:
        """The buffer at an address, as one of one dimension."""
        buffer = self.buffers.get(data) if isinstance(data, E.Var) else None
        shape = None if buffer is None else constant_shape(buffer)
        if buffer is None or shape is None or buffer.strides:
            return None
        if len(shape) == 1:
            return buffer
        return replace(buffer, shape=(const(prod(shape), "int32"),))


class _AtOnce(_Copies):
    def copy(self, store: S.Stmt) -> S.Stmt:
        return store

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key in _SCOPES:
            return self.rewrite(statement.body)
        return self.rewrite_children(statement)

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        waits = _instruction(statement) in ("ptx_commit_group", "ptx_wait_group")
        return NOTHING if waits else super().evaluate(statement)


class _CommitsAndWaits(_Copies):
    """`counts`: whether all groups are of one queue, as the hardware has it; else all are waited
    for."""

    def __init__(self, buffers: Mapping[E.Var, Buffer], counts: bool) -> None:
        super().__init__(buffers)
        self.counts = counts

    def copy(self, store: S.Stmt) -> S.Stmt:
        return S.AttrStmt(0, ASYNC_SCOPE, const(1), store)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        """A count has to be a number, which it is in each iteration."""
        extent = constant_value(loop.extent)
        counts = S.find_attributes(loop.body, IN_FLIGHT)
        counted = self.counts and any(uses(count.value, loop.loop_var) for count in counts)
        if not counted or loop.kind is not S.ForKind.UNROLLED or not isinstance(extent, int):
            return self.rewrite_children(loop)
        numbers = (add(loop.min, const(n, loop.loop_var.dtype)) for n in range(extent))
        copies = (substitute(loop.body, {loop.loop_var: number}) for number in numbers)
        return S.sequence(*(self.rewrite(fresh_statement(copy)) for copy in copies))

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key == COMMIT:
            commit = S.Evaluate(call("void", "ptx_commit_group"))
            return S.sequence(self.rewrite(statement.body), commit)
        if statement.attr_key != WAIT:
            return self.rewrite_children(statement)
        inner = statement.body
        count: E.PrimExpr = const(0)
        if isinstance(inner, S.AttrStmt) and inner.attr_key == IN_FLIGHT:
            count, inner = Analyzer().simplify(inner.value), inner.body
        number = count.value if self.counts and isinstance(count, E.IntImm) else 0
        wait = S.Evaluate(call("void", "ptx_wait_group", const(max(number, 0))))
        # A thread waits for its own copies; those of others have arrived behind a barrier.
        body = self.rewrite(inner)
        return S.sequence(wait, barrier(), *(() if is_nothing(body) else (body,)))


def inject_ptx_async_copy(func: PrimFunc) -> PrimFunc:
    """`T.ptx_cp_async` for the copies of 4, 8 or 16 bytes from global to shared memory that are
    under `async_scope`, in a function without blocks whose buffers have one dimension. Others stay
    stores, without the scope. Zero may take the place of what a condition leaves out."""
    return func.with_body(_Instructions().rewrite(func.body))


class _Instructions(Mutator):
    def __init__(self) -> None:
        self.in_scope = False
        self.analyzer = Analyzer()

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key != ASYNC_SCOPE:
            return self.rewrite_children(statement)
        outer, self.in_scope = self.in_scope, True
        body = self.rewrite(statement.body)
        self.in_scope = outer
        return body

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.analyzer.bind(loop.loop_var, loop.domain)
        lanes = constant_value(loop.extent)
        if self.in_scope and loop.kind is S.ForKind.VECTORIZED and isinstance(lanes, int):
            copied = self.copied(loop.body, lanes, loop)
            if copied is not None:
                return copied
        return self.rewrite_children(loop)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        return (self.copied(store) if self.in_scope else None) or store

    def copied(self, statement: S.Stmt, lanes: int = 1, loop: S.For | None = None) -> S.Stmt | None:
        """The instruction that a store is, or a loop of one over lanes; None where it is none."""
        predicate: E.PrimExpr | None = None
        if isinstance(statement, S.IfThenElse):
            if not _stores_zero(statement.else_case):
                return None
            predicate, statement = statement.condition, statement.then_case
        if not isinstance(statement, S.BufferStore):
            return None
        value = statement.value
        if operator_name(value) == "if_then_else" and _is_zero(value.args[2]):  # type: ignore[attr-defined]
            predicate, value = value.args[:2]  # type: ignore[attr-defined]
        if not isinstance(value, E.BufferLoad) or value.buffer.scope() != "global":
            return None
        if (
            not is_shared(statement.buffer)
            or len(value.indices) != 1
            or len(statement.indices) != 1
        ):
            return None
        firsts = [self.first(part.indices[0], lanes, loop) for part in (statement, value)]
        target, source = firsts
        if target is None or source is None or target[1] != source[1]:
            return None
        if predicate is not None and loop is not None and uses(predicate, loop.loop_var):
            return None
        size = target[1] * dtypes.size_in_bytes(value.buffer.dtype)
        if size not in SIZES or statement.buffer.dtype != value.buffer.dtype:
            return None
        arguments = [statement.buffer.data, target[0], value.buffer.data, source[0], const(size)]
        if predicate is not None:
            arguments.append(predicate)
        copy = call(statement.buffer.dtype, "ptx_cp_async", *arguments)
        return S.Evaluate(copy, span=statement.span)

    def first(
        self, index: E.PrimExpr, lanes: int, loop: S.For | None
    ) -> tuple[E.PrimExpr, int] | None:
        """The first of neighbouring elements, at a multiple of their number, and that number."""
        if isinstance(index, E.Ramp):
            if loop is not None or not is_const_int(index.stride, 1):
                return None
            first, lanes = index.base, dtypes.lanes(index.dtype)
        elif loop is not None:
            first = self.analyzer.simplify(substitute(index, {loop.loop_var: loop.min}))
            step = self.analyzer.simplify(index - first - loop.loop_var + loop.min)
            if not is_const_int(step, 0) or uses(first, loop.loop_var):
                return None
        else:
            return index, 1
        aligned = is_const_int(self.analyzer.simplify(first % lanes), 0)
        return (first, lanes) if aligned else None


def _is_zero(value: E.PrimExpr) -> bool:
    if isinstance(value, E.Broadcast):
        return _is_zero(value.value)
    return constant_value(value) == 0 and str(constant_value(value))[0] != "-"


def _stores_zero(statement: Any) -> bool:
    return isinstance(statement, S.BufferStore) and _is_zero(statement.value)
