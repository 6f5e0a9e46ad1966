"""Which statements and iterations may change places, decided by looking at every address.

Loop extents are constants here, so the addresses that a statement touches, and when, can simply be
computed: fused and split indices (``f // 64 * 64 + f % 32 // 8 * 16 + i``) need no theory. Loops
that an address does not depend on are not enumerated; of them only the first and the last iteration
matter. Spaces with too many points count as dependent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlcweb.codegen.numpy.evaluate import Grid, NotConstant, evaluate
from mlcweb.codegen.numpy.leaves import Access, Leaf, Loop
from mlcweb.codegen.numpy.points import Points, TooLarge, connected, enumerate_points, usable_guards
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.substitute import variables_in

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Touches:
    """Elements, and the first and last moment at which each is touched (elements may repeat)."""

    elements: Array
    first: Array
    last: Array


def can_run_after(earlier: Leaf, later: Leaf, depth: int) -> bool:
    """Whether all of `earlier` may run before all of `later`, inside `depth` outer loops that both
    share: no element is touched by `later` in one iteration and by `earlier` in a later one."""
    outer, shared = earlier.loops[:depth], _shared_loops(earlier, later)[depth:]
    if not shared:
        return True
    if earlier.barrier or later.barrier:
        return False
    try:
        return all(
            _in_order(
                touches(earlier, a, shared, _used(outer, a, b)),
                touches(later, b, shared, _used(outer, a, b)),
            )
            for a, b in itertools.product(earlier.accesses, later.accesses)
            if shares_elements(a.buffer, b.buffer) and (a.writes or b.writes)
        )
    except (NotConstant, TooLarge):
        return False


def shares_elements(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers are in the same memory; raises `NotConstant` where their elements cannot
    be compared."""
    if a.data is not b.data:
        return False
    if a is not b and (a.dtype != b.dtype or _size(a) != _size(b)):
        raise NotConstant(f"{a.name} and {b.name}")
    return True


def _shared_loops(a: Leaf, b: Leaf) -> list[Loop]:
    pairs = zip(a.loops, b.loops, strict=False)
    return [one for one, other in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs)]


def _used(outer: Sequence[Loop], *accesses: Access) -> list[Loop]:
    """The outer loops that an address depends on: each of their iterations is a case of its own."""
    used = {var for access in accesses for var in _variables(access)}
    return [loop for loop in outer if loop.var in used]


def _variables(access: Access) -> set[E.Var]:
    return {var for index in access.indices or () for var in variables_in(index)}


def _in_order(earlier: Touches, later: Touches) -> bool:
    """Whether no element is touched by `later` before the last time that `earlier` touches it."""
    if not earlier.elements.size or not later.elements.size:
        return True
    if min(earlier.elements.min(), later.elements.min()) < 0:
        return False
    last = np.full(int(max(earlier.elements.max(), later.elements.max())) + 1, -1, np.int64)
    np.maximum.at(last, earlier.elements, earlier.last)
    return not bool((last[later.elements] > later.first).any())


def touches(leaf: Leaf, access: Access, timed: Sequence[Loop], cases: Sequence[Loop]) -> Touches:
    """When each element is touched, in iterations of the `timed` loops counted from zero.

    Elements in different iterations of the loops `cases` count as different.
    """
    link = _variables(access) | {loop.var for loop in cases}
    guards = usable_guards(leaf.guards, leaf.loops)
    groups = connected(leaf.loops, [link, *map(variables_in, guards)])
    place: list[Array] = [np.array([address(access, {})])] if not link else []
    first = last = 0
    for loops in groups:
        points = enumerate_points(loops, usable_guards(guards, loops))
        times = points.keep(iteration_number(timed, points.values))
        if any(loop.var in link for loop in loops):
            place = [_elements(access, points, cases), times]
        elif times.size:
            first, last = first + int(times.min()), last + int(times.max())
        else:
            return Touches(*[np.zeros(0, np.int64)] * 3)
    elements, times = place if len(place) == 2 else (place[0], np.zeros(1, np.int64))
    return Touches(elements, times + first, times + last)


