"""Loops that copy neighbouring elements, which a language with pointers writes as one vector."""

from __future__ import annotations

from typing import NamedTuple

from mlcweb.arith import Analyzer
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.substitute import substitute, uses

MAX_BYTES = 16
"""The widest vector that a thread loads or stores by one instruction."""


class VectorCopy(NamedTuple):
    """A store and the load that it stores, of `lanes` elements each, and their first indices."""

    store: S.BufferStore
    load: E.BufferLoad
    lanes: int
    first_stored: E.PrimExpr
    first_loaded: E.PrimExpr


def vector_copy(loop: S.For, analyzer: Analyzer) -> VectorCopy | None:
    """The copy that a vectorized loop is; None where it is something else, or elements are no
    vector: neighbours, 2 or 4 of them, the first at a multiple of that."""
    store, extent = loop.body, loop.extent
    if loop.kind is not S.ForKind.VECTORIZED or not isinstance(store, S.BufferStore):
        return None
    load = store.value
    if not (isinstance(load, E.BufferLoad) and isinstance(extent, E.IntImm)):
        return None
    dtype, lanes = store.buffer.dtype, extent.value
    if load.buffer.dtype != dtype or dtype not in ("float32", "int32", "uint32"):
        return None
    if lanes not in (2, 4) or dtypes.size_in_bytes(dtype) * lanes > MAX_BYTES:
        return None
    stored, loaded = (_first(part.indices[0], loop, lanes, analyzer) for part in (store, load))
    if stored is None or loaded is None:
        return None
    return VectorCopy(store, load, lanes, stored, loaded)


def _first(index: E.PrimExpr, loop: S.For, lanes: int, analyzer: Analyzer) -> E.PrimExpr | None:
    """The first of neighbouring elements, where a vector may begin."""
    first = analyzer.simplify(substitute(index, {loop.loop_var: loop.min}))
    step = analyzer.simplify(index - first - loop.loop_var)
    aligned = is_const_int(analyzer.simplify(first % lanes), 0)
    return first if is_const_int(step, 0) and not uses(first, loop.loop_var) and aligned else None
