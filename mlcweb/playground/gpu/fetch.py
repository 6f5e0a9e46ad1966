"""Which thread fetches which element into shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mlcweb.codegen.numpy.evaluate import NotConstant, evaluate
from mlcweb.ir.visitor import walk
from mlcweb.playground.gpu.counts import Launch, holds
from mlcweb.playground.gpu.fragments import all_values
from mlcweb.playground.gpu.sites import Site
from mlcweb.playground.protocol.gpu import LANES
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import constant_shape

MAX_ELEMENTS = 8192
"""Of a buffer that is shown element by element."""
MAX_STORES = 2**20
"""Stores that are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Fetch:
    """How the threads of the first block fill a shared buffer, in one run through its phase.

    Attributes:
        source: The buffer that it comes from.
        threads: For each element the thread that stores it, -1 for none.
        iterations: For each element which of the thread's stores that is, from 0.
    """

    site: Site
    source: str
    threads: np.ndarray
    iterations: np.ndarray

    @property
    def elements(self) -> int:
        """That are stored."""
        return int((self.threads >= 0).sum())


def fetch(site: Site, launch: Launch, waiting: set[E.Var]) -> Fetch | None:
    """How a store to shared memory from global memory is shared out; None for another access, and
    where that cannot be told. `waiting` are the loops with barriers in them, of which the first
    iteration is taken."""
    source = _source(site, launch)
    size = prod(constant_shape(site.buffer) or (0,))
    if source is None or not 0 < size <= MAX_ELEMENTS or site.tile:
        return None
    loops = [loop for loop in site.loops if loop.var not in waiting]
    iterations = prod(loop.extent for loop in loops)
    if not 0 < iterations * launch.threads <= MAX_STORES:
        return None
    values = launch.first_values(*site.loops)
    values |= all_values(loops, (-1, 1, 1)) if loops else {}
    values |= launch.thread_values
    shape = (iterations, launch.warps, LANES)
    try:
        index = np.broadcast_to(evaluate(site.index, values), shape)
        active = np.broadcast_to(launch.exists & holds(site.conditions, values), shape)
    except NotConstant:
        return None
    threads, iteration = np.full(size, -1), np.zeros(size, np.int64)
    when, warp, lane = np.nonzero(active)
    places = index[active]
    if not len(places) or places.min() < 0 or places.max() + site.lanes > size:
        return None
    for offset in range(site.lanes):
        threads[places + offset] = warp * LANES + lane
        iteration[places + offset] = when
    return Fetch(site, source, threads, iteration)


def _source(site: Site, launch: Launch) -> str | None:
    statement = site.statement
    if not (site.shared and site.kind == "store" and isinstance(statement, S.BufferStore)):
        return None
    names_by_data = {buffer.data: buffer.name for buffer in launch.kernel.buffers}
    loads = (part for part in walk(statement.value) if isinstance(part, E.BufferLoad))
    names = [names_by_data[load.buffer.data] for load in loads if load.buffer.data in names_by_data]
    return names[0] if names else None
