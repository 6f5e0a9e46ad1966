"""Images at positions that a grid of coordinates names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes
from mlcweb.topi.shapes import Extent

Tap = tuple[PrimExpr, PrimExpr | None]
"""A position along an axis, a whole number as a float, and its weight (None: 1)."""

METHODS = ("nearest", "bilinear", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
STEEPNESS = -0.75
"""Of the weights of cubic interpolation."""


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """The values of images at the positions of a grid.

    Args:
        data: (n, c, h, w), or (n, c, d, h, w).
        grid: (n, 2, …) or (n, 3, …): positions from -1 to 1, that along the last axis of the image
            first.
        method: "nearest", "bilinear" or "bicubic" interpolation.
        padding_mode: what is outside of the image: "zeros", the nearest element of the "border", or
            the "reflection" of the image.
        align_corners: -1 and 1 are the centres of the outermost elements, not their outer edges.
    """
    rank = data.ndim - 2
    if layout not in ("NCHW", "NCDHW") or rank not in (2, 3) or grid.ndim != data.ndim:
        raise DiagnosticError(
            f"grid_sample: data {shapes.show(data.shape)} and grid {shapes.show(grid.shape)} are "
            '(n, c, h, w) and (n, 2, …) with the layout "NCHW", or (n, c, d, h, w) and (n, 3, …) '
            f'with "NCDHW", not "{layout}"'
        )
    if method not in METHODS or padding_mode not in PADDINGS:
        raise DiagnosticError(
            f"grid_sample: the method is one of {', '.join(METHODS)}, the padding_mode one of "
            f"{', '.join(PADDINGS)}, not {method!r} and {padding_mode!r}"
        )
    dtype = data.dtype
    image = [arithmetic.cast(dtype, extent) for extent in data.shape[2:]]

    def element(*index: PrimExpr) -> PrimExpr:
        batch, channel, *place = index
        taps = []
        for axis, extent in enumerate(image):
            at = grid(batch, arithmetic.const(rank - 1 - axis, batch.dtype), *place)
            pixel = _pixel(arithmetic.cast(dtype, at), extent, align_corners)
            taps.append(_taps(pixel, extent, method, padding_mode, align_corners))
        total: Any = None
        for chosen in itertools.product(*taps):
            value = _value(data, (batch, channel), chosen, image, padding_mode, align_corners)
            for _, weight in chosen:
                value = value if weight is None else value * weight
            total = value if total is None else total + value
        return total

    return compute([*data.shape[:2], *grid.shape[2:]], element, "grid_sample")


def affine_grid(data: Tensor, target_shape: Sequence[Extent], align_corners: bool = True) -> Tensor:
    """The grid of an image's own positions, from -1 to 1, after an affine map.

    Args:
        data: matrices of shape (n, 2, 3), or (n, 3, 4) for images of three axes; the last column is
            added.
        target_shape: (h, w), or (d, h, w).
        align_corners: -1 and 1 are the centres of the outermost elements, not their outer edges.

    Returns: (n, 2, h, w), or (n, 3, d, h, w), as `grid_sample` takes it.
    """
    image = shapes.as_shape(list(target_shape))
    rank, dtype = len(image), data.dtype

    def position(i: PrimExpr, extent: PrimExpr) -> PrimExpr:
        at, size = arithmetic.cast(dtype, i), arithmetic.cast(dtype, extent)
        if align_corners:  # The only element is at -1.
            last = arithmetic.maximum(size - 1.0, 1.0)
            return at * (arithmetic.const(2.0, dtype) / last) - 1.0
        return (at * 2.0 + 1.0) / size - 1.0

    def element(batch: PrimExpr, axis: PrimExpr, *place: PrimExpr) -> PrimExpr:
        total = data(batch, axis, arithmetic.const(rank, batch.dtype))
        for column, (i, extent) in enumerate(reversed(list(zip(place, image, strict=True)))):
            weight = data(batch, axis, arithmetic.const(column, batch.dtype))
            total = total + weight * position(i, extent)
        return total

    return compute([data.shape[0], rank, *image], element, "affine_grid")


def _pixel(at: PrimExpr, extent: PrimExpr, align_corners: bool) -> PrimExpr:
    """A position from -1 to 1 as one in elements."""
    half = (at + 1.0) * 0.5
    if align_corners:
        return half * (extent - 1.0)
    return half * extent - 0.5


def _taps(
    pixel: PrimExpr, extent: PrimExpr, method: str, padding: str, align_corners: bool
) -> Sequence[Tap]:
    """What is summed along an axis."""
    floor: Callable[[Any], PrimExpr] = intrinsics.floor
    if method == "nearest":
        return [(intrinsics.unary_functions["nearbyint"](pixel), None)]
    if method == "bilinear":
        pixel = _inside(pixel, extent, padding, align_corners)
        low = floor(pixel)
        part = pixel - low
        return [(low, 1.0 - part), (low + 1.0, part)]
    low = floor(pixel)
    part = pixel - low
    near = [part + 1.0, part, 1.0 - part]
    away = [*near, 2.0 - part]
    return [
        (low + float(step - 1), _cubic(distance, outer=step in (0, 3)))
        for step, distance in enumerate(away)
    ]


def _cubic(x: PrimExpr, outer: bool) -> PrimExpr:
    """The weight of an element at a distance of 0 to 1, or of 1 to 2 (`outer`).

    R. Keys, "Cubic convolution interpolation for digital image processing", 1981.
    """
    a = STEEPNESS
    if outer:
        return ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0


def _inside(pixel: PrimExpr, extent: PrimExpr, padding: str, align_corners: bool) -> PrimExpr:
    """A position that padding puts into the image; with zeros it stays where it is."""
    last = extent - 1.0
    if padding == "reflection":
        # Distance from the lower edge, in an image that goes there and back.
        low = 0.0 if align_corners else -0.5
        length = last if align_corners else extent
        away = intrinsics.absolute(pixel - low)
        turns = intrinsics.floor(away / length)
        rest = away - turns * length
        half = intrinsics.floor(turns * 0.5) * 2.0
        even = arithmetic.equal(half, turns)
        back = arithmetic.select(even, rest, length - rest)
        pixel = back + low
    if padding == "zeros":
        return pixel
    return arithmetic.minimum(arithmetic.maximum(pixel, 0.0), last)


def _value(
    data: Tensor,
    outer: tuple[PrimExpr, ...],
    taps: Sequence[Tap],
    image: Sequence[PrimExpr],
    padding: str,
    align_corners: bool,
) -> PrimExpr:
    """The element of an image at whole positions."""
    place, met = [], []
    kind = outer[0].dtype
    for (at, _), extent in zip(taps, image, strict=True):
        last = extent - 1.0
        if padding == "zeros":
            met += [at >= 0.0, at <= last]
        inside = _inside(at, extent, padding, align_corners)
        inside = arithmetic.minimum(arithmetic.maximum(inside, 0.0), last)
        place.append(arithmetic.cast(kind, inside))
    value = data(*outer, *place)
    condition: Any = None
    for one in met:
        condition = one if condition is None else arithmetic.logical_and(condition, one)
    if condition is None:
        return value
    return arithmetic.select(condition, value, arithmetic.const(0, data.dtype))
