"""The pass that lets buffers share memory: one takes the place of another that is done with.

A buffer is done with where nothing that runs later touches it: nothing after it in its sequence, in
what is around it, or in a further iteration of a loop between the two allocations.
"""

from __future__ import annotations

from math import prod

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.optimize.accesses import Touched, pointers_passed_on
from mlcweb.lower.place_allocations import place_allocations
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute


@lowering_pass("StorageRewrite")
def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """Let buffers of one type and scope, with one dimension of constant size, share memory, each
    allocated where it is first needed."""
    body = place_allocations(func).body
    return func.with_body(_Sharing(pointers_passed_on(body)).rewrite(body))


class _Sharing(Mutator):
    """`later` are the pointers that may be used after the statement that is looked at; `around` are
    the buffers allocated around it."""

    def __init__(self, passed_on: set[E.Var]) -> None:
        self.passed_on = passed_on
        self.touched = Touched()
        self.later: frozenset[E.Var] = frozenset()
        self.around: list[Buffer] = []

    def before(self, statement: S.Stmt, later: frozenset[E.Var]) -> S.Stmt:
        """A statement that runs before what uses these pointers, beside what comes anyhow."""
        previous, self.later = self.later, self.later | later
        new = self.rewrite(statement)
        self.later = previous
        return new

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> S.Stmt:
        done: list[S.Stmt] = []
        later: frozenset[E.Var] = frozenset()
        for part in reversed(statement.seq):
            done.append(self.before(part, later))
            later |= self.touched.by(done[-1])
        return S.sequence(*reversed(done))

    @on(S.For, S.While)
    def loop(self, loop: S.For | S.While) -> S.Stmt:
        around = self.around
        if isinstance(loop, S.For) and loop.kind not in (S.ForKind.SERIAL, S.ForKind.UNROLLED):
            self.around = []  # which iterations would use at the same time
        body = self.before(loop.body, self.touched.by(loop))
        self.around = around
        return loop if body is loop.body else replace(loop, body=body)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        buffer = statement.buffer
        if not _may_share(buffer) or buffer.data in self.passed_on:
            return self.rewrite_children(statement)
        if any(_is_view(node, buffer) for node in walk(statement.body)):
            return self.rewrite_children(statement)
        in_use = self.later | self.touched.by(statement.body)
        for other in self.around:
            if other.data not in in_use and _has_room(other, buffer):
                same = other if other.shape == buffer.shape else replace(buffer, data=other.data)
                return self.rewrite(substitute(statement.body, {}, {buffer: same}))
        self.around.append(buffer)
        new = self.rewrite_children(statement)
        self.around.remove(buffer)
        return new


def _may_share(buffer: Buffer) -> bool:
    return constant_shape(buffer) is not None and len(buffer.shape) == 1 and not buffer.strides


def _is_view(node: Node, buffer: Buffer) -> bool:
    """Whether a node accesses the memory of a buffer as another buffer."""
    other = getattr(node, "buffer", buffer)
    return other is not buffer and other.data is buffer.data


def _has_room(other: Buffer, buffer: Buffer) -> bool:
    if (other.dtype, other.scope()) != (buffer.dtype, buffer.scope()):
        return False
    return prod(constant_shape(other) or ()) >= prod(constant_shape(buffer) or ())
