"""Images at another size; and, by TVM's names, what is in grid_sample.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.grid_sample import affine_grid, grid_sample

Taps = list[tuple[PrimExpr, PrimExpr | None]]
"""Positions along an axis, and their weights (None: 1)."""

METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip

_DEFAULT_ROUNDING = {"asymmetric": "floor"}

_ROUNDING: dict[str, Callable[[PrimExpr], PrimExpr]] = {
    "round": intrinsics.unary_functions["round"],
    "round_prefer_floor": lambda x: intrinsics.unary_functions["ceil"](x - 0.5),
    "round_prefer_ceil": lambda x: intrinsics.floor(x + 0.5),
    # A little more and less, so that what should be a whole number is one.
    "floor": lambda x: intrinsics.floor(x + 1e-5),
    "ceil": lambda x: intrinsics.unary_functions["ceil"](x - 1e-5),
}


def resize2d(
    data: Tensor,
    roi: Sequence[Any] | None,
    size: Sequence[Any],
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.75,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Any = None,
) -> Tensor:
    """An image of the size (height, width), interpolated.

    Args:
        roi: (top, left, bottom, right) as fractions, for the mode "tf_crop_and_resize".
        method: "nearest_neighbor", "linear" or "cubic" (Keys, "Cubic Convolution Interpolation for
            Digital Image Processing", 1981, with the parameter `bicubic_alpha`).
        coordinate_transformation_mode: where the centres of pixels are: see `relax.op.image`.
        rounding_method: of nearest neighbours; "round" without one ("floor" for "asymmetric").
        bicubic_exclude: 1 leaves positions outside of the image out of cubic sums.
    """
    mode = coordinate_transformation_mode
    rounding = rounding_method or _DEFAULT_ROUNDING.get(mode, "round")
    _check_resize2d(data, layout, method, mode, rounding)
    dtype = out_dtype or data.dtype
    corners = list(roi or (0.0, 0.0, 1.0, 1.0))
    extents = [data.shape[layout.index(letter)] for letter in "HW"]
    wanted = shapes.as_shape(list(size))

    def place_of(i: PrimExpr, axis: int) -> PrimExpr:
        """The coordinate of a pixel of the result along one axis."""
        return _coordinate(
            i, extents[axis], wanted[axis], mode, corners[axis], corners[axis + 2]
        )  # fmt: skip

    def taps(i: PrimExpr, axis: int) -> Taps:
        """What a pixel of the result is made of, along one axis."""
        extent, place = extents[axis], place_of(i, axis)
        if method == "nearest_neighbor":
            return [(_kept(_index(_ROUNDING[rounding](place), extent), extent), None)]
        alpha = bicubic_alpha if method == "cubic" else None
        return _weighted_taps(place, extent, alpha, bicubic_exclude != 0)

    def mixed(source: Tensor, index: Sequence[PrimExpr], axes: str) -> PrimExpr:
        """The value at `index`, made of elements of `source` along some axes."""
        if not axes:
            return source(*index)
        place = layout.index(axes[0])
        found = []
        for position, weight in taps(index[place], "HW".index(axes[0])):
            inside = [*index[:place], position, *index[place + 1 :]]
            value = mixed(source, inside, axes[1:])
            found.append(value if weight is None else arithmetic.cast("float32", value) * weight)
        return _total(found)

    shape = list(data.shape)
    source, axes = data, "HW"
    if method == "cubic":  # one axis after the other: both at once have 16 neighbours
        shape[layout.index("H")] = wanted[0]
        source, axes = compute(shape, lambda *i: mixed(data, i, "H"), "resize_rows"), "W"

    def extrapolated(value: PrimExpr, index: Sequence[PrimExpr]) -> PrimExpr:
        """The value, or the extrapolation value where `index` lies outside of the image."""
        outside = arithmetic.const(extrapolation_value, value.dtype)
        for axis, letter in enumerate("HW"):
            at = place_of(index[layout.index(letter)], axis)
            last = arithmetic.cast("float32", extents[axis] - 1)
            beyond = arithmetic.logical_or(at < 0.0, arithmetic.greater(at, last))
            value = intrinsics.if_then_else(beyond, outside, value)
        return value

    def element(*index: PrimExpr) -> Any:
        value = mixed(source, index, axes)
        if mode == "tf_crop_and_resize":
            value = extrapolated(value, index)
        return _converted(value, dtype)

    shape = list(data.shape)
    shape[layout.index("H")], shape[layout.index("W")] = wanted
    return compute(shape, element, "resize", tag=tags.INJECTIVE)


def _weighted_taps(
    place: PrimExpr, extent: PrimExpr, alpha: float | None, exclude_outside: bool
) -> Taps:
    """Two linear taps; four cubic ones where `alpha` is given."""
    below = intrinsics.floor(place)
    first, part = _index(below, extent), place - below
    if alpha is None:
        weights: list[PrimExpr] = [1.0 - part, part]
        return [(_kept(first + n, extent), w) for n, w in enumerate(weights)]
    places = [first + n for n in (-1, 0, 1, 2)]
    weights = _cubic(part, alpha)
    if exclude_outside:
        weights = _inside_only(places, weights, extent)
    return [(_kept(p, extent), w) for p, w in zip(places, weights, strict=True)]


def _check_resize2d(data: Tensor, layout: str, method: str, mode: str, rounding: str) -> None:
    if sorted(layout) != sorted("NCHW"):
        raise DiagnosticError(f'resize2d: a layout is an order of the letters "NCHW", not {layout}')
    shapes.need_rank("resize2d", data, 4, layout)
    for value, known in ((method, METHODS), (mode, MODES), (rounding, tuple(_ROUNDING))):
        if value not in known:
            raise DiagnosticError(f'resize2d: there is no "{value}", but {", ".join(known)}')


def _total(values: Any) -> PrimExpr:
    first, *rest = values
    for value in rest:
        first = first + value
    return first


def _converted(value: PrimExpr, dtype: str) -> PrimExpr:
    """The value as `dtype`; interpolated values are rounded to integers."""
    if value.dtype.startswith("float") and dtype.startswith(("int", "uint")):
        value = intrinsics.unary_functions["round"](value)
    return arithmetic.cast(dtype, value)


def _coordinate(
    i: PrimExpr, extent: PrimExpr, size: PrimExpr, mode: str, start: Any, end: Any
) -> PrimExpr:
    """The coordinate in the image of the pixel `i` of the result, along one axis."""
    x = arithmetic.cast("float32", i)
    ratio = _ratio(extent, size)
    if mode == "asymmetric":
        return ratio * x
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) * ratio
    if mode == "half_pixel":
        return (x + 0.5) * ratio - 0.5
    only = shapes.constant(size)
    if mode == "pytorch_half_pixel":
        if only == 1:
            return arithmetic.const(0.0, "float32")
        return (x + 0.5) * ratio - 0.5
    if mode == "align_corners":
        if only == 1:
            return arithmetic.const(0.0, "float32")
        return _ratio(extent - 1, size - 1) * x
    low, high = (arithmetic.cast("float32", corner) for corner in (start, end))
    length = arithmetic.cast("float32", extent - 1)
    if only == 1:
        return (low + high) * 0.5 * length
    return low * length + x * (high - low) * _ratio(extent - 1, size - 1)


def _ratio(extent: PrimExpr, size: PrimExpr) -> PrimExpr:
    numbers = shapes.constant(extent), shapes.constant(size)
    if numbers[0] is not None and numbers[1]:
        return arithmetic.const(numbers[0] / numbers[1], "float32")
    return arithmetic.divide(arithmetic.cast("float32", extent), arithmetic.cast("float32", size))


def _index(place: PrimExpr, extent: PrimExpr) -> PrimExpr:
    return arithmetic.cast(extent.dtype, place)


def _kept(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    return arithmetic.maximum(arithmetic.minimum(index, arithmetic.subtract(extent, 1)), 0)


def _cubic(t: PrimExpr, alpha: float) -> list[PrimExpr]:
    """The weights of the four neighbours of a point that is `t` behind the second."""
    square, cube = t * t, t * t * t
    return [
        (cube - square * 2.0 + t) * alpha,
        cube * (alpha + 2.0) - square * (alpha + 3.0) + 1.0,
        square * (2.0 * alpha + 3.0) - cube * (alpha + 2.0) - t * alpha,
        (square - cube) * alpha,
    ]


def _inside_only(
    places: Sequence[PrimExpr], weights: Sequence[PrimExpr], extent: PrimExpr
) -> list[PrimExpr]:
    """The weights with those outside of the image zero, and the others scaled to a sum of 1."""
    zero = arithmetic.const(0.0, "float32")
    kept = [
        arithmetic.select(arithmetic.logical_or(place < 0, place >= extent), zero, weight)
        for place, weight in zip(places, weights, strict=True)
    ]
    whole = _total(kept)
    return [arithmetic.divide(weight, whole) for weight in kept]


__all__ = ["affine_grid", "grid_sample", "resize2d"]
