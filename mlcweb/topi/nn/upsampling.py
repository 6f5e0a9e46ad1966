"""Images enlarged by a factor."""

from __future__ import annotations

from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import image, shapes
from mlcweb.topi.shapes import Extent, ShapeLike

_METHODS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "tricubic": "cubic"}


def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: ShapeLike | None = None,
) -> Tensor:
    """An image enlarged by `scale_h` and `scale_w`.

    Args:
        method: "nearest_neighbor", "bilinear" or "bicubic".
        align_corners: whether the centres of the corners' pixels stay where they are.
    """
    size = output_shape or _scaled(data, layout, {"H": scale_h, "W": scale_w})
    mode = "align_corners" if align_corners else "asymmetric"
    return image.resize2d(
        data, None, size, layout, _METHODS.get(method, method), mode
    )  # fmt: skip


def upsampling3d(
    data: Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: ShapeLike | None = None,
) -> Tensor:
    """A volume enlarged by a factor along each axis; see `topi.image.resize3d`."""
    size = output_shape or _scaled(data, layout, {"D": scale_d, "H": scale_h, "W": scale_w})
    mode = coordinate_transformation_mode
    return image.resize3d(data, None, size, layout, _METHODS.get(method, method), mode)


def _scaled(data: Tensor, layout: str, scales: dict[str, float]) -> list[Extent]:
    return [_times(data.shape[layout.index(letter)], scale) for letter, scale in scales.items()]


def _times(extent: PrimExpr, scale: float) -> Extent:
    number = shapes.constant(extent)
    if number is not None:
        return round(number * scale)
    if isinstance(scale, int):
        return extent * scale
    wide = arithmetic.cast("float32", extent) * scale
    return arithmetic.cast(extent.dtype, intrinsics.unary_functions["round"](wide))
