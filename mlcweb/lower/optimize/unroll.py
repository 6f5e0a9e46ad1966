"""The pass that writes loops out: marked ones, small ones, and some iterations of innermost ones.

A loop is written out whole if it is marked `unrolled`, if a "pragma_auto_unroll_max_step" around it
allows as many stores, if its copies together are small, or if it indexes a small local buffer,
whose elements can live in registers only where indices are constants. An innermost loop that stays
is written out a few iterations at a time, to spare the counting. The order of operations is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children, on
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter, fitting_factor, loops_in
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import OPERATORS, operator_name

SMALL_LOOP = 256
"""Operations that all copies of a loop's body may have together."""

SMALL_EXTENT = 16
"""Loops of more iterations are not written out whole unless they are marked."""

REGISTER_EXTENT = 32
"""Loops of up to so many iterations are written out to index registers."""

FUNCTION_OPERATIONS = 24
"""A call of a mathematical function counts as so many operations."""

EMULATED_OPERATIONS = 20
"""A load of a number that is computed in float32 and rounded counts as so many operations, with
what is computed of it."""

MAX_COPY_SIZE = 4_000
"""Operations beyond which not even marked loops are written out."""

PARTIAL_OPERATIONS = 112
PARTIAL_FACTOR = 4
"""An innermost loop is written out so far that its body has about so many operations, and at most
so many times."""


def unroll(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Write out loops where that is asked for or pays."""
    return _Unroll(func, machine).run()


class _Unroll(Rewriter):
    """Local buffers of up to the machine's `register_bytes` are meant to live in registers."""

    def __init__(self, func: PrimFunc, machine: MachineModel) -> None:
        super().__init__(func)
        self.machine = machine
        self.max_step = 0
        self.sizes: dict[Node, int] = {}
        self.small_buffers = {
            part.buffer.data
            for part in S.find_statements(func.body, S.AllocBuffer)
            if self.may_be_registers(part)
        }

    def may_be_registers(self, allocation: S.AllocBuffer) -> bool:
        """Whether a buffer is small, and indexed by loops that can be written out."""
        buffer = allocation.buffer
        shape = constant_shape(buffer)
        if shape is None:
            return False
        if prod(shape) * dtypes.size_in_bytes(buffer.dtype) > self.machine.register_bytes:
            return False
        indices = [a.indices[0] for a in self.accesses.of(allocation.body) if a.buffer is buffer]
        return all(
            self.iterations(var) <= REGISTER_EXTENT
            for index in indices
            for var in self.indices.variables(index)
        )

    def iterations(self, var: E.Var) -> float:
        low, high = self.indices.interval(var)
        return high - low + 1

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        outer = self.max_step
        self.max_step = max(outer, _auto_unroll_step(loop.annotations))
        new = super().loop(loop)
        allowed, self.max_step = self.max_step, outer
        if not isinstance(new, S.For) or not isinstance(new.extent, E.IntImm):
            return new
        if self.is_written_out(new, new.extent.value, allowed):
            return self.copies(new, range(new.extent.value))
        return new if loops_in(new.body) else self.partly(new)

    def is_written_out(self, loop: S.For, extent: int, allowed: int) -> bool:
        """Whether all iterations are written out; `allowed` is the number of stores that a pragma
        gives leave for."""
        if loop.kind == S.ForKind.THREAD_BINDING:
            return False
        size = extent * self.size_of(loop.body)
        if size > MAX_COPY_SIZE:
            return False
        if loop.kind == S.ForKind.UNROLLED:
            return True
        if extent <= REGISTER_EXTENT and size <= 4 * SMALL_LOOP and self.indexes_registers(loop):
            return True
        if loops_in(loop.body):
            return False
        stores = extent * sum(
            isinstance(part, S.BufferStore) for part in S.statements_in(loop.body)
        )
        return stores <= allowed or (extent <= SMALL_EXTENT and size <= SMALL_LOOP)

    def indexes_registers(self, loop: S.For) -> bool:
        """Whether a small local buffer is indexed by the loop's variable."""
        return any(
            access.buffer.data in self.small_buffers
            and loop.loop_var in self.indices.variables(access.indices[0])
            for access in self.accesses.of(loop.body)
        )

    def size_of(self, node: Node) -> int:
        """The loads, stores and operations in a statement; index arithmetic is free."""
        if isinstance(node, E.BufferLoad):
            return EMULATED_OPERATIONS if self.machine.emulates(node.dtype) else 1
        if isinstance(node, (E.Var, E.IntImm, E.FloatImm)):
            return 0
        size = self.sizes.get(node)
        if size is None:
            parts = [node.value] if isinstance(node, S.BufferStore) else children(node)
            own = operations_of(node)
            size = self.sizes[node] = own + sum(self.size_of(part) for part in parts)
        return size

    def partly(self, loop: S.For) -> S.Stmt:
        """An innermost loop with several iterations in its body."""
        assert isinstance(loop.extent, E.IntImm)
        extent = loop.extent.value
        factor = min(PARTIAL_FACTOR, PARTIAL_OPERATIONS // self.size_of(loop.body))
        if factor < 2 or extent < 2 * factor:
            return loop
        return self.in_groups(loop, fitting_factor(extent, factor), self.copies)


def operations_of(node: Node) -> int:
    """The operations that a node stands for, without those of its operands."""
    if isinstance(node, (S.SeqStmt, E.Broadcast, E.Ramp)):
        return 0
    operator = OPERATORS.get(operator_name(node))
    return FUNCTION_OPERATIONS if operator is not None and operator.is_elementary else 1


def _auto_unroll_step(annotations: Mapping[str, object]) -> int:
    step = annotations.get("pragma_auto_unroll_max_step", 0)
    return int(step) if isinstance(step, (int, E.IntImm)) else 0
