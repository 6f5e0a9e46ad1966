"""The points of an iteration space, enumerated while compiling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlcweb.codegen.numpy.evaluate import Grid, evaluate
from mlcweb.codegen.numpy.leaves import Loop
from mlcweb.tir import expr as E
from mlcweb.tir.substitute import variables_in

MAX_POINTS = 1 << 22


class TooLarge(Exception):
    """A space has too many points to look at each."""


@dataclass(frozen=True, slots=True)
class Points:
    """A grid of loop iterations, of which `mask` says which really run (None: all).

    `values` holds an open grid: for each loop variable an array along a dimension of its own.
    """

    shape: tuple[int, ...]
    values: dict[E.Var, Grid]
    mask: np.ndarray[Any, Any] | None

    def keep(self, grid: Grid) -> np.ndarray[Any, Any]:
        """The values of a grid at the points that run, as a list."""
        full = np.broadcast_to(grid, self.shape)
        return full.reshape(-1) if self.mask is None else full[self.mask]


def enumerate_points(loops: Sequence[Loop], guards: Iterable[E.PrimExpr]) -> Points:
    """The iterations of nested loops where the guards hold.

    Raises `TooLarge`, and `NotConstant` where a guard depends on more than these loops.
    """
    shape = tuple(loop.extent for loop in loops)
    if math.prod(shape) > MAX_POINTS:
        raise TooLarge(shape)
    ranges = [np.arange(loop.low, loop.low + loop.extent) for loop in loops]
    grids = np.ix_(*ranges) if ranges else ()
    values = {loop.var: grid for loop, grid in zip(loops, grids, strict=True)}
    mask: Any = None
    for guard in guards:
        holds = evaluate(guard, values)
        mask = holds if mask is None else np.logical_and(mask, holds)
    if mask is not None:
        mask = np.broadcast_to(mask, shape)
        mask = None if mask.all() else mask
    return Points(shape, values, mask)


def connected(loops: Sequence[Loop], links: Iterable[Iterable[E.Var]]) -> list[list[Loop]]:
    """The loops in groups: variables of one link are in one group."""
    group_of = {loop.var: index for index, loop in enumerate(loops)}
    for link in links:
        joined = {group_of[var] for var in link if var in group_of}
        for var, group in group_of.items():
            if group in joined:
                group_of[var] = min(joined)
    groups: dict[int, list[Loop]] = {}
    for loop in loops:
        groups.setdefault(group_of[loop.var], []).append(loop)
    return list(groups.values())


def usable_guards(guards: Iterable[E.PrimExpr], loops: Sequence[Loop]) -> list[E.PrimExpr]:
    """The guards that depend on nothing but these loops, and on one of them at least."""
    loop_vars = {loop.var for loop in loops}
    kept = []
    for guard in guards:
        variables = variables_in(guard)
        if variables and variables <= loop_vars:
            kept.append(guard)
    return kept
