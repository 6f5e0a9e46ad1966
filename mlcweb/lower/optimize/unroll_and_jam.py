"""The pass that runs the sums of neighbouring iterations side by side.

Each step of a sum waits for the step before it, and the processor has little else to do. Where the
iterations of the loop around a sum are independent,

    for j: {C[j] = 0; for k: C[j] = C[j] + A[k, j]}

becomes a loop that does several of them at a time, here two, with half of the waiting:

    for j: {C[2 * j] = 0; C[2 * j + 1] = 0;
            for k: {C[2 * j] = C[2 * j] + A[k, 2 * j]; C[2 * j + 1] = C[2 * j + 1] + …}}

Every sum keeps its order. Only scalar sums of floats are treated so: integers wait for one cycle,
and a program that computes vectors has been scheduled, or has other sums beside.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.node import replace
from mlcweb.lower.optimize.independence import SEQUENTIAL, are_independent
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter
from mlcweb.lower.statement_simplifier import in_sequence
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


def unroll_and_jam(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Run the scalar sums of neighbouring iterations in one loop."""
    return _UnrollAndJam(func, machine.scalar_sums).run()


class _UnrollAndJam(Rewriter):
    """`sums` run at the same time."""

    def __init__(self, func: PrimFunc, sums: int) -> None:
        super().__init__(func)
        self.sums = sums

    def finished_loop(self, loop: S.For, body: S.Stmt) -> S.Stmt:
        new = super().finished_loop(loop, body)
        if not isinstance(new, S.For) or not self.has_single_sum(new):
            return new
        return self.in_groups(new, self.sums, self.together) if are_independent(self, new) else new

    def has_single_sum(self, loop: S.For) -> bool:
        """Whether a loop's body is a loop nest that sums into one scalar, and stores around it."""
        if loop.kind not in SEQUENTIAL or not isinstance(loop.extent, E.IntImm):
            return False
        if loop.extent.value < self.sums:
            return False
        parts = _parts(loop.body)
        nests = [part for part in parts if not isinstance(part, S.BufferStore)]
        return len(nests) == 1 and isinstance(nests[0], S.For) and self.is_sum(nests[0], loop)

    def is_sum(self, nest: S.For, loop: S.For) -> bool:
        inner: set[E.Var] = set()
        statement: S.Stmt = nest
        while isinstance(statement, S.For):
            ends = self.indices.variables(statement.min) | self.indices.variables(statement.extent)
            if statement.kind not in SEQUENTIAL or loop.loop_var in ends:
                return False
            inner.add(statement.loop_var)
            statement = statement.body
        if not isinstance(statement, S.BufferStore):
            return False
        index, value = statement.indices[0], statement.value
        if not dtypes.is_float(value.dtype) or dtypes.lanes(value.dtype) > 1:
            return False
        if not inner.isdisjoint(self.indices.variables(index)):
            return False
        alike = self.indices.interned
        return isinstance(value, E.BinaryExpr) and any(
            isinstance(side, E.BufferLoad)
            and side.buffer is statement.buffer
            and alike(side.indices[0]) is alike(index)
            for side in (value.a, value.b)
        )

    def together(self, loop: S.For, steps: range) -> S.Stmt:
        """Some iterations of a loop, inside of its inner loops."""
        values = self.iteration_values(loop, steps)
        return in_sequence(self.nested(part, loop.loop_var, values) for part in _parts(loop.body))

    def nested(self, part: S.Stmt, var: E.Var, values: Sequence[E.PrimExpr]) -> S.Stmt:
        if isinstance(part, S.For):
            return replace(part, body=self.nested(part.body, var, values))
        return in_sequence(self.with_values(part, {var: value}) for value in values)


def _parts(statement: S.Stmt) -> tuple[S.Stmt, ...]:
    return statement.seq if isinstance(statement, S.SeqStmt) else (statement,)
