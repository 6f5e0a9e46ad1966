"""How threads combine values, one of each, or a tuple: those of a warp read each other's registers,
as far as they can. What is left they put side by side in shared memory, and the first few combine
it, step by step. (M. Harris, "Optimizing parallel reduction in CUDA", 2007.)"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import gcd, prod
from typing import Any, NamedTuple

from mlcweb.analysis.threads import WARP_EXCHANGE
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.schedule.rewriting.nests import in_loops
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import (
    add,
    const,
    floordiv,
    floormod,
    is_const_int,
    multiply,
    subtract,
)
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.builtins import OPS
from mlcweb.tir.reduction import CommReducer
from mlcweb.tir.substitute import substitute

VALUES_A_STEP = 4
"""A thread combines so many values between two barriers: two would need twice as many barriers, and
longer rows of values leave most threads idle."""

EXCHANGED = ("float16", "float32", "float64", "int32", "uint32")
"""The types of values that a thread can read from a register of another in its warp."""

ALL_LANES = 0xFFFFFFFF


class Tree(NamedTuple):
    """The steps of a reduction, between which threads wait for each other, and the memory that they
    need. After them each thread may read the `results`; in the first of those that reduce together
    `position` is 0."""

    steps: list[S.Stmt]
    memory: list[Buffer]
    results: Sequence[E.PrimExpr]
    position: E.PrimExpr


def reduction_tree(
    reducer: CommReducer,
    values: Sequence[E.PrimExpr],
    name: str,
    threads: Sequence[S.For],
    reduced: Sequence[S.For],
    own: Sequence[S.For] = (),
    warp: int = 1,
    span: Any = None,
) -> Tree:
    """The reduction of what threads have in the iterations of loops of their `own`.

    Args:
        name: of what is reduced to; memory is called after it.
        threads: the loops over threads of a block around.
        reduced: those of them whose threads reduce together, of constant extents.
        warp: so many neighbouring threads can read each other's registers.
    """
    combining = _Combining(reducer, name, span)
    count = prod(loop.extent.value for loop in reduced if isinstance(loop.extent, E.IntImm))
    others = [loop for loop in threads if loop not in reduced]
    lanes = 1
    if set(combining.dtypes) <= set(EXCHANGED) and _are_neighbours(reduced, others):
        # Neighbouring threads are lanes that follow each other, along threadIdx.x first.
        reduced = sorted(reduced, key=_axis, reverse=True)
        lanes = gcd(count, warp, WARP_SIZE)
    position: E.PrimExpr = const(0)
    for loop in reduced:
        index = subtract(loop.loop_var, loop.min)
        position = add(multiply(position, loop.extent), index)
    steps: list[S.Stmt] = []
    memory: list[Buffer] = []
    if own or lanes > 1:
        sums = combining.buffers("own", (const(1),), "local")
        memory += sums
        elements = [E.BufferLoad(sum_, (const(0),)) for sum_ in sums]
        steps += combining.in_register(elements, values, own)
        steps += combining.within_warps(elements, lanes)
        values = elements
    if lanes < count:
        shape = (*(loop.extent for loop in others), const(count // lanes))
        place = tuple(subtract(loop.loop_var, loop.min) for loop in others)
        partials = combining.buffers("partial", shape, "shared")
        memory += partials
        steps += combining.in_shared_memory(partials, place, position, values, lanes)
        values = [E.BufferLoad(partial, (*place, const(0))) for partial in partials]
    return Tree(steps, memory, values, position)


class _Combining:
    """Writes statements in which a thread combines values."""

    def __init__(self, reducer: CommReducer, name: str, span: Any) -> None:
        self.reducer = reducer
        self.name = name
        self.span = span
        self.dtypes = [var.dtype for var in reducer.lhs]

    def buffers(self, name: str, shape: tuple[E.PrimExpr, ...], scope: str) -> list[Buffer]:
        """One for each value of the tuple."""
        names = [f"{self.name}_{name}"]
        if len(self.dtypes) > 1:
            names = [f"{self.name}_{number}_{name}" for number in range(len(self.dtypes))]
        return [
            decl_buffer(shape, dtype, name, scope=scope)
            for name, dtype in zip(names, self.dtypes, strict=True)
        ]

    def store(self, elements: Sequence[E.BufferLoad], values: Sequence[E.PrimExpr]) -> S.Stmt:
        stores = (
            S.store_to(element, value, self.span)
            for element, value in zip(elements, values, strict=True)
        )
        return S.sequence(*stores)

    def combined(self, left: Sequence[E.PrimExpr], right: Sequence[E.PrimExpr]) -> list[E.PrimExpr]:
        sides = zip((*self.reducer.lhs, *self.reducer.rhs), (*left, *right), strict=True)
        values = dict(sides)
        return [substitute(result, values) for result in self.reducer.result]

    def accumulate(self, elements: Sequence[E.BufferLoad], *more: Sequence[E.PrimExpr]) -> S.Stmt:
        """Combine elements with values. Of a tuple, all is computed before any of it is stored."""
        if len(elements) == 1:
            return self.store(elements, functools.reduce(self.combined, more, list(elements)))
        steps: list[S.Stmt] = []
        for values in more:
            others = [E.Var(var.name, var.dtype) for var in self.reducer.rhs]
            results = [E.Var(f"{self.name}_{n}", dtype) for n, dtype in enumerate(self.dtypes)]
            step = self.store(elements, results)
            combined = zip(results, self.combined(elements, others), strict=True)
            for var, value in reversed([*zip(others, values, strict=True), *combined]):
                step = S.LetStmt(var, value, step)
            steps.append(step)
        return S.sequence(*steps)

    def in_register(
        self,
        elements: Sequence[E.BufferLoad],
        values: Sequence[E.PrimExpr],
        own: Sequence[S.For],
    ) -> list[S.Stmt]:
        """Each thread combines the values of its own loops."""
        if not own:
            return [self.store(elements, values)]
        start = self.store(elements, self.reducer.identity_element)
        return [start, in_loops(self.accumulate(elements, values), own)]

    def within_warps(self, elements: Sequence[E.BufferLoad], lanes: int) -> list[S.Stmt]:
        """Each thread combines its value with those of the others among so many neighbours: with
        the one whose lane differs in the highest bit, then in the next, until all have the same."""
        steps: list[S.Stmt] = []
        while (offset := lanes >> (len(steps) + 1)) > 0:
            how = (const(offset), const(lanes), const(lanes))
            others = [
                E.Call(own.dtype, OPS["tvm_warp_shuffle_xor"], (_MASK, own, *how))
                for own in elements
            ]
            steps.append(self.accumulate(elements, others))
        if not steps:
            return []
        exchange = S.sequence(*steps)
        return [S.AttrStmt(const(0), WARP_EXCHANGE, const(lanes), exchange, span=self.span)]

    def in_shared_memory(
        self,
        partials: Sequence[Buffer],
        place: tuple[E.PrimExpr, ...],
        position: E.PrimExpr,
        values: Sequence[E.PrimExpr],
        lanes: int,
    ) -> list[S.Stmt]:
        """The first of each so many lanes puts its value into memory, and the first few threads
        combine what is there until one element has all."""

        def at(index: E.PrimExpr) -> list[E.BufferLoad]:
            return [E.BufferLoad(partial, (*place, index)) for partial in partials]

        first = self.store(at(floordiv(position, const(lanes))), values)
        if lanes > 1:
            first = S.IfThenElse(E.EQ(floormod(position, const(lanes)), const(0)), first)
        steps = [first]
        rest = getattr(partials[0].shape[-1], "value", 1)
        while rest > 1:
            # After this step so many values remain, and the first threads have one each.
            kept = -(-rest // VALUES_A_STEP)
            whole = rest // kept
            more = [at(add(position, index * kept)) for index in range(1, whole)]
            step: S.Stmt = S.IfThenElse(
                E.LT(position, const(kept)), self.accumulate(at(position), *more)
            )
            if rest % kept:
                few = E.LT(position, const(rest - whole * kept))
                one_more = self.accumulate(at(position), at(add(position, whole * kept)))
                step = S.sequence(step, S.IfThenElse(few, one_more))
            steps.append(step)
            rest = kept
        return steps


_MASK = const(ALL_LANES, "uint32")


def _are_neighbours(reduced: Sequence[S.For], others: Sequence[S.For]) -> bool:
    """Whether threads that reduce together are threads of the machine, with no others between
    them, along no axis."""
    if not all(_axis(loop).startswith("threadIdx") for loop in reduced):
        return False
    between = (_axis(loop) for loop in others if not is_const_int(loop.extent, 1))
    furthest = max(map(_axis, reduced))
    return all(furthest < axis for axis in between)


def _axis(loop: S.For) -> str:
    assert loop.thread_binding is not None
    return loop.thread_binding.thread_tag
