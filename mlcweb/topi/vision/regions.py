"""Regions of images at one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis

_ceil = intrinsics.unary_functions["ceil"]


def roi_align(
    data: Tensor, rois: Tensor, pooled_size: Sequence[int] | int, spatial_scale: float,
    mode: str = "avg", sample_ratio: int = -1, aligned: bool = False, layout: str = "NCHW",
) -> Tensor:  # fmt: skip
    """Regions of images, each element the mean or (`mode="max"`) the greatest of points in its
    bin; points are interpolated between the four elements around them, and 0 more than one element
    outside of the image.

    Args:
        rois: (regions, 5): the number of the image, then x1, y1, x2, y2.
        sample_ratio: points per bin and axis; as many as elements of the image if not positive.
        aligned: regions may be smaller than an element.
        layout: "NCHW" or "NHWC".
    """
    size = [pooled_size] * 2 if isinstance(pooled_size, int) else list(pooled_size)
    extents = {letter: data.shape[layout.index(letter)] for letter in layout}
    dtype = rois.dtype
    spatial = [extents["H"], extents["W"]]

    def point(image: PrimExpr, channel: PrimExpr, place: list[PrimExpr]) -> PrimExpr:
        outside = arithmetic.const(False, "bool")
        taps: list[list[tuple[PrimExpr, PrimExpr]]] = []
        for at, extent in zip(place, spatial, strict=True):
            beyond = arithmetic.logical_or(at < -1.0, at > arithmetic.cast(dtype, extent))
            outside = arithmetic.logical_or(outside, beyond)
            last = extent - 1
            at = arithmetic.minimum(arithmetic.maximum(at, 0.0), arithmetic.cast(dtype, last))
            low = arithmetic.cast("int64", intrinsics.floor(at))
            part = at - arithmetic.cast(dtype, low)
            taps.append([(low, 1.0 - part), (arithmetic.minimum(low + 1, last), part)])
        total: Any = 0.0
        for y, high in taps[0]:
            for x, wide in taps[1]:
                index = {"N": image, "C": channel, "H": y, "W": x}
                value = data(*(index[letter] for letter in layout))
                total = total + arithmetic.cast(dtype, value) * high * wide
        return intrinsics.if_then_else(outside, arithmetic.const(0.0, dtype), total)

    def element(*index: PrimExpr) -> PrimExpr:
        at = dict(zip(layout, index, strict=True))
        region = at["N"]
        image = arithmetic.cast("int64", rois(region, 0))
        starts, steps, counts = [], [], []
        for axis, letter in enumerate("HW"):
            start = rois(region, 2 - axis) * spatial_scale
            extent = rois(region, 4 - axis) * spatial_scale - start
            if not aligned:
                extent = arithmetic.maximum(extent, 1.0)
            step = extent / float(size[axis])
            starts.append(start + arithmetic.cast(dtype, at[letter]) * step)
            steps.append(step)
            counts.append(
                arithmetic.const(sample_ratio, "int64")
                if sample_ratio > 0
                else arithmetic.cast("int64", _ceil(step))
            )
        axes = [reduce_axis((0, n), name) for n, name in zip(counts, ("rh", "rw"), strict=True)]
        place = [
            start + (arithmetic.cast(dtype, axis.var) + 0.5) * step / arithmetic.cast(dtype, count)
            for start, step, count, axis in zip(starts, steps, counts, axes, strict=True)
        ]
        value = point(image, at["C"], place)
        if mode == "max":
            return reducers.max(value, axes)
        whole = arithmetic.cast(dtype, counts[0] * counts[1])
        return reducers.sum(value / whole, axes)

    shape = {"N": rois.shape[0], "C": extents["C"], "H": size[0], "W": size[1]}
    result = compute([shape[letter] for letter in layout], element, "roi_align")
    if dtype == data.dtype:
        return result
    return compute(
        result.shape, lambda *i: arithmetic.cast(data.dtype, result(*i)), "roi_align_cast"
    )


def _roi_align_of(layout: str) -> Callable[..., Tensor]:
    def build(
        data: Tensor, rois: Tensor, pooled_size: Sequence[int] | int, spatial_scale: float,
        mode: str = "avg", sample_ratio: int = -1, aligned: bool = False,
    ) -> Tensor:  # fmt: skip
        return roi_align(
            data, rois, pooled_size, spatial_scale, mode, sample_ratio, aligned, layout
        )

    build.__name__ = build.__qualname__ = f"roi_align_{layout.lower()}"
    build.__doc__ = f"`roi_align` of images {layout}."
    return build


roi_align_nchw, roi_align_nhwc = map(_roi_align_of, ("NCHW", "NHWC"))


def roi_pool(
    data: Tensor, rois: Tensor, pooled_size: Sequence[int] | int, spatial_scale: float,
    layout: str = "NCHW",
) -> Tensor:  # fmt: skip
    """The greatest elements of the bins of regions, 0 where a bin is empty. Corners are rounded,
    halves up, and belong to their region."""
    size = [pooled_size] * 2 if isinstance(pooled_size, int) else list(pooled_size)
    regions, (_, channels, *spatial) = rois.shape[0], data.shape
    dtype = rois.dtype

    def bin_of(region: PrimExpr, index: Sequence[PrimExpr]) -> list[tuple[PrimExpr, PrimExpr]]:
        """From where to where the bin goes on each axis."""
        bounds = []
        for axis, i in enumerate(index):
            start, end = (
                intrinsics.floor(rois(region, corner - axis) * spatial_scale + 0.5)
                for corner in (2, 4)
            )
            step = arithmetic.maximum(end - start + 1.0, 1.0) / float(size[axis])
            at = arithmetic.cast(dtype, i)
            ends = intrinsics.floor(at * step) + start, _ceil((at + 1.0) * step) + start
            extent = spatial[axis]
            low, high = (
                arithmetic.minimum(arithmetic.maximum(arithmetic.cast("int64", end), 0), extent)
                for end in ends
            )
            bounds.append((low, high))
        return bounds

    axes = [
        reduce_axis((0, extent), name) for extent, name in zip(spatial, ("rh", "rw"), strict=True)
    ]
    lowest = intrinsics.min_value(data.dtype)

    def greatest(region: PrimExpr, channel: PrimExpr, *index: PrimExpr) -> PrimExpr:
        inside = arithmetic.const(True, "bool")
        for axis, (low, high) in zip(axes, bin_of(region, index), strict=True):
            within = arithmetic.logical_and(low <= axis.var, axis.var < high)
            inside = arithmetic.logical_and(inside, within)
        image = arithmetic.cast("int64", rois(region, 0))
        value = data(image, channel, *(axis.var for axis in axes))
        return reducers.max(intrinsics.if_then_else(inside, value, lowest), axes)

    shape = [regions, channels, *size]
    pooled = compute(shape, greatest, "roi_pool")

    def element(region: PrimExpr, channel: PrimExpr, *index: PrimExpr) -> PrimExpr:
        empty = arithmetic.const(False, "bool")
        for low, high in bin_of(region, index):
            empty = arithmetic.logical_or(empty, high <= low)
        zero = arithmetic.const(0, data.dtype)
        return intrinsics.if_then_else(empty, zero, pooled(region, channel, *index))

    return compute(shape, element, "roi_pool_filled")


def roi_pool_nchw(
    data: Tensor, rois: Tensor, pooled_size: Sequence[int] | int, spatial_scale: float
) -> Tensor:
    """`roi_pool` of images NCHW."""
    return roi_pool(data, rois, pooled_size, spatial_scale)
