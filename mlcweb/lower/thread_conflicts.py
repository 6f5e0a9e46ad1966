"""Whether two accesses of different threads may meet in one element, by enumeration.

Indices, bounds and guards become one Python expression that lists the elements that each thread
touches. What cannot be listed, or is too much, may meet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple

from mlcweb.analysis.threads import thread_tag
from mlcweb.arith import conjunction, conjuncts, const_int_bound, same_expressions
from mlcweb.arith.iter_map import BIJECTIVE, detect_iter_map
from mlcweb.ir.span import Span
from mlcweb.lower.index_text import FUNCTIONS, UnknownIndex, index_text
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.substitute import uses_any, variables_in

QUICK, THOROUGH = 1 << 13, 1 << 18
"""The most iterations that are looked at for one access, where a needless barrier costs little, and
where it would be an error."""

Values = tuple[int | None, ...]


class Reduction(NamedTuple):
    """A reduction whose threads along some axes add to one element, one after the other."""

    block: object
    axes: frozenset[str]


@dataclass(eq=False, slots=True)
class Access:
    """A read or write by threads. `indices` are None where they are not known; `loops` are those
    around it, over threads too, `guards` the conditions; both may be too few, never too many.
    `reduction` is the cross-thread reduction that it is a part of."""

    buffer: Buffer
    indices: tuple[E.PrimExpr, ...] | None
    writes: bool
    loops: tuple[S.For, ...]
    guards: tuple[E.PrimExpr, ...]
    reduction: Reduction | None = None
    span: Span | None = None
    _points: dict[int, Points | None] = field(default_factory=dict, init=False)

    def where(self, var: E.Var, value: E.PrimExpr) -> Access:
        """The same in one iteration of a loop around it, if that is known."""
        if not isinstance(value, E.IntImm):
            return self
        return replace(self, guards=(*self.guards, E.EQ(var, value)))

    def points(self, limit: int) -> Points | None:
        """The iterations; None where they cannot be listed or are more than `limit`."""
        if limit not in self._points:
            self._points[limit] = self._enumerate(limit)
        return self._points[limit]

    def _enumerate(self, limit: int) -> Points | None:
        if self.indices is None:
            return None
        guards = [guard for guard in self.guards if self._is_listed(guard)]
        loops = self._loops_used(*self.indices, *guards)
        fixed = _fixed_by(self.guards)
        names = _names(loops)
        domains: dict[E.Var, Range] = {}
        size = 1
        for loop in loops:
            if loop.loop_var not in fixed:
                size *= max(const_int_bound(loop.extent, domains).max_value, 1)
            domains[loop.loop_var] = loop.domain
        if size > limit:
            return None
        try:
            clauses = "".join(_clause(loop, fixed, names) for loop in loops)
            parts = [*names.values(), *(index_text(index, names) for index in self.indices)]
        except UnknownIndex:
            return None
        clauses += "".join(f" if {index_text(guard, names)}" for guard in guards)
        point = f"({''.join(f'{part}, ' for part in parts)})"
        try:
            rows = eval(f"[{point}{clauses}]" if loops else f"[{point}]", dict(FUNCTIONS))
        except (ArithmeticError, ValueError):
            return None
        return Points(list(names), rows, {row[len(names) :] for row in rows})

    def _is_listed(self, guard: E.PrimExpr) -> bool:
        """Whether it can be computed in which iterations a guard holds."""
        loops = self._loops_used(guard)
        names = _names(loops)
        try:
            for part in (guard, *(end for loop in loops for end in (loop.min, loop.extent))):
                index_text(part, names)
        except UnknownIndex:
            return False
        return True

    def _loops_used(self, *parts: E.PrimExpr) -> list[S.For]:
        """The loops around that some expressions depend on, outermost first."""
        used = variables_in(*parts)
        loops: list[S.For] = []
        for loop in reversed(self.loops):
            if loop.loop_var in used:
                loops.insert(0, loop)
                used |= variables_in(loop.min) | variables_in(loop.extent)
        return loops


def _names(loops: Sequence[S.For]) -> dict[E.Var, str]:
    return {loop.loop_var: f"v{number}" for number, loop in enumerate(loops)}


class Points(NamedTuple):
    """Variables, for each iteration their values followed by the indices, and the elements: all
    indices, each once."""

    variables: list[E.Var]
    rows: list[tuple[int, ...]]
    elements: set[tuple[int, ...]]


def _fixed_by(guards: Sequence[E.PrimExpr]) -> dict[E.Var, E.IntImm]:
    """The variables that guards say are constants."""
    return {
        part.a: part.b
        for guard in guards
        for part in conjuncts(guard)
        if isinstance(part, E.EQ) and isinstance(part.a, E.Var) and isinstance(part.b, E.IntImm)
    }


def _clause(loop: S.For, fixed: Mapping[E.Var, E.IntImm], names: Mapping[E.Var, str]) -> str:
    """A loop as a part of a comprehension."""
    name = names[loop.loop_var]
    if loop.loop_var in fixed:
        return f" for {name} in ({fixed[loop.loop_var].value},)"
    low, extent = index_text(loop.min, names), index_text(loop.extent, names)
    return f" for {name} in range({low}, {low} + {extent})"


def may_conflict(
    a: Access,
    b: Access,
    same: Collection[E.Var] = (),
    carried: E.Var | None = None,
    limit: int = QUICK,
    following: bool = False,
) -> bool:
    """Whether different threads may touch one element, one of them to write it.

    `same` are the variables of loops that are in the same iteration for both, `carried` is that of
    a loop in different ones; if `following`, `b` is in the one right after that of `a`. Accesses of
    more iterations than `limit` are taken to meet.
    """
    if a.buffer.data is not b.buffer.data or not (a.writes or b.writes):
        return False
    if a.buffer is not b.buffer:
        return True
    wide = (_wide_axes(a) | _wide_axes(b)) - _same_thread(a, b)
    if a.reduction is not None and a.reduction == b.reduction:
        wide -= a.reduction.axes
    if not wide or _have_own_elements(a, b, wide, same):
        return False
    first = a.points(limit)
    second = None if first is None else b.points(limit)
    if first is None or second is None:
        return True
    if first.elements.isdisjoint(second.elements):
        return False
    joined = [var for var in first.variables if var in same and var in second.variables]
    tags = sorted(wide)
    touched: dict[Values, set[tuple[int | None, Values]]] = defaultdict(set)
    for key, iteration, thread in _taken_apart(a, first, joined, tags, carried):
        touched[key].add((iteration, thread))
    for key, iteration, thread in _taken_apart(b, second, joined, tags, carried):
        for other, other_thread in touched.get(key, ()):
            if _in_turn(other, iteration, following) and _differ(thread, other_thread):
                return True
    return False


def write_different_values(store: Access, value: Sequence[E.PrimExpr]) -> bool:
    """Whether threads surely write to one element at once, of which the parts of the value that
    depend on the thread differ. What cannot be listed is not looked at."""
    if store.indices is None:
        return False
    both = replace(store, indices=(*store.indices, *value))
    points = both.points(THOROUGH)
    if points is None:
        return False
    tags = _wide_axes(store)
    threads = {loop.loop_var for loop in store.loops if thread_tag(loop) in tags}
    key = [n for n, var in enumerate(points.variables) if var not in threads]
    key += range(len(points.variables), len(points.variables) + len(store.indices))
    written: dict[Values, Values] = {}
    return any(
        written.setdefault(tuple([row[i] for i in key]), row[-len(value) :]) != row[-len(value) :]
        for row in points.rows
    )


def read_of_another(accesses: Sequence[Access], threads: Sequence[E.Var]) -> Access | None:
    """A read, among the accesses to memory that each thread has for itself, of an element that only
    other threads have written. What cannot be listed is not looked at."""
    written: set[Values] = set()
    reads: list[tuple[Access, Points]] = []
    for access in accesses:
        indices = (*access.indices, *threads) if access.indices is not None else None
        points = replace(access, indices=indices).points(QUICK)
        if points is None:
            return None
        if access.writes:
            written.update(row[len(points.variables) :] for row in points.rows)
        else:
            reads.append((access, points))
    elements = {row[: len(row) - len(threads)] for row in written}
    for access, points in reads:
        for row in points.rows:
            touched = row[len(points.variables) :]
            if touched not in written and touched[: len(touched) - len(threads)] in elements:
                return access
    return None


def _have_own_elements(a: Access, b: Access, wide: set[str], same: Collection[E.Var]) -> bool:
    """Whether two accesses are at the same indices, which are others for each thread."""
    if a.indices is None or b.indices is None:
        return False
    if a.loops != b.loops or not same_expressions(a.indices, b.indices):
        return False
    used = {var for index in a.indices for var in variables_in(index)}
    domains = {
        loop.loop_var: loop.domain
        for loop in a.loops
        if thread_tag(loop) in wide or (loop.loop_var in used and loop.loop_var not in same)
    }
    if detect_iter_map(a.indices, domains, True, BIJECTIVE).indices is not None:
        return True
    # By all loops at once: x // n and x % n are others for each x, which several loops make up.
    domains |= {loop.loop_var: loop.domain for loop in a.loops if loop.loop_var in used}
    shared = [guard for guard in a.guards if any(guard is other for other in b.guards)]
    bounds = conjunction(guard for guard in shared if uses_any(guard, domains))
    return detect_iter_map(a.indices, domains, bounds, BIJECTIVE).indices is not None


def _same_thread(a: Access, b: Access) -> set[str]:
    """The thread axes along which both accesses are of one thread, which their guards name."""
    fixed = [
        {
            thread_tag(loop): values[loop.loop_var].value
            for loop in access.loops
            if loop.loop_var in values
        }
        for access, values in ((a, _fixed_by(a.guards)), (b, _fixed_by(b.guards)))
    ]
    return {tag for tag, value in fixed[0].items() if tag and fixed[1].get(tag) == value}


def _taken_apart(
    access: Access,
    points: Points,
    joined: Sequence[E.Var],
    tags: Sequence[str],
    carried: E.Var | None,
) -> Iterator[tuple[Values, int | None, Values]]:
    """Of each iteration: what has to be equal, the iteration of the carried loop, the thread."""
    assert access.indices is not None
    position = {var: number for number, var in enumerate(points.variables)}
    axes = {thread_tag(loop): position.get(loop.loop_var) for loop in access.loops}
    start = len(points.variables)
    key = [position[var] for var in joined]
    equal = _values_at([*key, *range(start, start + len(access.indices))])
    thread = _values_at([axes.get(tag) for tag in tags])
    at = position.get(carried) if carried is not None else None
    for row in points.rows:
        yield equal(row), None if at is None else row[at], thread(row)


def _values_at(positions: Sequence[int | None]) -> Callable[[Values], Values]:
    """A function that gives the values of a row at some positions; None where there is none."""
    used = [position for position in positions if position is not None]
    if not used or len(used) < len(positions):
        return lambda row: tuple([None if i is None else row[i] for i in positions])
    return itemgetter(*used) if len(used) > 1 else itemgetter(slice(used[0], used[0] + 1))


def _wide_axes(access: Access) -> set[str]:
    """The thread axes around an access that have more than one thread."""
    return {
        thread_tag(loop)
        for loop in access.loops
        if thread_tag(loop) and not is_const_int(loop.extent, 1)
    }


def _in_turn(first: int | None, second: int | None, following: bool) -> bool:
    """Whether two iterations of the carried loop may be those that are asked for."""
    if first is None or second is None:
        return True
    return second == first + 1 if following else second != first


def _differ(a: Values, b: Values) -> bool:
    """Whether two threads may be different ones; None is an index that may be any."""
    return any(x is None or y is None or x != y for x, y in zip(a, b, strict=True))
