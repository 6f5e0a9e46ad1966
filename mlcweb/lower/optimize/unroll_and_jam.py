"""The pass that runs the sums of neighbouring iterations side by side.

Each step of a sum waits for the step before it, and the processor has little else to do. Where the
iterations of the loop around a sum are independent,

    for j: {C[j] = 0; for k: C[j] = C[j] + A[k, j]}

becomes a loop that does several of them at a time, here two, with half of the waiting:

    for j: {C[2 * j] = 0; C[2 * j + 1] = 0;
            for k: {C[2 * j] = C[2 * j] + A[k, 2 * j]; C[2 * j + 1] = C[2 * j + 1] + …}}

Every sum keeps its order. Sums of floats are treated so, in scalars or in vectors, until as many go
on as the machine has room for; integers wait for one cycle.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.node import replace
from mlcweb.lower.optimize.independence import SEQUENTIAL, are_independent
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter, fitting_factor
from mlcweb.lower.statement_simplifier import in_sequence
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.contents import variables_used
from mlcweb.tir.function import PrimFunc


def unroll_and_jam(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Run the sums of neighbouring iterations in one loop."""
    return _UnrollAndJam(func, machine).run()


class _UnrollAndJam(Rewriter):
    def __init__(self, func: PrimFunc, machine: MachineModel) -> None:
        super().__init__(func)
        self.machine = machine

    def finished_loop(self, loop: S.For, body: S.Stmt) -> S.Stmt:
        new = super().finished_loop(loop, body)
        if not isinstance(new, S.For):
            return new
        size = self.iterations_together(new)
        independent = size > 1 and are_independent(self, new)
        return self.in_groups(new, size, self.together) if independent else new

    def iterations_together(self, loop: S.For) -> int:
        """How many iterations of a loop, whose body is a loop nest that sums with stores and loop
        nests around it, run side by side."""
        if loop.kind not in SEQUENTIAL or not isinstance(loop.extent, E.IntImm):
            return 1
        nests = [part for part in S.in_order(loop.body) if not isinstance(part, S.BufferStore)]
        if not all(isinstance(nest, S.For) and self.is_rectangular(nest, loop) for nest in nests):
            return 1
        sums = [count for count in map(self.sums_in, nests) if count]
        if len(sums) != 1:
            return 1
        most = min(sums[0], loop.extent.value)
        return fitting_factor(loop.extent.value, most) if most > 1 else 1

    def is_rectangular(self, nest: S.Stmt, loop: S.For) -> bool:
        """Whether a nest has one store, and the same iterations whatever those of the loop are."""
        inner, store = S.nest_at(nest)
        return isinstance(store, S.BufferStore) and all(
            each.kind in (*SEQUENTIAL, S.ForKind.UNROLLED)
            and loop.loop_var not in variables_used(each.min)
            and loop.loop_var not in variables_used(each.extent)
            for each in inner
        )

    def sums_in(self, nest: S.Stmt) -> int:
        """So many times as many sums as a nest has may go on side by side; 0 where it has none."""
        around, nest = S.nest_at(nest)
        assert isinstance(nest, S.BufferStore)
        index, value = nest.indices[0], nest.value
        element = dtypes.element_of(value.dtype)
        if not (dtypes.is_float(element) and isinstance(value, E.BinaryExpr)):
            return 0
        moving = variables_used(index)
        if all(loop.loop_var in moving for loop in around):
            return 0
        alike = self.indices.interned
        if not any(
            isinstance(side, E.BufferLoad)
            and side.buffer is nest.buffer
            and alike(side.indices[0]) is alike(index)
            for side in (value.a, value.b)
        ):
            return 0
        room = self.machine.scalar_sums
        if dtypes.lanes(value.dtype) > 1:
            room = self.machine.jammed_vectors
        for loop in around:
            if loop.loop_var in moving:
                room //= loop.extent.value if isinstance(loop.extent, E.IntImm) else room
        return max(room, 1)

    def together(self, loop: S.For, steps: range) -> S.Stmt:
        """Some iterations of a loop, inside of its inner loops."""
        values = self.iteration_values(loop, steps)
        parts = S.in_order(loop.body)
        return in_sequence(self.nested(part, loop.loop_var, values) for part in parts)

    def nested(self, part: S.Stmt, var: E.Var, values: Sequence[E.PrimExpr]) -> S.Stmt:
        if isinstance(part, S.For):
            return replace(part, body=self.nested(part.body, var, values))
        return in_sequence(self.with_values(part, {var: value}) for value in values)
