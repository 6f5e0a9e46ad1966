"""The distances between iterations that touch one element.

Two iterations of a chain of loops, one for each of two accesses, are two sets of variables of a
linear system (`mlcweb/arith/linear_system.py`), in which both touch the same element. A *distance*
is how many iterations of a loop the second one is later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from mlcweb.arith import conjuncts
from mlcweb.arith.linear_system import Bound, Form, LinearSystem, constant_ends, digit_units, number
from mlcweb.schedule.analysis.units import let_variables
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import constant_value, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import For, ForKind

Signs = Mapping[int, Bound]
"""Bounds of the distances over some loops, by the position of the loop."""
POSITIVE: Bound = (1, inf)
NEGATIVE: Bound = (-inf, -1)
ZERO: Bound = (0, 0)


@dataclass(frozen=True, slots=True)
class Access:
    """A region that a unit reads or writes."""

    unit: BlockPlace
    region: BufferRegion
    writes: bool


def reversals(chain: Sequence[For], new_order: Sequence[For]) -> list[Signs]:
    """The signs of distances that change direction where the loops of a chain get a new order, or
    that a loop would carry whose iterations run at the same time."""
    position = {loop.loop_var: n for n, loop in enumerate(new_order)}
    after = [position[loop.loop_var] for loop in chain]
    signs: list[Signs] = []
    for first, leading in combinations(range(len(chain)), 2):
        if after[leading] > after[first]:
            continue
        zeros = {n: ZERO for n in range(len(chain)) if n < first or after[n] < after[leading]}
        for sign, other in ((POSITIVE, NEGATIVE), (NEGATIVE, POSITIVE)):
            signs.append({**zeros, first: sign, leading: other})
            if chain[leading].kind not in (ForKind.SERIAL, ForKind.UNROLLED):
                signs.append({**zeros, first: sign, leading: sign})
    return signs


def possible_signs(
    first: Access, second: Access, chain: Sequence[For], signs: Sequence[Signs]
) -> list[Signs]:
    """Those of some signs that two accesses of one element may have, as far as indices tell that
    are loops: where both accesses have one, it is in the same iteration."""
    loops = {
        loop
        for a, b in zip(first.region.region, second.region.region, strict=True)
        if (loop := _index(first, a)) is not None and loop is _index(second, b)
    }
    same = [n for n, loop in enumerate(chain) if loop.loop_var in loops]
    return [
        candidate
        for candidate in signs
        if all(low <= 0 <= high for low, high in (candidate.get(n, ZERO) for n in same))
    ]


def _index(access: Access, side: Range) -> PrimExpr | None:
    """The index that an access has in a dimension, in terms of the loops; None for a range."""
    if not is_const_int(side.extent, 1):
        return None
    for iter_var, value in access.unit.realize.iterators:
        if iter_var.var is side.min:
            return value
    return side.min


def distances_of(
    first: Access,
    second: Access,
    chain: Sequence[For],
    signs: Sequence[Signs],
    distinct: Sequence[Var] | None,
    constant: Callable[[Buffer], bool] | None = None,
) -> tuple[int | None, ...] | None:
    """The distances over the loops of a chain between two iterations, the second of which is that
    of the second access, that touch one element and have some of the signs. None without any.
    `constant` says which buffers nothing in the loops writes to."""
    system = LinearSystem(constant)
    for var, domain in first.unit.domains_around.items():
        if not any(loop.loop_var is var for loop in chain):
            system.name(var, *constant_ends(domain))
    units = digit_units(
        each
        for unit, region in ((a.unit.realize, a.region) for a in (first, second))
        for each in (*unit.iter_values, unit.predicate, *(side.min for side in region.region))
    )
    starts: dict[Var, Form] = {}
    ends: dict[Var, Form] = {}
    steps: list[int] = []
    kept: set[int] = set()
    for loop in chain:
        var = loop.loop_var
        starts[var], ends[var], moves = _moving(loop, units.get(var, ()), system)
        steps.append(moves[0])
        kept.update(moves)
    one = _values(first.unit, chain, starts, system)
    other = _values(second.unit, chain, ends, system)
    for a, b in zip(first.region.region, second.region.region, strict=True):
        width, other_width = constant_value(a.extent), constant_value(b.extent)
        if isinstance(width, int) and isinstance(other_width, int):
            difference = system.form(a.min, one).plus(system.form(b.min, other), -1)
            system.require(difference, 1 - width, other_width - 1)
    differences: list[int] = []
    for var in distinct or ():
        difference = system.variable()
        differences.extend(difference.terms)
        system.require(other[var].plus(one[var], -1).plus(difference, -1), 0, 0)
    system.eliminate(kept.union(differences))
    if not system.propagate(system.bounds):
        return None
    cases = [{d: sign} for d in differences for sign in (POSITIVE, NEGATIVE)] or [{}]
    for candidate in signs:
        limits = {steps[n]: bound for n, bound in candidate.items()}
        for case in cases:
            solution = system.solution({**limits, **case})
            if solution is not None:
                return tuple(int(a) if a == b else None for a, b in (solution[n] for n in steps))
    return None


def _moving(loop: For, units: Sequence[int], system: LinearSystem) -> tuple[Form, Form, list[int]]:
    """A loop's variable in two iterations, and the variables that tell by how much the second is
    later: in all, then in each digit, where the program takes digits of it."""
    low, high = constant_ends(loop.domain)
    step = system.variable(low - high, high - low)
    if not units:
        start = system.variable(low, high)
        end = start.plus(step)
        system.require(end, low, high)
        return start, end, [*step.terms]
    digits, later = (system.digits(low, high, units) for _ in range(2))
    moves = {unit: system.variable() for unit in digits}
    for unit, move in moves.items():
        system.require(later[unit].plus(digits[unit], -1).plus(move, -1), 0, 0)
    system.require(number(moves).plus(step, -1), 0, 0)
    return (
        number(digits),
        number(later),
        [variable for m in (step, *moves.values()) for variable in m.terms],
    )


def _values(
    unit: BlockPlace, chain: Sequence[For], moving: Mapping[Var, Form], system: LinearSystem
) -> dict[Var, Form]:
    """What the variables around a unit are in an iteration of the loops of a chain, whose variables
    are `moving`; loops further inside may be in any iteration."""
    values = dict(moving)
    for var, domain in unit.inner_loops(chain[-1]).items():
        values[var] = system.variable(*constant_ends(domain))
    for var in let_variables(unit, chain[0]):
        values[var] = system.variable()
    bound = {var: system.form(value, values) for var, value in unit.realize.bindings.items()}
    for condition in conjuncts(unit.realize.predicate):
        system.require_condition(condition, values)
    return {**values, **bound}
