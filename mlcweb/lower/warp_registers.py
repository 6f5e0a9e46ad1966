"""Memory of a warp as registers of its lanes.

What the matrix instructions of PTX work on is memory of scope "warp", whose last two indices are a
lane and a register of it. A GPU that has the instructions keeps it in registers.
"""

from __future__ import annotations

from typing import Any

from mlcweb.analysis.threads import WARP_MATRIX, thread_tag
from mlcweb.arith import Analyzer
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import find_nodes, on
from mlcweb.lower.thread_axes import MATRIX_CORES, WARP_SIZE, uses_matrix_cores
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, is_const_int, subtract
from mlcweb.tir.buffer import Buffer, Range, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import BufferMutator, substitute, variables_in


class Lanes(BufferMutator):
    """Knows the loop over threadIdx.x around a statement, and what variables in it stand for."""

    def __init__(self) -> None:
        self.lane: E.Var | None = None
        self.lanes = Range(const(0), const(0))
        self.values: dict[E.Var, E.PrimExpr] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def among(self, var: E.Var, domain: Range, statement: Any) -> S.Stmt:
        outer = self.lane, self.lanes
        self.lane, self.lanes = var, domain
        new: Any = self.rewrite_children(statement)
        self.lane, self.lanes = outer
        return new

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if thread_tag(loop) == "threadIdx.x":
            return self.among(loop.loop_var, loop.domain, loop)
        return self.rewrite_children(loop)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        axis = statement.node
        if isinstance(axis, S.IterVar) and axis.thread_tag == "threadIdx.x":
            extent = statement.value
            return self.among(axis.var, Range(const(0, extent.dtype), extent), statement)
        return self.rewrite_children(statement)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        self.values.update((axis.var, value) for axis, value in realize.iterators)
        return self.rewrite_children(realize)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        self.values[let.var] = let.value
        return let.rewritten(self)

    def told(self, value: E.PrimExpr) -> E.PrimExpr:
        """A value as a function of the lane, whatever stands for it."""
        while self.lane is not None:
            named = {
                var: self.values[var]
                for var in variables_in(value)
                if var in self.values and self.differs(self.values[var])
            }
            if not named:
                break
            value = substitute(value, named)
        return value

    def differs(self, value: E.PrimExpr) -> bool:
        """Whether a value depends on the lane."""
        return any(
            var is self.lane or (var in self.values and self.differs(self.values[var]))
            for var in variables_in(value)
        )


def registers_of_lanes(func: PrimFunc) -> PrimFunc:
    """The function where each thread has its part of what matrix instructions keep in a warp: of
    the elements [..., lane, register] those of its lane. Under the marks all lanes' are that one's.

    Raises a TVMError where a thread reads or writes what another lane has, and for instructions of
    AMD's, which no language here has.
    """
    if uses_matrix_cores(func):
        raise TVMError(
            f"No GPU that is written for here has llvm.amdgcn.{MATRIX_CORES}, the matrix "
            "instruction of AMD's; leave the blocks as loops, without tensorize, or build for "
            '"simulated" or "llvm"'
        )
    data = {
        node.buffer.data: node.buffer
        for part in S.find_attributes(func.body, WARP_MATRIX)
        for node in find_nodes(part, E.BufferLoad, S.BufferStore)
        if node.buffer.scope() == "warp"
    }
    return func.with_body(_Registers(set(data)).rewrite(func.body)) if data else func


class _Registers(Lanes):
    def __init__(self, data: set[E.Var]) -> None:
        super().__init__()
        self.data = data
        self.own: dict[E.Var, Buffer] = {}
        self.marked = False

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key != WARP_MATRIX:
            return self.rewrite_children(statement)
        assert isinstance(statement.body, S.IfThenElse)
        self.marked = True
        body = self.rewrite(statement.body.then_case)
        self.marked = False
        return replace(statement, body=body)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        buffer = statement.buffer
        if buffer.data not in self.data:
            return self.rewrite_children(statement)
        if len(buffer.shape) < 2 or not is_const_int(buffer.shape[-2], WARP_SIZE):
            raise TVMError(
                f'"{buffer.name}" is in the registers of a warp, and has no dimension of '
                f"{WARP_SIZE} lanes before the last",
                buffer.span,
            )
        shape = (*buffer.shape[:-2], buffer.shape[-1])
        own = decl_buffer(shape, buffer.dtype, buffer.name, scope="local")
        self.own[buffer.data] = own
        return replace(statement, buffer=own, body=self.rewrite(statement.body))

    @on(E.BufferLoad, S.BufferStore)
    def element(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        own = self.own.get(node.buffer.data)
        if own is None:
            return new
        *first, lane, register = new.indices
        if not self.marked and not self.is_own(lane):
            raise TVMError(
                f'"{own.name}" is in the registers of a warp, of which a thread reaches those of '
                f"its lane alone, and {lane} is another; store it to shared memory first",
                node.span,
            )
        return replace(new, buffer=own, indices=(*first, register))

    def is_own(self, lane: E.PrimExpr) -> bool:
        if self.lane is None:
            return False
        analyzer = Analyzer({self.lane: self.lanes})
        return analyzer.can_prove_equal(lane, subtract(self.lane, self.lanes.min))
