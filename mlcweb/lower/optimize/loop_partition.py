"""The pass that takes boundary conditions out of loops by splitting the loops' ranges.

A condition that compares sums of loop variables holds for every iteration of some part of a loop,
and for none of another. The loop becomes one loop for each part, in order, in which the condition
is decided; only the small parts at the ends still ask. Splits are made at constants only.

Each part is compiled, with all that it writes out. `SplitChoice` chooses the loops that are split,
so that a function grows no more than its target's compiler has time for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children, on, walk
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter, is_choice, loops_in
from mlcweb.lower.optimize.split_choice import Change, SplitChoice, breakpoints
from mlcweb.lower.optimize.unroll import REGISTER_EXTENT, SMALL_LOOP, operations_of
from mlcweb.lower.statement_simplifier import in_sequence, is_nothing
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import OPERATORS, Family, keys

_VALUES: dict[type, tuple[str, ...]] = {
    E.BufferLoad: (),
    S.BufferStore: ("value",),
    S.For: ("body",),
}
"""What of a node is computed with, where that is not all of it; indices are free."""

MIN_SHARE = 0.5
"""A split frees at least such a share of a loop's iterations from conditions."""

VECTOR_LENGTH = 8
"""So many iterations of a vectorized loop count as one."""


def loop_partition(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Split loops where conditions inside them change from false to true or back."""
    return _LoopPartition(func, machine.split_operations).run()


class _LoopPartition(Rewriter):
    """Splits the `chosen` loops, by which the function grows by up to so many operations, or by
    half."""

    def __init__(self, func: PrimFunc, operations: int) -> None:
        super().__init__(func)
        self.operations = operations
        self.sizes: dict[Node, int] = {}
        self.chosen: frozenset[E.Var] = frozenset()

    def run(self) -> PrimFunc:
        body = self.function.body
        if not any(True for _ in _comparisons(body)):
            return self.function
        loops = {loop.loop_var: self.changes(loop) for loop in loops_in(body)}
        changes = {var: changes for var, changes in loops.items() if changes}
        if changes:
            size = self.size_of(body)
            choice = SplitChoice(self.indices, changes, self.size_of, self.times_written)
            limit = size + max(self.operations, size // 2)
            self.chosen = choice.choose(body, limit, MIN_SHARE)
        return super().run()

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        places: Sequence[int] = ()
        if loop.loop_var in self.chosen:
            places = breakpoints(self.changes(loop), loop, self.indices.interval)
        if not places:
            return super().loop(loop)
        low, extent = loop.min, loop.extent
        assert isinstance(low, E.IntImm) and isinstance(extent, E.IntImm)
        bounds = [low.value, *places, low.value + extent.value]
        return in_sequence(
            self.part(loop, low.dtype, start, stop) for start, stop in pairwise(bounds)
        )

    def part(self, loop: S.For, dtype: str, start: int, stop: int) -> S.Stmt:
        """The iterations from `start` to `stop`, under a variable of their own."""
        low = E.IntImm(dtype, start)
        if stop - start == 1:
            return self.with_values(loop.body, {loop.loop_var: low})
        var = E.Var(loop.loop_var.name, loop.loop_var.dtype)
        self.indices.bind(var, start, stop - 1)
        body = self.with_values(loop.body, {loop.loop_var: var})
        if is_nothing(body):
            return body
        extent = E.IntImm(dtype, stop - start)
        return replace(loop, loop_var=var, min=low, extent=extent, body=body)

    def changes(self, loop: S.For) -> list[Change]:
        """The comparisons in a loop that change with it."""
        changes: list[Change] = []
        for comparison in _comparisons(loop.body):
            dtype = comparison.a.dtype
            if not dtypes.is_integer(dtype) or dtypes.lanes(dtype) > 1:
                continue
            a, b = (self.indices.sum_of(self.rewrite(e)) for e in (comparison.a, comparison.b))
            difference = a.plus(b, -1)
            if loop.loop_var in difference.terms:
                limits = _LIMITS[type(comparison)]
                changes.append(Change.of(self.indices, difference, limits))
        return changes

    def size_of(self, node: Node) -> int:
        """The operations of a statement once its small loops are written out. Conditions are free:
        the copy is made to be without."""
        if isinstance(node, (E.Var, E.IntImm, E.FloatImm)):
            return 0
        if isinstance(node, E.PrimExpr) and dtypes.is_bool(node.dtype):
            return 0
        size = self.sizes.get(node)
        if size is None:
            part = _VALUES.get(type(node))
            parts = children(node) if part is None else [getattr(node, name) for name in part]
            size = operations_of(node) + sum(map(self.size_of, parts))
            if isinstance(node, S.For) and isinstance(node.extent, E.IntImm):
                size *= self.times_written(node, node.extent.value)
            self.sizes[node] = size
        return size

    def times_written(self, loop: S.For, extent: int) -> int:
        """How often the body of a loop of so many iterations is written out, about."""
        if loop.kind == S.ForKind.VECTORIZED:
            return -(-extent // VECTOR_LENGTH)
        small = extent <= REGISTER_EXTENT and extent * self.size_of(loop.body) <= SMALL_LOOP
        return max(extent, 1) if small or loop.kind == S.ForKind.UNROLLED else 1


_FOLDS: dict[type, Any] = {key: OPERATORS[key].fold for key in keys(Family.COMPARISON)}
_LIMITS = {
    key: [limit for limit in (0, 1) if fold(limit - 1, 0) != fold(limit, 0)]
    for key, fold in _FOLDS.items()
}
"""The values of a - b at which a comparison changes."""


def _comparisons(node: Node) -> Iterator[E.ComparisonExpr]:
    """The comparisons that conditions of a statement consist of."""
    if isinstance(node, S.IfThenElse):
        yield from _parts(node.condition)
    elif is_choice(node):
        yield from _parts(node.args[0])  # type: ignore[attr-defined]
    for child in children(node):
        yield from _comparisons(child)


def _parts(condition: E.PrimExpr) -> Iterator[E.ComparisonExpr]:
    for node in walk(condition):
        if type(node) in _LIMITS:
            yield node  # type: ignore[misc]
