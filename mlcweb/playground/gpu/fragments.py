"""How a warp moves a fragment of `wmma` between registers and shared memory.

NVIDIA documents which rows `ldmatrix` takes, and which elements of `mma`'s operands a thread has,
and not how `wmma` moves its own. Here both are assumed to move alike: matrix A and B by rows of 16
bytes, eight at a time ("PTX ISA", ldmatrix), accumulators by pairs of neighbours, of which a warp
moves eight rows of four (fragments of mma.m16n8k16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcweb.codegen.gpu.warp_matrices import ROW_BYTES
from mlcweb.codegen.numpy.evaluate import evaluate
from mlcweb.playground.gpu.sites import Loop, Site
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.substitute import variables_in

ROWS = 8
"""Rows of the matrices that a warp moves at once."""
PAIRS = 4
"""In such a row of an accumulator."""


class UnknownFragment(Exception):
    """The elements do not lie as those that `ldmatrix` and `mma` move."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The pieces of `bytes` that threads move, in the order in which banks serve them: the numbers
    of their first elements among all of a fragment."""

    first: np.ndarray
    bytes: int


def pieces_of(site: Site) -> Pieces:
    """Those of an access to a fragment.

    Raises:
        UnknownFragment: neighbours of a piece are not neighbours in memory.
    """
    rows = _rows(site)
    count = 2 if _is_accumulator(site) else ROW_BYTES // site.item_bytes
    lines, length = rows.shape
    unit = 2 * PAIRS if _is_accumulator(site) else count
    if lines % ROWS or length % unit:
        raise UnknownFragment
    first = rows[:, ::count].reshape(lines // ROWS, ROWS, length // unit, unit // count)
    return Pieces(first.transpose(0, 2, 1, 3).ravel(), count * site.item_bytes)


def _rows(site: Site) -> np.ndarray:
    """The numbers of a fragment's elements, in rows of neighbours in memory."""
    if len(site.tile) != 2:
        raise UnknownFragment
    shape = tuple(loop.extent for loop in site.tile)
    others = variables_in(site.index) - {loop.var for loop in site.tile}
    values = {var: np.zeros((), np.int64) for var in others} | all_values(site.tile, (-1,))
    offsets = np.broadcast_to(evaluate(site.index, values), (shape[0] * shape[1],)).reshape(shape)
    numbers = np.arange(offsets.size).reshape(shape)
    for each, order in ((offsets, numbers), (offsets.T, numbers.T)):
        if (np.diff(each, axis=1) == 1).all():
            return order
    raise UnknownFragment


def _is_accumulator(site: Site) -> bool:
    """Only accumulators are stored."""
    statement = site.statement
    return site.kind == "store" or (
        isinstance(statement, S.BufferStore) and statement.buffer.scope() == "wmma.accumulator"
    )


def all_values(loops: Sequence[Loop], shape: tuple[int, ...]) -> dict[E.Var, np.ndarray]:
    """The values of loops in all their iterations, along an axis of arrays of that shape."""
    extents = [loop.extent for loop in loops]
    digits = np.indices(extents, np.int64).reshape(len(extents), *shape)
    return {loop.var: digit + loop.low for loop, digit in zip(loops, digits, strict=True)}
