"""The pass `tvm.s_tir.transform.InjectVirtualThread`: what a thread does for several virtual ones.

Statements that differ between virtual threads are run for one after the other; loops and conditions
around, which do not, stay. A buffer of what differs has a part for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mlcweb.analysis.threads import has_barrier, is_shared
from mlcweb.arith import Analyzer, same_expressions
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, multiply
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import WRITE_ACCESS
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import substitute

UNROLLED = 16
"""Below so many virtual threads each has a copy of a statement without loops."""


def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """The function without launches of virtual threads; buffers of several dimensions must be flat.

    Raises:
        ThreadError: their number is not constant, not all of them reach a barrier alike, or they
            exchange data.
    """
    return func.with_body(_Launches().rewrite(func.body))


class _Launches(Mutator):
    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        new = self.rewrite_children(statement)
        if not S.is_launch(new) or not new.node.thread_tag.startswith("vthread"):
            return new
        if not isinstance(new.value, E.IntImm):
            raise ThreadError(
                f'The number of virtual threads "{new.node.var.name}" is {new.value}; it must be '
                "a constant",
                statement.span,
            )
        return _Injection(new.node.var, new.value.value, new.body).rewrite(new.body)


class _Injection(Mutator):
    """Runs a statement for the virtual threads of `var`. `inside` says whether it is one that runs
    for one of them."""

    def __init__(self, var: E.Var, count: int, body: S.Stmt) -> None:
        self.var = var
        self.count = count
        self.touched = _touched(var, body)
        self.analyzer = Analyzer()
        self.parts: dict[Buffer, Buffer] = {}
        self.sizes: dict[E.Var, int] = {}
        self.inside = False
        for statement in S.find_statements(body, S.AllocBuffer):
            if statement.buffer.data in self.touched:
                _check_private(statement.buffer, body, self.touched)
                self.sizes[statement.buffer.data] = _size(statement.buffer)

    def differs(self, *nodes: Node) -> bool:
        return any(_uses(node, self.touched) for node in nodes)

    def for_each(self, statement: S.Stmt) -> S.Stmt:
        """A statement, for one virtual thread after the other."""
        if has_barrier(statement):
            raise ThreadError(
                f'Not all virtual threads "{self.var.name}" come to a barrier alike; move it out '
                "of what depends on them",
                statement.span,
            )
        self.inside = True
        new = self.rewrite(statement)
        self.inside = False
        if self.count < UNROLLED and not any(S.find_statements(new, S.For)):
            indices = (const(number, self.var.dtype) for number in range(self.count))
            copies = (substitute(new, {self.var: index}) for index in indices)
            return S.sequence(*map(fresh_statement, copies))
        index = E.Var(f"{self.var.name}_s", self.var.dtype)
        low, extent = const(0, index.dtype), const(self.count, index.dtype)
        return S.For(index, low, extent, S.ForKind.SERIAL, substitute(new, {self.var: index}))

    def around(self, statement: S.Stmt, *header: Node) -> S.Stmt:
        """A statement that is run for each if what it begins with differs."""
        if not self.inside and self.differs(*header):
            return self.for_each(statement)
        return self.rewrite_children(statement)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        if not self.inside and (store.buffer.data in self.touched or self.differs(store)):
            return self.for_each(store)
        return self.access(store)

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        return self.around(statement, statement.value)

    @on(S.IfThenElse, S.While, S.AssertStmt)
    def conditional(self, statement: S.IfThenElse | S.While | S.AssertStmt) -> S.Stmt:
        return self.around(statement, statement.condition)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        return self.around(loop, loop.min, loop.extent)

    @on(S.LetStmt, S.AttrStmt)
    def valued(self, statement: S.LetStmt | S.AttrStmt) -> S.Stmt:
        return self.around(statement, statement.value)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        body = self.rewrite(statement.body)
        return replace(statement, buffer=self.with_parts(statement.buffer), body=body)

    @on(E.BufferLoad)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        if node.buffer.data not in self.sizes:
            return new
        (index,) = new.indices
        offset = self.offset(node.buffer.data)
        index = self.analyzer.simplify(add(offset, index))
        return replace(new, buffer=self.with_parts(node.buffer), indices=(index,))

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        """Pointers to what a virtual thread has for itself begin at its part."""
        new = self.rewrite_children(call)
        if operator_name(call) != "tvm_access_ptr":
            return new
        kind, data, begin, *rest = new.args
        if not isinstance(data, E.Var) or data not in self.sizes:
            return new
        return replace(new, args=(kind, data, add(self.offset(data), begin), *rest))

    def offset(self, data: E.Var) -> E.PrimExpr:
        return multiply(self.var, const(self.sizes[data], self.var.dtype))

    def with_parts(self, buffer: Buffer) -> Buffer:
        size = self.sizes.get(buffer.data)
        if size is None:
            return buffer
        if buffer not in self.parts:
            self.parts[buffer] = replace(buffer, shape=(const(self.count * size),))
        return self.parts[buffer]


def _touched(var: E.Var, body: S.Stmt) -> set[E.Var]:
    """The variables that may differ between virtual threads, and the data of such buffers."""
    touched, before = {var}, 0
    while len(touched) > before:
        before = len(touched)
        for part in S.statements_in(body):
            touched.update(_defined(part, touched))
    return touched


def _defined(part: S.Stmt, touched: set[E.Var]) -> Iterator[E.Var]:
    if isinstance(part, S.BufferStore) and _uses(part, touched):
        yield part.buffer.data
    elif isinstance(part, S.LetStmt) and _uses(part.value, touched):
        yield part.var
    elif isinstance(part, S.For) and (_uses(part.min, touched) or _uses(part.extent, touched)):
        yield part.loop_var
    elif isinstance(part, S.Evaluate) and _uses(part.value, touched):
        for call in find_nodes(part.value, E.Call):
            if operator_name(call) == "tvm_access_ptr":
                data, mask = call.args[1], call.args[4]
                if isinstance(data, E.Var) and getattr(mask, "value", WRITE_ACCESS) & WRITE_ACCESS:
                    yield data


def _uses(node: Node, touched: set[E.Var]) -> bool:
    return any(
        part in touched or (isinstance(part, E.BufferLoad) and part.buffer.data in touched)
        for part in walk(node)
        if isinstance(part, (E.Var, E.BufferLoad))
    )


def _size(buffer: Buffer) -> int:
    sizes = [extent.value for extent in buffer.shape if isinstance(extent, E.IntImm)]
    if len(buffer.shape) != 1 or not sizes:
        raise ThreadError(
            f'Each virtual thread gets a part of "{buffer.name}" of shape '
            f"({', '.join(map(str, buffer.shape))}), which is not flat; run FlattenBuffer first",
            buffer.span,
        )
    return prod(sizes)


def _check_private(buffer: Buffer, body: S.Stmt, touched: set[E.Var]) -> None:
    """Refuse shared memory in which a virtual thread may read what another has written."""
    if not is_shared(buffer):
        return
    accesses = [a for a in find_nodes(body, E.BufferLoad, S.BufferStore) if a.buffer is buffer]
    if not any(_uses(index, touched) for access in accesses for index in access.indices):
        return
    stored = [access.indices for access in accesses if isinstance(access, S.BufferStore)]
    for access in accesses:
        if isinstance(access, S.BufferStore) or not stored:
            continue
        if not any(same_expressions(access.indices, indices) for indices in stored):
            raise ThreadError(
                f'Virtual threads may exchange data through "{buffer.name}", of which each gets a '
                "part of its own; let them read the elements that they write",
                access.span,
            )
