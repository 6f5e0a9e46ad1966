"""The pass that writes loops out: marked ones, small ones, and some iterations of innermost ones.

A loop is written out whole if it is marked `unrolled`, if a "pragma_auto_unroll_max_step" around it
allows as many stores, if its copies together are small, or if it indexes a small local buffer,
whose elements can live in registers only where indices are constants. An innermost loop that stays
is written out a few iterations at a time, to spare the counting. The order of operations is kept.

What becomes of the loops is planned first: a pragma counts for less where all that it allows would
be more than the target's compiler has time for, and buffers are told from those in registers that a
loop, too large to be written out, indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import NamedTuple

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children, on
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter, fitting_factor, loops_in
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.contents import accesses_in, variables_used
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


class _Code(NamedTuple):
    """What a statement is once its loops are written out."""

    operations: int
    stores: int
    has_loops: bool


class _Registers(NamedTuple):
    """A local buffer that is meant to live in registers: the variables that index it, and those of
    the loops in its scope."""

    indexed_by: frozenset[E.Var]
    inside: set[E.Var]


class _Unroll(Rewriter):
    """Local buffers of up to the machine's `register_bytes` are meant to live in registers. They do
    if all loops that index them are written out; the `partial` ones, of which that is not so, may
    keep there what a sum adds to. A pragma has leave for up to `max_step` stores, which is at most
    the `step_limit` of the function."""

    def __init__(self, func: PrimFunc, machine: MachineModel) -> None:
        super().__init__(func)
        self.machine = machine
        self.max_step = 0
        self.sizes: dict[Node, int] = {}
        self.around: list[E.Var] = []
        self.stay: set[E.Var] = set()
        self.planned_to_stay: set[E.Var] = set()
        allocations = S.find_statements(func.body, S.AllocBuffer)
        self.registers = {
            part.buffer.data: registers
            for part in allocations
            if (registers := self.registers_of(part)) is not None
        }
        self.partial: set[E.Var] = set()
        steps = (_auto_unroll_step(loop.annotations) for loop in loops_in(func.body))
        self.step_limit = max(steps, default=0)

    def registers_of(self, allocation: S.AllocBuffer) -> _Registers | None:
        """A buffer that is small, and indexed by loops that can be written out."""
        buffer = allocation.buffer
        shape = constant_shape(buffer)
        if shape is None:
            return None
        if prod(shape) * dtypes.size_in_bytes(buffer.dtype) > self.machine.register_bytes:
            return None
        indices = [a.indices[0] for a in accesses_in(allocation.body) if a.buffer is buffer]
        indexed_by = frozenset[E.Var]().union(*map(variables_used, indices))
        if any(self.iterations(var) > REGISTER_EXTENT for var in indexed_by):
            return None
        return _Registers(indexed_by, {loop.loop_var for loop in loops_in(allocation.body)})

    def iterations(self, var: E.Var) -> float:
        low, high = self.indices.interval(var)
        return high - low + 1

    def run(self) -> PrimFunc:
        """The function with loops written out; with `step_limit` halved until there is room."""
        allowed, self.step_limit = self.step_limit, 0
        least = self.plan()
        limit = least + max(self.machine.unrolled_operations, least // 2)
        self.step_limit = allowed
        while self.plan() > limit:
            self.step_limit //= 2
        return super().run()

    def plan(self) -> int:
        """The operations of the function once its loops are written out. Says which loops `stay`
        and which buffers are `partial` then."""
        self.partial.clear()
        while True:
            before = len(self.partial)
            staying = self.planned_to_stay = set()
            operations = self.planned(self.function.body).operations
            self.stay = staying
            self.partial.update(
                data
                for data, registers in self.registers.items()
                if not staying.isdisjoint(registers.indexed_by)
            )
            if len(self.partial) == before:
                return operations

    def planned(self, statement: S.Stmt) -> _Code:
        """What a statement becomes; the loops that stay are in `planned_to_stay`."""
        if isinstance(statement, S.For):
            with self.entered(statement):
                operations, stores, has_loops = code = self.planned(statement.body)
                if self.is_written_out(statement, code):
                    assert isinstance(statement.extent, E.IntImm)
                    extent = statement.extent.value
                    return _Code(operations * extent, stores * extent, has_loops)
            self.planned_to_stay.add(statement.loop_var)
            factor = 1 if has_loops else self.iterations_at_once(statement, operations)
            return _Code(operations * factor, stores * factor, True)
        inner = [child for child in children(statement) if isinstance(child, S.Stmt)]
        if not inner:
            return _Code(self.size_of(statement), int(isinstance(statement, S.BufferStore)), False)
        operations, stores, has_loops = zip(*map(self.planned, inner), strict=True)
        return _Code(sum(operations), sum(stores), any(has_loops))

    @contextmanager
    def entered(self, loop: S.For) -> Iterator[None]:
        """In a loop, and under its pragma."""
        outer = self.max_step
        self.max_step = max(outer, min(_auto_unroll_step(loop.annotations), self.step_limit))
        self.around.append(loop.loop_var)
        yield
        self.around.pop()
        self.max_step = outer

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        with self.entered(loop):
            new = super().loop(loop)
            if not isinstance(new, S.For) or not isinstance(new.extent, E.IntImm):
                return new
            statements = [*S.statements_in(new.body)]
            stores = sum(isinstance(part, S.BufferStore) for part in statements)
            has_loops = any(isinstance(part, S.For) for part in statements)
            written_out = self.is_written_out(new, _Code(self.size_of(new.body), stores, has_loops))
        if written_out:
            return self.copies(new, range(new.extent.value))
        return new if has_loops else self.partly(new)

    def is_written_out(self, loop: S.For, body: _Code) -> bool:
        """Whether all iterations are written out."""
        if loop.kind == S.ForKind.THREAD_BINDING or not isinstance(loop.extent, E.IntImm):
            return False
        extent = loop.extent.value
        size = extent * body.operations
        if size > MAX_COPY_SIZE:
            return False
        if loop.kind == S.ForKind.UNROLLED:
            return True
        if extent <= REGISTER_EXTENT and size <= 4 * SMALL_LOOP and self.indexes_registers(loop):
            return True
        if body.has_loops:
            return False
        small = extent <= SMALL_EXTENT and size <= SMALL_LOOP
        return small or extent * body.stores <= self.max_step

    def indexes_registers(self, loop: S.For) -> bool:
        """Whether the loop's variable indexes a buffer that is in registers, or of which a loop
        around it keeps elements there."""
        return any(
            loop.loop_var in variables_used(access.indices[0]) and self.is_kept(access.buffer.data)
            for access in accesses_in(loop.body)
        )

    def is_kept(self, data: E.Var) -> bool:
        """Whether a buffer, or what the next loop around that stays adds to, is in registers."""
        registers = self.registers.get(data)
        if registers is None or data not in self.partial:
            return registers is not None
        around = next((var for var in reversed(self.around[:-1]) if var in self.stay), None)
        return around in registers.inside and around not in registers.indexed_by

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
        factor = self.iterations_at_once(loop, self.size_of(loop.body))
        return loop if factor == 1 else self.in_groups(loop, factor, self.copies)

    def iterations_at_once(self, loop: S.For, operations: int) -> int:
        """How many iterations of an innermost loop that stays are written out at a time."""
        factor = min(PARTIAL_FACTOR, PARTIAL_OPERATIONS // max(operations, 1))
        if not isinstance(loop.extent, E.IntImm) or loop.extent.value < 2 * factor or factor < 2:
            return 1
        return fitting_factor(loop.extent.value, factor)


def operations_of(node: Node) -> int:
    """The operations that a node stands for, without those of its operands."""
    if isinstance(node, (S.SeqStmt, E.Broadcast, E.Ramp)):
        return 0
    operator = OPERATORS.get(operator_name(node))
    return FUNCTION_OPERATIONS if operator is not None and operator.is_elementary else 1


def _auto_unroll_step(annotations: Mapping[str, object]) -> int:
    step = annotations.get("pragma_auto_unroll_max_step", 0)
    return int(step) if isinstance(step, (int, E.IntImm)) else 0
