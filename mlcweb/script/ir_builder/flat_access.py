"""Elements of a buffer by one index, which counts them in row-major order."""

from __future__ import annotations

from typing import Any

from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer


def element_indices(buffer: Buffer, index: Any) -> tuple[E.PrimExpr, ...]:
    """An index for each dimension; a single index of several dimensions is divided among them."""
    indices = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    if len(indices) == 1 and len(buffer.shape) > 1:
        rest, inner = arithmetic.convert(indices[0]), []
        for extent in reversed(buffer.shape[1:]):
            inner.append(arithmetic.floormod(rest, extent))
            rest = arithmetic.floordiv(rest, extent)
        indices = (rest, *reversed(inner))
    return tuple(map(arithmetic.convert, indices))
