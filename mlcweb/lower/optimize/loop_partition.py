"""The pass that takes boundary conditions out of loops by splitting the loops' ranges.

A condition that compares sums of loop variables holds for every iteration of some part of a loop,
and for none of another. The loop becomes one loop for each part, in order, in which the condition
is decided; only the small parts at the ends still ask. Splits are made at constants only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mlcweb.ir.node import Node, replace
from mlcweb.ir.transform import PassContext, register_option
from mlcweb.ir.visitor import children, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.optimize.rewriter import Rewriter, is_choice
from mlcweb.lower.statement_simplifier import in_sequence, is_nothing
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import OPERATORS, Family, keys

MAX_PARTS = 4
"""A loop is not split into more parts."""

MAX_NODES = 20_000
"""A function does not grow beyond this many nodes by splitting."""


@lowering_pass("LoopPartition")
def loop_partition(func: PrimFunc) -> PrimFunc:
    """Split loops where conditions inside them change from false to true or back."""
    return _LoopPartition(func).run()


LOOP_PARTITION = register_option("tir.LoopPartition", dict)
"""What the pass `tvm.tir.transform.LoopPartition` does: {"partition_const_loop": True}."""

HINTS = ("loop_partition_hint", "pragma_loop_partition_hint")
"""Annotations of loops that are to be split whatever the option says."""


@lowering_pass("LoopPartition")
def partition_loops(func: PrimFunc) -> PrimFunc:
    """Split loops where conditions inside them change: those with a hint, or all where the option
    "tir.LoopPartition" says "partition_const_loop". Loops of symbolic extents stay."""
    config = PassContext.current().config.get(LOOP_PARTITION, {})
    return _Partition(func, bool(config.get("partition_const_loop"))).run()


class _LoopPartition(Rewriter):
    def __init__(self, func: PrimFunc) -> None:
        super().__init__(func)
        self.has_conditions = any(True for _ in _comparisons(func.body))
        self.nodes_left = MAX_NODES

    def run(self) -> PrimFunc:
        return super().run() if self.has_conditions else self.function

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        constant = isinstance(low, E.IntImm) and isinstance(extent, E.IntImm)
        if not constant or extent.value <= 1 or loop.kind == S.ForKind.THREAD_BINDING:
            return super().loop(loop)
        first, end = low.value, low.value + extent.value
        places = self.breakpoints(loop, first, end)
        if not places or len(places) >= MAX_PARTS:
            return super().loop(loop)
        size = sum(1 for _ in walk(loop.body))
        if size * len(places) > self.nodes_left:
            return super().loop(loop)
        self.nodes_left -= size * len(places)
        bounds = [first, *places, end]
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

    def breakpoints(self, loop: S.For, first: int, end: int) -> list[int]:
        """Where in (first, end) some condition is decided on one side, in order."""
        places: set[int] = set()
        for comparison in _comparisons(loop.body):
            places.update(self.thresholds(comparison, loop.loop_var))
        return sorted(place for place in places if first < place < end)

    def thresholds(self, comparison: E.ComparisonExpr, var: E.Var) -> Iterator[int]:
        """The values of `var` from which on the comparison surely holds, or surely fails."""
        if not dtypes.is_integer(comparison.a.dtype) or dtypes.lanes(comparison.a.dtype) > 1:
            return
        indices = self.indices
        difference = indices.sum_of(self.rewrite(comparison.a)).plus(
            indices.sum_of(self.rewrite(comparison.b)), -1
        )
        scale = difference.terms.get(var, 0)
        if scale == 0:
            return
        rest = difference.without(var)
        if any(var in indices.variables(atom) for atom in rest.terms):
            return
        low, high = indices.sum_interval(rest)
        if high - low >= abs(scale) * 2**20:
            return
        for limit in _LIMITS[type(comparison)]:
            # The least var with scale * var + low >= limit, and with scale * var + high >= limit;
            # for a negative scale, the least var for which the opposite holds.
            for bound in (low, high):
                if scale > 0:
                    yield -int((bound - limit) // scale)
                else:
                    yield -int((limit - bound - 1) // -scale)


def _limits(fold: Any) -> tuple[int, ...]:
    return tuple(limit for limit in (0, 1) if fold(limit - 1, 0) != fold(limit, 0))


_LIMITS: dict[type, tuple[int, ...]] = {
    key: _limits(OPERATORS[key].fold) for key in keys(Family.COMPARISON)
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


class _Partition(_LoopPartition):
    """The same for programs that go on being scheduled or lowered: nothing else changes."""

    keeps_threads = True

    def __init__(self, func: PrimFunc, all_loops: bool) -> None:
        super().__init__(func)
        self.all_loops = all_loops

    def breakpoints(self, loop: S.For, first: int, end: int) -> list[int]:
        hinted = any(loop.annotations.get(hint) for hint in HINTS)
        return super().breakpoints(loop, first, end) if self.all_loops or hinted else []
