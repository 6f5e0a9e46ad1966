"""The iteration space of one store, as the axes of the arrays that will replace its loops.

The iterators of a block are better axes than the loops around it: whatever splitting, fusing and
reordering did to the loops, their values mostly fill a box again. Where they do not (a triangle,
say), the points themselves become one axis, with an array of values for each iterator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlcweb.codegen.numpy.evaluate import NotConstant, evaluate
from mlcweb.codegen.numpy.leaves import Leaf, Loop
from mlcweb.codegen.numpy.points import connected, enumerate_points
from mlcweb.tir import expr as E
from mlcweb.tir.substitute import variables_in

Array = np.ndarray[Any, Any]


class NeverRuns(Exception):
    """The guards of a statement hold nowhere."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where a variable varies: along `axis` it has `values`; `base`, if any, is added to them and
    depends on the loops that stay."""

    axis: int
    values: Array
    base: E.PrimExpr | None


@dataclass(slots=True)
class Space:
    """Axes by size, the coordinates of variables, and conditions that depend on no axis."""

    sizes: list[int] = field(default_factory=list)
    coordinates: dict[E.Var, Coordinate] = field(default_factory=dict)
    guards: list[E.PrimExpr] = field(default_factory=list)
    bases: dict[E.Var, E.PrimExpr] = field(default_factory=dict)

    def add(self, values: dict[E.Var, Array], bases: dict[E.Var, E.PrimExpr | None]) -> None:
        """An axis along which variables take these values."""
        size = len(next(iter(values.values())))
        for var, places in values.items():
            self.coordinates[var] = Coordinate(len(self.sizes), places, bases[var])
        self.sizes.append(size)

    def grid(self, var: E.Var) -> Array:
        """The values of a variable, without its base, shaped for broadcasting over all axes."""
        coordinate = self.coordinates[var]
        shape = [1] * len(self.sizes)
        shape[coordinate.axis] = -1
        return coordinate.values.reshape(shape)


def separate(
    expression: E.PrimExpr, local: set[E.Var]
) -> tuple[E.PrimExpr | None, E.PrimExpr | None]:
    """An expression as a sum of a part without and a part with the `local` variables.

    Raises `NotConstant` where they are mixed in another way.
    """
    variables = variables_in(expression)
    if not variables & local:
        return expression, None
    if variables <= local:
        return None, expression
    if not isinstance(expression, (E.Add, E.Sub)):
        raise NotConstant(expression)
    (fixed_a, local_a), (fixed_b, local_b) = (
        separate(part, local) for part in (expression.a, expression.b)
    )
    join = type(expression)
    return _join(join, fixed_a, fixed_b), _join(join, local_a, local_b)


def _join(
    join: type[E.BinaryExpr], a: E.PrimExpr | None, b: E.PrimExpr | None
) -> E.PrimExpr | None:
    if b is None:
        return a
    if a is None:
        return b if join is E.Add else E.IntImm(b.dtype, 0) - b
    return a + b if join is E.Add else a - b


def space_of(leaf: Leaf, loops: Sequence[Loop], used: set[E.Var], repeats_matter: bool) -> Space:
    """The space that `loops` span for a statement in which the variables `used` occur.

    `repeats_matter` says whether running the statement twice for the same values of these variables
    differs from running it once. Raises `NotConstant` where there is no such space.
    """
    local = {loop.var for loop in loops}
    space = Space()
    inner_guards = _split_guards(leaf, local, space)
    parts: dict[E.Var, E.PrimExpr] = {}
    bases: dict[E.Var, E.PrimExpr | None] = {}
    for var in sorted(used, key=lambda v: v.name):
        value = leaf.bindings.get(var, var)
        base, part = separate(value, local)
        if part is None:
            space.bases[var] = value
        else:
            parts[var], bases[var] = part, base
    links = [variables_in(e) for e in (*parts.values(), *inner_guards)]
    for group in connected(loops, links):
        members = {loop.var for loop in group}
        guards = [g for g in inner_guards if variables_in(g) <= members]
        varying = {var: part for var, part in parts.items() if variables_in(part) <= members}
        _add_group(space, group, guards, varying, bases, repeats_matter)
    return space


def _split_guards(leaf: Leaf, local: set[E.Var], space: Space) -> list[E.PrimExpr]:
    inner = []
    for guard in leaf.guards:
        variables = variables_in(guard)
        if not variables & local:
            space.guards.append(guard)
        elif variables <= local:
            inner.append(guard)
        else:
            raise NotConstant(guard)
    return inner


def _add_group(
    space: Space,
    loops: list[Loop],
    guards: list[E.PrimExpr],
    varying: dict[E.Var, E.PrimExpr],
    bases: dict[E.Var, E.PrimExpr | None],
    repeats_matter: bool,
) -> None:
    if len(loops) == 1 and not guards and list(varying.values()) == [loops[0].var]:
        loop = loops[0]
        space.add({next(iter(varying)): np.arange(loop.low, loop.low + loop.extent)}, bases)
        return
    points = enumerate_points(loops, guards)
    count = math.prod(points.shape) if points.mask is None else int(points.mask.sum())
    if not count:
        raise NeverRuns
    if not varying:
        if repeats_matter and count > 1:
            space.sizes.append(count)
        return
    values = {var: points.keep(evaluate(part, points.values)) for var, part in varying.items()}
    box = _as_box(values, repeats_matter)
    if box is not None:
        for var, places in box.items():
            space.add({var: places}, bases)
    elif repeats_matter:
        space.add(values, bases)
    else:
        rows = np.unique(np.stack(list(values.values()), axis=1), axis=0)
        space.add(dict(zip(values, rows.T, strict=True)), bases)


def _as_box(values: dict[E.Var, Array], repeats_matter: bool) -> dict[E.Var, Array] | None:
    """Values for each variable of its own, if all their combinations occur (once)."""
    lows = {var: int(places.min()) for var, places in values.items()}
    sizes = {var: int(places.max()) - lows[var] + 1 for var, places in values.items()}
    total = math.prod(sizes.values())
    count = len(next(iter(values.values())))
    if total > count or (repeats_matter and total != count):
        return None
    number: Any = 0
    for var, places in values.items():
        number = number * sizes[var] + (places - lows[var])
    if not np.bincount(number, minlength=total).all():
        return None
    return {var: np.arange(lows[var], lows[var] + sizes[var]) for var in values}
