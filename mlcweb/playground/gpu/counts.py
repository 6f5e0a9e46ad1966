"""How many memory transactions the warps of a kernel make, access by access.

The address of an access is a sum of terms. Those that depend on the thread, or on what a condition
depends on, are computed for all threads and all values of the loops in them. All others move the
whole warp, of which only the position in a line matters: how often each position occurs is counted
on its own. So the counts are exact, however many iterations there are. Only where too many values
hang together are they taken of a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.codegen.numpy.evaluate import NotConstant, evaluate
from mlcweb.ir import TVMError
from mlcweb.playground.gpu.fragments import Pieces, UnknownFragment, all_values, pieces_of
from mlcweb.playground.gpu.memory import INACTIVE, bank_use, units
from mlcweb.playground.gpu.sites import Loop, Site
from mlcweb.playground.protocol.gpu import LANES, LINE, SECTOR, GpuCost
from mlcweb.tir import expr as E
from mlcweb.tir.substitute import variables_in

MAX_ADDRESSES = 2**20
"""Addresses of threads that are looked at for one access; beyond them a sample is taken."""

Values = Mapping[E.Var, np.ndarray]


class Axis(NamedTuple):
    """The values of a variable."""

    low: int
    extent: int


class Launch:
    """The threads of a kernel, by warps. Extents of axes are constant."""

    def __init__(self, kernel: DeviceKernel) -> None:
        self.kernel = kernel
        self.block = kernel.block_size()
        self.threads = prod(self.block)
        self.warps = -(-self.threads // LANES)
        self.grid = tuple(_extent(kernel, f"blockIdx.{axis}") for axis in "xyz")
        lane = np.arange(self.warps * LANES, dtype=np.int64)
        self.exists = (lane < self.threads).reshape(self.warps, LANES)
        x, y, _ = self.block
        index = {"x": lane % x, "y": lane // x % y, "z": lane // (x * y)}
        self.thread_values: dict[E.Var, np.ndarray] = {}
        self.axes: dict[E.Var, Axis] = {}
        for var, tag in kernel.indices.items():
            if tag.startswith("threadIdx"):
                self.thread_values[var] = index[tag[-1]].reshape(1, self.warps, LANES)
            else:
                self.axes[var] = Axis(0, _extent(kernel, tag))
        # What the host loops over: the first launch.
        self.fixed = {var: np.zeros((), np.int64) for var in kernel.scalars}

    @property
    def blocks(self) -> int:
        return prod(self.grid)

    def first_values(self, *loops: Loop) -> dict[E.Var, np.ndarray]:
        """All variables but those of threads, in the first block and iteration."""
        values = self.fixed | {var: np.zeros((), np.int64) for var in self.axes}
        return values | {loop.var: np.array(loop.low, np.int64) for loop in loops}


def _extent(kernel: DeviceKernel, tag: str) -> int:
    extent = kernel.extent(tag)
    if not isinstance(extent, E.IntImm):
        raise TVMError(
            f'"{kernel.name}" has {extent} blocks along {tag}, which is known only when it is '
            "called; bind its sizes to numbers to see the counts"
        )
    return extent.value


def count(site: Site, launch: Launch) -> GpuCost | None:
    """What an access costs; None where its addresses depend on data, or where it is not known
    which threads of a warp access what of a fragment together."""
    try:
        return _Count(site, launch).result()
    except (NotConstant, UnknownFragment):
        return None


def lane_addresses(site: Site, launch: Launch, warp: int) -> list[int | None] | None:
    """The bytes that the lanes of a warp of the first block touch in the first iteration of all
    loops, from the beginning of the buffer; None for a lane that does not take part, and for all
    where data decide."""
    values = launch.first_values(*site.loops, *site.tile)
    values |= {var: value[0, warp] for var, value in launch.thread_values.items()}
    try:
        element = np.broadcast_to(evaluate(site.index, values), LANES)
        active = holds(site.conditions, values) & launch.exists[warp]
    except NotConstant:
        return None
    first = element * site.item_bytes
    return [int(a) if taken else None for a, taken in zip(first, active, strict=True)]


def holds(conditions: Iterable[E.PrimExpr], values: Values) -> np.ndarray:
    """Where all conditions hold."""
    result = np.ones((), bool)
    for condition in conditions:
        result = np.logical_and(result, evaluate(condition, values))
    return result


class _Count:
    def __init__(self, site: Site, launch: Launch) -> None:
        self.site = site
        self.launch = launch
        loops = {loop.var: Axis(loop.low, loop.extent) for loop in site.loops}
        self.axes = launch.axes | loops
        self.of_lanes = launch.thread_values.keys() | {loop.var for loop in site.tile}
        self.exact = True
        self.terms = [(scale * site.item_bytes, term) for scale, term in _terms(site.index, 1)]
        self.pieces: Pieces | None = pieces_of(site) if site.tile and site.shared else None
        self.width = self.pieces.bytes if self.pieces else site.bytes

    def result(self) -> GpuCost:
        joint = self._joint()
        near = [term for term in self.terms if self._is_near(term[1], joint)]
        far = [term for term in self.terms if term not in near]
        free = self.axes.keys() - joint
        shifts = self._shifts(far, free)
        lanes = prod(loop.extent for loop in self.site.tile) if self.site.tile else LANES
        most = max(1, MAX_ADDRESSES // (self.launch.warps * lanes))
        values, weight, exact = self._values(joint, most)
        self.exact = self.exact and exact
        if not weight:
            return GpuCost(0, 0, 0, 0, 0, 0, 0, True)
        addresses, active = self._addresses(near, values)
        return self._sum(addresses, active, shifts, weight)

    def _is_near(self, term: E.PrimExpr, joint: set[E.Var]) -> bool:
        return not variables_in(term).isdisjoint(joint | self.of_lanes)

    def _joint(self) -> set[E.Var]:
        """The loops and axes of blocks that hang together with threads and conditions."""
        conditions = variables_in(*self.site.conditions)
        joint = conditions & self.axes.keys()
        while True:
            near = (t for _, t in self.terms if self._is_near(t, joint))
            more = variables_in(*near) & self.axes.keys()
            if more <= joint:
                return joint
            joint |= more

    def _shifts(self, far: list[tuple[int, E.PrimExpr]], free: set[E.Var]) -> np.ndarray:
        """How often the terms that move a whole warp put it at each byte of a line."""
        shifts = np.zeros(LINE)
        shifts[0] = 1
        for together in _components(far, free):
            variables = variables_in(*(term for _, term in together)) & free
            values, weight, exact = self._values(variables, MAX_ADDRESSES)
            self.exact = self.exact and exact
            total = sum(scale * self._value(term, values) for scale, term in together)
            here = np.bincount(
                np.ravel(np.broadcast_to(total, _size(values))) % LINE, minlength=LINE
            )
            shifts = (
                np.array([(shifts * np.roll(here[::-1], shift + 1)).sum() for shift in range(LINE)])
                * weight
            )
            free = free - variables
        return shifts * prod(self.axes[var].extent for var in free)

    def _values(
        self, variables: set[E.Var], most: int
    ) -> tuple[dict[E.Var, np.ndarray], float, bool]:
        """The values of some variables, their combinations along one axis, `most` of them; how
        many iterations each stands for; and whether they are all."""
        order = sorted(variables, key=lambda var: var.name)
        extents = [self.axes[var].extent for var in order]
        points = prod(extents)
        exact = points <= most
        numbers = np.arange(points, dtype=np.int64)
        if not exact:
            numbers = np.sort(np.random.default_rng(0).choice(points, most, replace=False))
        values: dict[E.Var, np.ndarray] = {}
        for var, digit in zip(order, np.unravel_index(numbers, extents or (1,)), strict=False):
            values[var] = (digit.astype(np.int64) + self.axes[var].low).reshape(-1, 1, 1)
        return values, (0.0 if not points else points / len(numbers)), exact

    def _value(self, term: E.PrimExpr, values: Values) -> np.ndarray:
        return evaluate(term, {**self.launch.fixed, **self.launch.thread_values, **values})

    def _addresses(
        self, near: list[tuple[int, E.PrimExpr]], values: Values
    ) -> tuple[np.ndarray, np.ndarray]:
        """One row for each warp and combination of values, one column for each lane or element of
        a tile."""
        launch = self.launch
        points = max((len(value) for value in values.values()), default=1)
        environment = {**launch.fixed, **launch.thread_values, **values}
        shape: tuple[int, ...] = (points, launch.warps, LANES)
        exists = launch.exists[None]
        if self.site.tile:
            # One instruction of the warp: its first lane is like all.
            environment |= {var: value[..., :1] for var, value in launch.thread_values.items()}
            environment |= all_values(self.site.tile, (1, 1, -1))
            shape = (points, launch.warps, prod(loop.extent for loop in self.site.tile))
            exists = exists[..., :1]
        total = sum(
            (scale * evaluate(term, environment) for scale, term in near), np.zeros((), np.int64)
        )
        active = np.broadcast_to(holds(self.site.conditions, environment) & exists, shape)
        rows = (points * launch.warps, shape[2])
        addresses = np.broadcast_to(total, shape).reshape(rows)
        active = active.reshape(rows)
        if self.pieces is not None:
            return addresses[:, self.pieces.first], active[:, self.pieces.first]
        return addresses, active

    def _sum(
        self,
        addresses: np.ndarray,
        active: np.ndarray,
        shifts: np.ndarray,
        weight: float,
    ) -> GpuCost:
        taking = active.any(1)
        addresses, active = addresses[taking], active[taking]
        launches = shifts.sum() * weight
        if not len(addresses) or not launches:
            return GpuCost(0, 0, 0, 0, 0, 0, 0, self.exact)
        width = self.width
        placed = np.where(active, addresses, INACTIVE)
        useful = units(placed, width) * width
        if self.site.shared:
            use = bank_use(placed, width)
            ideal = -(-useful // LINE)
            return GpuCost(
                float(len(placed) * launches), float(active.sum() * launches), 0,
                float(use.passes.sum() * launches),
                float(np.maximum(ideal, _fewest_passes(placed, width)).sum() * launches),
                int(use.degree.min()), int(use.degree.max()), self.exact,
            )  # fmt: skip
        sectors = 0.0
        least, most = LANES * LINE, 0
        for shift in np.flatnonzero(shifts):
            moved = np.where(active, addresses + shift, INACTIVE)
            touched = units(moved, SECTOR)
            sectors += float(touched.sum() * shifts[shift] * weight)
            least, most = min(least, int(touched.min())), max(most, int(touched.max()))
        return GpuCost(
            float(len(placed) * launches), float(active.sum() * launches), sectors, 0,
            float((-(-useful // SECTOR)).sum() * launches), least, most, self.exact,
        )  # fmt: skip


def _fewest_passes(placed: np.ndarray, width: int) -> np.ndarray:
    """How often the banks are read for a row at least: once for each group of lanes."""
    groups = max(1, width * LANES // LINE)
    parts = placed.reshape(len(placed), groups, -1)
    return (parts != INACTIVE).any(2).sum(1)


def _size(values: Values) -> tuple[int, int, int]:
    return max((len(value) for value in values.values()), default=1), 1, 1


def _terms(expression: E.PrimExpr, scale: int) -> list[tuple[int, E.PrimExpr]]:
    """An expression as a sum: terms, and what each is multiplied by."""
    if isinstance(expression, E.Add):
        return _terms(expression.a, scale) + _terms(expression.b, scale)
    if isinstance(expression, E.Sub):
        return _terms(expression.a, scale) + _terms(expression.b, -scale)
    if isinstance(expression, E.Mul):
        for factor, constant in ((expression.a, expression.b), (expression.b, expression.a)):
            if isinstance(constant, E.IntImm):
                return _terms(factor, scale * constant.value)
    return [(scale, expression)]


def _components(
    terms: list[tuple[int, E.PrimExpr]], free: set[E.Var]
) -> list[list[tuple[int, E.PrimExpr]]]:
    """Terms that have variables in common, together."""
    groups: list[tuple[set[E.Var], list[tuple[int, E.PrimExpr]]]] = []
    for term in terms:
        variables = variables_in(term[1]) & free
        together = [term]
        apart = []
        for others, members in groups:
            if others.isdisjoint(variables):
                apart.append((others, members))
            else:
                variables |= others
                together += members
        groups = [*apart, (variables, together)]
    return [members for _, members in groups]
