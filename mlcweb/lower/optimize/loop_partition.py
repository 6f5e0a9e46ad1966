"""The pass that takes boundary conditions out of loops: by splitting the loops' ranges, or by a
version of a loop for the interior.

A condition that compares sums of loop variables holds for every iteration of some part of a loop,
and for none of another. The loop becomes one loop for each part, in order, in which the condition
is decided; only the small parts at the ends still ask. Splits are made at constants only.

Each part is compiled, with all that it writes out. Where that is too much for a machine's compiler,
the loops in it are looked at instead, and one of them becomes two, between which a branch decides
that only asks for the variables around it: where all conditions hold throughout, it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children, on, walk
from mlcweb.lower.optimize.interior import Difference, interior
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter, is_choice, loops_in, variables_of
from mlcweb.lower.optimize.unroll import REGISTER_EXTENT, SMALL_LOOP, operations_of
from mlcweb.lower.optimize.vectorize import is_innermost
from mlcweb.lower.statement_simplifier import in_sequence, is_nothing
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import OPERATORS, Family, keys

_VALUES: dict[type, tuple[str, ...]] = {
    E.BufferLoad: (),
    S.BufferStore: ("value",),
    S.For: ("body",),
}
"""What of a node is computed with, where that is not all of it; indices are free."""

MAX_PARTS = 4
"""A loop is not split into more parts."""

MAX_NODES = 20_000
"""A function does not grow beyond this many nodes by splits alone."""

MIN_GROWTH = 300
"""With versions it grows by half, and by so many operations in any case."""

VECTOR_LENGTH = 8
"""So many iterations of a vectorized loop count as one."""


def loop_partition(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Split loops where conditions inside them change from false to true or back."""
    return (_LoopPartition if machine.limits_copies else _Splits)(func).run()


class _LoopPartition(Rewriter):
    """Splits loops, or makes versions of them. `around` are the variables that may choose between
    these; `true` are comparisons known to hold; `left` is what the function may grow by."""

    def __init__(self, func: PrimFunc) -> None:
        super().__init__(func)
        self.around: frozenset[E.Var] = frozenset()
        self.true: frozenset[E.ComparisonExpr] = frozenset()
        self.sizes: dict[Node, int] = {}
        self.left = 0

    def run(self) -> PrimFunc:
        if not any(True for _ in _comparisons(self.function.body)):
            return self.function
        self.left = self.growth()
        return super().run()

    def growth(self) -> int:
        return max(MIN_GROWTH, self.size_of(self.function.body) // 2)

    @on(*keys(Family.COMPARISON))
    def comparison(self, expression: E.ComparisonExpr) -> E.PrimExpr:
        return const(True) if expression in self.true else super().comparison(expression)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        constant = isinstance(low, E.IntImm) and isinstance(extent, E.IntImm)
        if not constant or extent.value <= 1 or loop.kind == S.ForKind.THREAD_BINDING:
            return super().loop(loop)
        first, end = low.value, low.value + extent.value
        places = self.breakpoints(loop, first, end)
        if 0 < len(places) < MAX_PARTS and self.may_add(loop.body, len(places)):
            bounds = [first, *places, end]
            return in_sequence(
                self.part(loop, low.dtype, start, stop) for start, stop in pairwise(bounds)
            )
        return self.in_versions(loop)

    def may_add(self, statement: S.Stmt, copies: int) -> bool:
        """Whether there is room for so many more copies of a statement, which then is taken."""
        size = copies * self.size_of(statement)
        if size > self.left:
            return False
        self.left -= size
        return True

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
            if isinstance(node, S.For):
                size *= _copies(node, size)
            self.sizes[node] = size
        return size

    def in_versions(self, loop: S.For) -> S.Stmt:
        """A loop; twice, the first time without the conditions that hold where that is chosen, if
        there is room."""
        differences = list(self.differences(loop))
        later = {inner.loop_var for inner in [loop, *loops_in(loop.body)] if _may_choose(inner)}
        if any(not later.isdisjoint(difference.terms) for _, difference in differences):
            return self.whole(loop)  # A version of a loop inside has fewer conditions.
        condition, true = interior(self.indices, differences, variables_of(loop), self.around)
        if condition is None or not self.may_add(loop, 1):
            return self.whole(loop)
        before, self.true = self.true, self.true | true
        first = self.with_values(loop, {})
        self.true = before
        return S.IfThenElse(condition, first, self.whole(loop), span=loop.span)

    def whole(self, loop: S.For) -> S.Stmt:
        """A loop that stays one."""
        with self.entered(loop, loop.loop_var):
            return super().loop(loop)

    @contextmanager
    def entered(self, loop: S.For, var: E.Var) -> Iterator[None]:
        """In a loop under a variable."""
        around = self.around
        if _may_choose(loop):
            self.around |= {var}
        yield
        self.around = around

    def differences(self, loop: S.For) -> Iterator[Difference]:
        """The comparisons in a loop that are not known to hold, and are exact sums of variables."""
        indices = self.indices
        for comparison in _comparisons(loop.body):
            if comparison in self.true or not _compares_integers(comparison):
                continue
            a, b = (indices.sum_of(self.rewrite(side)) for side in (comparison.a, comparison.b))
            difference = a.plus(b, -1)
            if not all(map(indices.is_exact, (a, b, difference))):
                continue
            if all(isinstance(term, E.Var) for term in difference.terms):
                yield comparison, difference

    def part(self, loop: S.For, dtype: str, start: int, stop: int) -> S.Stmt:
        """The iterations from `start` to `stop`, under a variable of their own."""
        low = E.IntImm(dtype, start)
        if stop - start == 1:
            return self.with_values(loop.body, {loop.loop_var: low})
        var = E.Var(loop.loop_var.name, loop.loop_var.dtype)
        self.indices.bind(var, start, stop - 1)
        with self.entered(loop, var):
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
        if comparison in self.true or not _compares_integers(comparison):
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


def _compares_integers(comparison: E.ComparisonExpr) -> bool:
    return dtypes.is_integer(comparison.a.dtype) and dtypes.lanes(comparison.a.dtype) == 1


def _may_choose(loop: S.For) -> bool:
    """Whether a loop may choose between versions of the loops in it. The iterations of what is to
    become vectors go on side by side and cannot."""
    return loop.kind != S.ForKind.VECTORIZED and not is_innermost(loop)


def _copies(loop: S.For, size: int) -> int:
    """How often a body of some size is written out, about."""
    if not isinstance(loop.extent, E.IntImm):
        return 1
    extent = loop.extent.value
    if loop.kind == S.ForKind.VECTORIZED:
        return -(-extent // VECTOR_LENGTH)
    small = extent <= REGISTER_EXTENT and extent * size <= SMALL_LOOP
    return extent if small or loop.kind == S.ForKind.UNROLLED else 1


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


class _Splits(_LoopPartition):
    """Splits alone, as far as a function stays within `MAX_NODES`."""

    def growth(self) -> int:
        return MAX_NODES

    def size_of(self, node: Node) -> int:
        return sum(1 for _ in walk(node))

    def in_versions(self, loop: S.For) -> S.Stmt:
        return self.whole(loop)