def iteration_number(loops: Sequence[Loop], values: dict[E.Var, Grid]) -> Grid:
    """The position in the order in which nested loops run; loops without values stand at zero."""
    number: Grid = 0
    for loop in loops:
        number = number * loop.extent + (values[loop.var] - loop.low if loop.var in values else 0)
    return number


def _elements(access: Access, points: Points, cases: Sequence[Loop]) -> Array:
    """The addresses that an access has at the points that run, apart for each of the `cases`."""
    case = iteration_number(cases, points.values)
    return points.keep(address(access, points.values) + case * _size(access.buffer))


def address(access: Access, values: dict[E.Var, Grid]) -> Grid:
    """The place of an element in its buffer's memory."""
    buffer, indices = access.buffer, access.indices
    shape, start = constant_shape(buffer), buffer.elem_offset
    if indices is None or shape is None or buffer.strides or not isinstance(start, E.IntImm):
        raise NotConstant(buffer.name)
    place: Grid = 0
    for index, extent in zip(indices, shape, strict=True):
        place = place * extent + evaluate(index, values)
    return place + start.value


def _size(buffer: Buffer) -> int:
    return math.prod(constant_shape(buffer) or ())


def keeps_order(leaf: Leaf, depth: int, kept: Sequence[Loop]) -> bool:
    """Whether a leaf may run its loops inside the first `depth` ones in another way: `kept`
    outermost and one by one, all iterations of the others at once.

    That is so if any two iterations that touch an element which one of them writes run in the same
    order as before, one strictly after the other.
    """
    try:
        return all(
            _keeps_order_of(leaf, data, depth, kept)
            for data in {access.buffer.data for access in leaf.accesses if access.writes}
        )
    except (NotConstant, TooLarge):
        return False


def _keeps_order_of(leaf: Leaf, data: E.Var, depth: int, kept: Sequence[Loop]) -> bool:
    """`keeps_order` as far as the memory `data` is concerned."""
    accesses = [access for access in leaf.accesses if access.buffer.data is data]
    for access in accesses[1:]:
        shares_elements(accesses[0].buffer, access.buffer)
    cases = _used(leaf.loops[:depth], *accesses)
    touched = [_instances(leaf, access, leaf.loops[depth:], cases, kept) for access in accesses]
    elements, times, iterations, writes = (
        np.concatenate(part) for part in zip(*touched, strict=True)
    )
    if not elements.size:
        return True
    order = np.lexsort((times, elements))
    elements, times, iterations, writes = (x[order] for x in (elements, times, iterations, writes))
    # One entry for each iteration that touches an element.
    new = np.flatnonzero((np.diff(elements) != 0) | (np.diff(times) != 0)) + 1
    starts = np.concatenate([np.zeros(1, np.intp), new])
    writes = np.logical_or.reduceat(writes, starts)
    elements, iterations = elements[starts], iterations[starts]
    same = elements[1:] == elements[:-1]
    step = iterations[1:] - iterations[:-1]
    return not (same & ((step < 0) | ((writes[1:] | writes[:-1]) & (step == 0)))).any()


def _instances(
    leaf: Leaf,
    access: Access,
    loops: Sequence[Loop],
    cases: Sequence[Loop],
    kept: Sequence[Loop],
) -> tuple[Array, Array, Array, Array]:
    """For every iteration: the element touched, its time, its iteration among the kept loops, and
    whether it writes."""
    points = enumerate_points([*cases, *loops], usable_guards(leaf.guards, [*cases, *loops]))
    times = iteration_number([*cases, *loops], points.values)
    iterations = iteration_number([*cases, *kept], points.values)
    elements = _elements(access, points, cases)
    writes = np.full(elements.shape, access.writes)
    return elements, points.keep(times), points.keep(iterations), writes
