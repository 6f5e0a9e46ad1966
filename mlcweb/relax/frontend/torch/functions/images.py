"""Images at other sizes and positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.torch.translator import TorchError, Translator, function
from mlcweb.relax.op.nn.layouts import Extents
from mlcweb.relax.op.registry import several

_METHODS = {
    "nearest": "nearest_neighbor", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
    "bicubic": "cubic",
}  # fmt: skip


@function("interpolate")
def interpolate(
    t: Translator, input: Expr, size: Extents | None = None,
    scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Expr:  # fmt: skip
    """An image (n, c, …) of one to three spatial axes at another size."""
    if mode not in _METHODS:
        raise TorchError(f'interpolate with mode="{mode}" cannot be imported')
    rank = t.ndim(input) - 2
    shape = t.shape(input)[2:]
    if size is not None:
        sizes: list[Extent] = list(several(size, rank))
    elif scale_factor is not None:
        factors = several(scale_factor, rank)
        sizes = [_scaled(extent, factor) for extent, factor in zip(shape, factors, strict=True)]
        exact = recompute_scale_factor or align_corners or all(
            not isinstance(extent, int) or extent * factor == new
            for extent, factor, new in zip(shape, factors, sizes, strict=True)
        )  # fmt: skip
        if not exact:
            raise TorchError(
                f"interpolate from {shape} by {factors} cannot be imported: PyTorch takes the "
                f"factors that are given, not those to {sizes}. Give the size, or "
                "recompute_scale_factor=True"
            )
    else:
        raise TorchError("interpolate needs a size or a scale_factor")
    if antialias and any(
        not isinstance(new, int) or not isinstance(old, int) or new < old
        for new, old in zip(sizes, shape, strict=True)
    ):
        raise TorchError("interpolate to a smaller size with antialias=True cannot be imported")
    options = {
        "method": _METHODS[mode],
        "coordinate_transformation_mode": "asymmetric"
        if mode == "nearest"
        else "align_corners"
        if align_corners
        else "half_pixel",
        "rounding_method": "floor" if mode == "nearest" else "",
        "cubic_alpha": -0.75,
    }
    if rank == 3:
        return op.image.resize3d(input, sizes, **options)
    if rank == 2:
        return op.image.resize2d(input, sizes, **options)
    rows = t.bound(op.expand_dims(input, 2))
    return op.squeeze(op.image.resize2d(rows, [1, *sizes], **options), [2])


def _scaled(extent: Extent, factor: float) -> Extent:
    """floor(extent factor), which needs whole factors of symbolic extents."""
    if isinstance(extent, int):
        return math.floor(extent * factor)
    if factor != int(factor):
        raise TorchError(f"interpolate of the extent {extent} by {factor} cannot be imported")
    return extent * int(factor)


def _upsample(name: str, mode: str, antialias: bool = False) -> None:
    @function(name)
    def convert(t: Translator, input: Expr, output_size: Extents | None, *rest: Any) -> Expr:
        """`rest`: whether corners are aligned, where that is a question, then the factors: in a
        sequence, or each by itself."""
        aligned = None
        if mode != "nearest":
            aligned, rest = bool(rest[0]), rest[1:]
        scale_factors = rest[0] if rest and isinstance(rest[0], (list, tuple)) else rest
        factors: list[float] = [factor for factor in scale_factors or () if factor is not None]
        size = None if factors else output_size
        return interpolate(t, input, size, factors or None, mode, aligned, antialias=antialias)


for _name, _mode in (
    ("upsample_nearest1d", "nearest"), ("upsample_nearest2d", "nearest"),
    ("upsample_nearest3d", "nearest"), ("upsample_linear1d", "linear"),
    ("upsample_bilinear2d", "bilinear"), ("upsample_trilinear3d", "trilinear"),
    ("upsample_bicubic2d", "bicubic"),
):  # fmt: skip
    _upsample(_name, _mode)
_upsample("_upsample_bilinear2d_aa", "bilinear", True)


@function("pixel_shuffle")
def pixel_shuffle(t: Translator, input: Expr, upscale_factor: int) -> Expr:
    return op.nn.pixel_shuffle(input, upscale_factor)


_MODES = "bilinear", "nearest", "bicubic"
_PADDINGS = "zeros", "border", "reflection"
"""By the numbers of ATen."""


@function("grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sample(
    t: Translator, input: Expr, grid: Expr, mode: int | str = "bilinear",
    padding_mode: int | str = "zeros", align_corners: bool | None = None,
) -> Expr:  # fmt: skip
    """The grid has its coordinates on the last axis, that of Relax on axis 1."""
    ndim = t.ndim(input)
    return op.image.grid_sample(
        input,
        op.permute_dims(grid, [0, ndim - 1, *range(1, ndim - 1)]),
        mode if isinstance(mode, str) else _MODES[mode],
        "NCHW" if ndim == 4 else "NCDHW",
        padding_mode if isinstance(padding_mode, str) else _PADDINGS[padding_mode],
        bool(align_corners),
    )


@function("affine_grid", "affine_grid_generator")
def affine_grid(
    t: Translator, theta: Expr, size: Sequence[int], align_corners: bool | None = None
) -> Expr:
    grid = op.image.affine_grid(theta, list(size[2:]), bool(align_corners))
    return op.permute_dims(grid, [0, *range(2, len(size)), 1])


@function("roi_align")
def roi_align(
    t: Translator, input: Expr, rois: Expr, spatial_scale: float, pooled_height: int,
    pooled_width: int, sampling_ratio: int = -1, aligned: bool = False,
) -> Expr:  # fmt: skip
    """Of torchvision. Aligned regions are half an element of the image before those that are
    not."""
    if aligned:
        shift = [0.0] + [0.5 / spatial_scale] * 4
        rois = rois - t.const(shift, t.dtype(rois))
    return op.vision.roi_align(
        input, rois, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned
    )
