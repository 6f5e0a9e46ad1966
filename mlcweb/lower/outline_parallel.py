"""Parallel loops as functions of their own, which threads call with ranges of iterations.

For code generators, after all other passes: what becomes of a loop here is what would have been
made of it in its place. The function takes the first iteration, the one after the last, and what
the loop uses of what is around it.

A loop stays where it is, and runs serially, if it is not worth waking a thread, if it lies within
another one that is outlined, or if its iterations are seen to touch the same element: the program
then means what it means in order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children
from mlcweb.lower.index_text import FUNCTIONS, UnknownIndex, index_text
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE, aliasing
from mlcweb.lower.optimize.indices import Indices, Sum
from mlcweb.lower.optimize.rewriter import bind_ranges
from mlcweb.lower.optimize.unroll import operations_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.contents import accesses_in, buffers_written, variables_used
from mlcweb.tir.function import PrimFunc

MIN_OPERATIONS = 1_600_000
"""Loops of fewer operations wake no thread. To launch one on two threads takes 10 to 20 us more
than to run it, and the fastest loops were seen to do ten operations in a nanosecond: so many take
at least 160 us, eight times as long as to launch them, and so hardly get slower even where two
threads share one core. What is estimated is the same in each run, which a measured time is not."""

MAX_ITERATIONS = 1 << 16
MAX_PLACES = 1 << 20
"""Loops of more iterations, or that touch more elements of a buffer, are not looked through for
elements that several iterations touch, and stay serial."""

MAX_OFFSETS = 1 << 9
"""Where an iteration touches more, what the constants of indices and what loops inside add to a
place are not taken together."""

MAX_STEPS = 64
"""How many steps of a loop inside are followed."""

UNKNOWN_ITERATIONS = 100
"""What is taken for the number of iterations of a loop where nothing is known of it."""

CALL_OPERATIONS = 1000
"""A call out of a kernel counts as so many operations."""


@dataclass(frozen=True)
class ParallelRegion:
    """A parallel loop as a function. Its parameters are the first iteration, the one after the
    last, both of the type of the loop's variable, and `captured`: variables, and the data of
    buffers, which the function has in its `buffer_map`."""

    loop: S.For
    function: PrimFunc
    captured: tuple[E.Var, ...]


def outline_parallel(func: PrimFunc) -> dict[S.For, ParallelRegion]:
    """The parallel loops of a lowered and optimised function that are worth threads."""
    if not any(map(_is_parallel, S.statements_in(func.body))):
        return {}
    outlining = _Outlining(func)
    return {loop: outlining.region(loop) for loop in outlining.loops_in(func.body)}


def _is_parallel(statement: S.Stmt) -> bool:
    return isinstance(statement, S.For) and statement.kind == S.ForKind.PARALLEL


class _Outlining:
    def __init__(self, func: PrimFunc) -> None:
        self.may_alias = aliasing(func)
        self.indices = Indices()
        bind_ranges(func, self.indices)
        self.work = _Work(self.indices)
        self.owners = func.buffers_by_data()

    def loops_in(self, statement: S.Stmt) -> Iterator[S.For]:
        """The loops to be outlined, in order."""
        if isinstance(statement, S.For) and _is_parallel(statement) and self.pays(statement):
            yield statement
            return
        for child in children(statement):
            if isinstance(child, S.Stmt):
                yield from self.loops_in(child)

    def pays(self, loop: S.For) -> bool:
        """Whether threads may share a loop, and have enough to do."""
        if self.indices.interval(loop.extent)[1] < 2:
            return False
        return self.work.of(loop) >= MIN_OPERATIONS and self.is_shareable(loop)

    def is_shareable(self, loop: S.For) -> bool:
        """Whether no register reaches into the loop, and each iteration has elements of its own of
        all that the loop stores, as far as is seen: all indices into a buffer move with the loop
        alike, and to another place in each iteration, which no loop or vector inside leaves for the
        place of another one."""
        inside = list(S.statements_in(loop.body))
        own = {part.buffer.data for part in inside if isinstance(part, S.AllocBuffer)}
        outer = [a for a in accesses_in(loop.body) if a.buffer.data not in own]
        if any(access.buffer.scope() == REGISTER_SCOPE for access in outer):
            return False
        strides = _IndexStrides(loop, inside, self.indices)
        for buffer in buffers_written(loop.body):
            indices = [a.indices[0] for a in outer if a.buffer.data is buffer.data]
            if not indices:
                continue
            if any(accesses_in(index) for index in indices):
                return False
            others = (a.buffer for a in outer if a.buffer.data is not buffer.data)
            if any(self.may_alias(buffer, other) for other in others):
                return False
            if not strides.is_apart(indices):
                return False
        return True

    def region(self, loop: S.For) -> ParallelRegion:
        var = loop.loop_var
        first, last = E.Var(f"{var.name}_first", var.dtype), E.Var(f"{var.name}_last", var.dtype)
        captured = self.captured(loop)
        buffer_map = {data: self.owners[data] for data in captured if data in self.owners}
        serial = S.ForKind.SERIAL
        body = replace(loop, min=first, extent=E.Sub(last, first), kind=serial)
        func = PrimFunc((first, last, *captured), body, buffer_map=buffer_map)
        return ParallelRegion(loop, func, captured)

    def captured(self, loop: S.For) -> tuple[E.Var, ...]:
        """What a loop uses of what is around it, in the order of first uses."""
        used: dict[E.Var, None] = {}
        defined = {loop.loop_var}
        seen: set[Node] = set()
        pending: list[Node] = [loop.body]
        while pending:
            part = pending.pop()
            if isinstance(part, E.Var):
                used[part] = None
            elif part not in seen:
                seen.add(part)  # statements share expressions
                defined.update(S.defined_variables(part))
                if isinstance(part, (E.BufferLoad, S.BufferStore)):
                    used[part.buffer.data] = None
                pending += children(part)[::-1]
        return tuple(var for var in used if var not in defined)


class _IndexStrides:
    """How indices change with a loop, in which `statements` are. `moving` are its variable, and
    what is computed from it under a name."""

    def __init__(self, loop: S.For, statements: Sequence[S.Stmt], indices: Indices) -> None:
        self.indices = indices
        self.var = loop.loop_var
        self.moving = {self.var}
        self.lets: list[S.LetStmt] = []
        for part in statements:
            if isinstance(part, S.LetStmt) and self.moves(part.value):
                self.moving.add(part.var)
                self.lets.append(part)
        loops = {part.loop_var for part in statements if isinstance(part, S.For)}
        guarded = any(isinstance(part, S.IfThenElse) for part in statements)
        self.inside = set() if guarded else loops

    def moves(self, expression: E.PrimExpr) -> bool:
        return not self.moving.isdisjoint(variables_used(expression))

    def terms(self, total: Sum) -> Hashable:
        """The part of an index that moves with the loop."""
        return frozenset((atom, scale) for atom, scale in total.terms.items() if self.moves(atom))

    def is_apart(self, indices: Sequence[E.PrimExpr]) -> bool:
        """Whether indices into one buffer move alike, and no two iterations meet at one place while
        at most one of the loops inside moves."""
        totals = [self.indices.sum_of(_base(index)) for index in indices]
        if len(set(map(self.terms, totals))) > 1:
            return False
        offsets = self.offsets(indices, totals)
        index = _base(indices[0])
        if all(max(group) - min(group) < self.step(index) for group in offsets):
            return True
        places = self.evaluated(index)
        if not places or len(places) * sum(map(len, offsets)) > MAX_PLACES:
            return False
        return all(_are_apart(places, group) for group in offsets)

    def offsets(self, indices: Sequence[E.PrimExpr], totals: Sequence[Sum]) -> list[Set[int]]:
        """How far what an iteration touches is from a place of its own: all of it together, or in
        groups, if it is much."""
        steps = [self.steps_inside(*pair) for pair in zip(indices, totals, strict=True)]
        first = totals[0].constant
        constants = [total.constant - first for total in totals]
        offsets = {
            constant + step for constant, own in zip(constants, steps, strict=True) for step in own
        }
        if len(offsets) <= MAX_OFFSETS:
            return [offsets]
        return [set(constants), *set(map(frozenset, steps))]

    def steps_inside(self, index: E.PrimExpr, total: Sum) -> set[int]:
        """How far a vector, and one of the loops inside that nothing guards, go from a place, which
        is among them."""
        lanes = range(1)
        if isinstance(index, E.Ramp) and isinstance(index.stride, E.IntImm):
            lanes = [index.stride.value * lane for lane in range(dtypes.lanes(index.dtype))]
        steps = set(lanes)
        for var, scale in total.terms.items():
            if var in self.inside:
                low, high = self.indices.interval(var)
                count = int(min(high - low, MAX_STEPS))
                steps.update(scale * n + lane for n in range(1, count + 1) for lane in lanes)
        return steps

    def step(self, index: E.PrimExpr) -> int:
        """How far an index moves with each iteration; 0 where that is not constant."""
        moving = variables_used(index) & self.moving
        return abs(self.indices.scale_of(index, self.var) or 0) if moving == {self.var} else 0

    @cached_property
    def texts(self) -> dict[E.Var, str]:
        """The variables that move, as Python, where `i` is the iteration."""
        texts = {self.var: "i"}
        self.texts = texts
        for let in self.lets:
            with suppress(UnknownIndex):
                texts[let.var] = self.text(let.value)
        return texts

    def text(self, index: E.PrimExpr) -> str:
        """An index as Python; what does not move is zero."""
        still = dict.fromkeys(variables_used(index) - self.moving, "0")
        return index_text(index, still | self.texts)

    def evaluated(self, index: E.PrimExpr) -> list[int]:
        """The values of an index in all iterations; none where there are too many, or they are not
        known."""
        low, high = self.indices.interval(self.var)
        if high - low >= MAX_ITERATIONS:
            return []
        try:
            iterations = f"range({int(low)}, {int(high) + 1})"
            return eval(f"[{self.text(index)} for i in {iterations}]", dict(FUNCTIONS))
        except (UnknownIndex, ArithmeticError):
            return []


def _are_apart(places: Sequence[int], offsets: Set[int]) -> bool:
    """Whether all sums of a place and an offset differ. Two can be equal only where the offsets
    leave the same remainder when divided by what all distances of places are multiples of; in a
    tile of rows all remainders have the same quotients."""
    distances = [place - places[0] for place in places]
    unit = gcd(*distances) or 1
    steps = [distance // unit for distance in distances]
    quotients: dict[int, set[int]] = {}
    for offset in offsets:
        quotients.setdefault(offset % unit, set()).add(offset // unit)
    return all(
        len({step + quotient for step in steps for quotient in group}) == len(steps) * len(group)
        for group in set(map(frozenset, quotients.values()))
    )


def _base(index: E.PrimExpr) -> E.PrimExpr:
    return index.base if isinstance(index, E.Ramp) else index


class _Work:
    """About how many operations statements take."""

    def __init__(self, indices: Indices) -> None:
        self.indices = indices
        self.counts: dict[Node, float] = {}

    def of(self, node: Any) -> float:
        """The operations in a statement or expression; index arithmetic is free."""
        operations = self.counts.get(node)
        if operations is None:
            operations = self.counts[node] = self.count(node)
        return operations

    def count(self, node: Node) -> float:
        if isinstance(node, (E.BufferLoad, E.Var, E.IntImm, E.FloatImm, E.StringImm)):
            return float(isinstance(node, E.BufferLoad))
        if isinstance(node, S.For):
            extent = self.indices.interval(node.extent)[1]
            count = max(extent, 0) if extent < 2**31 - 1 else UNKNOWN_ITERATIONS
            return self.of(node.body) * count
        if isinstance(node, S.While):
            return UNKNOWN_ITERATIONS * self.of(node.body)
        if isinstance(node, S.BufferStore):
            return 1 + self.of(node.value)
        if isinstance(node, S.IfThenElse):
            other = self.of(node.else_case) if node.else_case is not None else 0
            return self.of(node.condition) + max(self.of(node.then_case), other)
        if isinstance(node, S.Evaluate) and isinstance(node.value, E.Call):
            return CALL_OPERATIONS
        return operations_of(node) + sum(self.of(child) for child in children(node))
