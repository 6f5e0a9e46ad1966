"""What indexing a buffer means: an element, a vector, or a region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.span import Span
from mlcweb.script.namespace.loops import length_of
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.constructors import make_ramp
from mlcweb.tir.operators import operator_name


def vector_load(region: BufferRegion) -> E.BufferLoad:
    """The elements of a region as one vector; only the last range may have several."""
    indices: list[E.PrimExpr] = []
    for part in region.region:
        if arithmetic.is_const_int(part.extent, 1):
            indices.append(part.min)
        elif isinstance(part.extent, E.IntImm) or _is_scalable(part.extent):
            indices.append(make_ramp(part.min, 1, part.extent))
        else:
            raise DiagnosticError(
                f'The slice of buffer "{region.buffer.name}" has no constant length, and so is no '
                "vector"
            )
    return E.BufferLoad(region.buffer, _checked(region.buffer, indices))


def access(buffer: Buffer, indices: Sequence[Any], span: Span | None) -> Any:
    """A read of an element, of a vector (slices with a step), or a region (plain slices)."""
    if not any(isinstance(index, slice) for index in indices):
        return E.BufferLoad(buffer, tuple(indices), span=span)
    if any(isinstance(index, slice) and index.step is not None for index in indices):
        return E.BufferLoad(buffer, vector_indices(buffer, indices), span=span)
    ranges = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        if isinstance(index, slice):
            start, stop = _bounds(index, extent)
            ranges.append(Range(start, length_of(start, stop)))
        else:
            ranges.append(Range(index, arithmetic.const(1, index.dtype)))
    return BufferRegion(buffer, tuple(ranges), span=span)


def vector_indices(buffer: Buffer, indices: Sequence[Any]) -> tuple[E.PrimExpr, ...]:
    """Indices with slices as ramps."""
    result: list[E.PrimExpr] = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not isinstance(index, slice):
            result.append(index)
            continue
        start, stop = _bounds(index, extent)
        step = arithmetic.convert(1 if index.step is None else index.step)
        length = length_of(start, stop)
        if _is_scalable(length) and arithmetic.is_const_int(step, 1):
            result.append(make_ramp(start, step, length))
            continue
        if not isinstance(length, E.IntImm) or not isinstance(step, E.IntImm) or step.value == 0:
            raise DiagnosticError(
                f'A vector of buffer "{buffer.name}" needs a slice of constant length and step'
            )
        lanes = -(-length.value // step.value)
        stride = arithmetic.const(step.value, start.dtype)
        result.append(start if lanes == 1 else E.Ramp(start, stride, lanes))
    return _checked(buffer, result)


def _is_scalable(length: E.PrimExpr) -> bool:
    """Whether a length is `T.vscale()` times a number."""
    factors = (length.a, length.b) if isinstance(length, E.Mul) else ()
    return any(operator_name(factor) == "vscale" for factor in factors)


def _checked(buffer: Buffer, indices: list[E.PrimExpr]) -> tuple[E.PrimExpr, ...]:
    for index in indices[:-1]:
        if dtypes.lane_count(index.dtype) != 1:
            raise DiagnosticError(
                f'Only the last index of buffer "{buffer.name}" may be a vector, not also {index}'
            )
    return tuple(indices)


def _bounds(index: slice, extent: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    start = 0 if index.start is None else index.start
    stop = extent if index.stop is None else index.stop
    return arithmetic.match_types(start, stop)
