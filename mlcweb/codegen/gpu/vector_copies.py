"""Loops that copy neighbouring elements, which a language with pointers writes as one vector."""

from __future__ import annotations

from typing import NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.substitute import substitute, uses

WORD = 4
"""Bytes. A thread loads or stores up to four words by one instruction."""


class VectorCopy(NamedTuple):
    """A store and the load that it stores, of `lanes` elements each, which move as a vector of
    `dtype`, and their first indices."""

    store: S.BufferStore
    load: E.BufferLoad
    lanes: int
    dtype: str
    first_stored: E.PrimExpr
    first_loaded: E.PrimExpr


def vector_copy(loop: S.For, analyzer: Analyzer) -> VectorCopy | None:
    """The copy that a vectorized loop is; None where it is something else, or elements are no
    vector: neighbours that fill 4, 8 or 16 bytes, the first at a multiple of that. Elements of less
    than 4 bytes are moved as words."""
    store, extent = loop.body, loop.extent
    if loop.kind is not S.ForKind.VECTORIZED or not isinstance(store, S.BufferStore):
        return None
    load = store.value
    if not (isinstance(load, E.BufferLoad) and isinstance(extent, E.IntImm)):
        return None
    dtype, lanes = store.buffer.dtype, extent.value
    size = dtypes.size_in_bytes(dtype)
    words, rest = divmod(size * lanes, WORD)
    if load.buffer.dtype != dtype or size > WORD or lanes == 1 or rest or words not in (1, 2, 4):
        return None
    stored, loaded = (
        first_neighbour(part.indices[0], loop, lanes, analyzer) for part in (store, load)
    )
    if stored is None or loaded is None:
        return None
    vector = dtypes.with_lanes(dtype if size == WORD else "uint32", words)
    return VectorCopy(store, load, lanes, vector, stored, loaded)


def first_neighbour(
    index: E.PrimExpr, loop: S.For, lanes: int, analyzer: Analyzer
) -> E.PrimExpr | None:
    """The first of neighbouring elements, where a vector may begin."""
    first = analyzer.simplify(substitute(index, {loop.loop_var: loop.min}))
    step = analyzer.simplify(index - first - loop.loop_var)
    aligned = is_const_int(analyzer.simplify(first % lanes), 0)
    return first if is_const_int(step, 0) and not uses(first, loop.loop_var) and aligned else None
