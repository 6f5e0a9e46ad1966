"""Images at another size; and, by TVM's names, what is in grid_sample.py and dilation2d.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.dilation2d import dilation2d_nchw, dilation2d_nhwc
from mlcweb.topi.grid_sample import affine_grid, grid_sample
from mlcweb.topi.nn.window import layout_letters
from mlcweb.topi.shapes import Extent, Scalar, ShapeLike

Taps = list[tuple[PrimExpr, PrimExpr | None]]
"""Positions along an axis, and their weights (None: 1)."""

METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip

_ROUNDING: dict[str, Callable[[PrimExpr], PrimExpr]] = {
    "round": intrinsics.unary_functions["round"],
    "round_prefer_floor": lambda x: intrinsics.unary_functions["ceil"](x - 0.5),
    "round_prefer_ceil": lambda x: intrinsics.floor(x + 0.5),
    # A little more and less, so that what should be a whole number is one.
    "floor": lambda x: intrinsics.floor(x + 1e-5),
    "ceil": lambda x: intrinsics.unary_functions["ceil"](x - 1e-5),
}


@dataclass(frozen=True)
class _Method:
    """How the elements of a resized image are made."""

    method: str
    mode: str
    rounding: str
    alpha: float
    exclude_outside: bool


class _Resizing:
    """An image of another size along its spatial axes, which are those of a layout."""

    def __init__(
        self,
        operator: str,
        data: Tensor,
        roi: Sequence[Scalar] | None,
        size: Sequence[Extent],
        layout: str,
        how: _Method,
    ) -> None:
        self.layout, self.letters = layout_letters(operator, layout)
        self.rank = len(self.letters)
        shapes.need_rank(operator, data, len(self.layout), layout)
        _check_method(operator, how)
        self.data, self.how = data, how
        self.corners = list(roi or (*[0.0] * self.rank, *[1.0] * self.rank))
        self.extents = [data.shape[self.layout.index(letter)] for letter in self.letters]
        self.size = shapes.as_shape(list(size))
        if len(self.size) != self.rank:
            raise DiagnosticError(f"{operator}: a size has {self.rank} extent(s), not {list(size)}")

    def shape(self, letters: str) -> list[PrimExpr]:
        """The shape with the new extents along some axes."""
        sizes = dict(zip(self.letters, self.size, strict=True))
        old = zip(self.layout, self.data.shape, strict=True)
        return [sizes[letter] if letter in letters else extent for letter, extent in old]

    def place_of(self, i: PrimExpr, axis: int) -> PrimExpr:
        """The coordinate of a pixel of the result along one axis."""
        start, end = self.corners[axis], self.corners[axis + self.rank]
        return _coordinate(i, self.extents[axis], self.size[axis], self.how.mode, start, end)

    def taps(self, i: PrimExpr, axis: int) -> Taps:
        """What a pixel of the result is made of, along one axis."""
        how, extent, place = self.how, self.extents[axis], self.place_of(i, axis)
        if how.method == "nearest_neighbor":
            times = _repeats(extent, self.size[axis])
            if how.mode == "asymmetric" and how.rounding == "floor" and times:
                return [(_kept(arithmetic.truncdiv(i, times), extent), None)]
            return [(_kept(_index(_ROUNDING[how.rounding](place), extent), extent), None)]
        alpha = how.alpha if how.method == "cubic" else None
        return _weighted_taps(place, extent, alpha, how.exclude_outside)

    def mixed(
        self, source: Callable[..., PrimExpr], axes: str, index: Sequence[PrimExpr]
    ) -> PrimExpr:
        """The value at `index`, made of elements of `source` along some axes."""
        if not axes:
            return source(*index)
        place = self.layout.index(axes[0])
        terms = []
        for position, weight in self.taps(index[place], self.letters.index(axes[0])):
            inside = [*index[:place], position, *index[place + 1 :]]
            value = self.mixed(source, axes[1:], inside)
            terms.append(value if weight is None else arithmetic.cast("float32", value) * weight)
        return _total(terms)

    def extrapolated(self, value: PrimExpr, index: Sequence[PrimExpr], other: float) -> PrimExpr:
        """The value, or `other` where `index` lies outside of the image."""
        outside = arithmetic.const(other, value.dtype)
        for axis, letter in enumerate(self.letters):
            at = self.place_of(index[self.layout.index(letter)], axis)
            last = arithmetic.cast("float32", self.extents[axis] - 1)
            beyond = arithmetic.logical_or(at < 0.0, at > last)
            value = intrinsics.if_then_else(beyond, outside, value)
        return value

    def result(self, extrapolation_value: float, dtype: str) -> Tensor:
        """The resized image."""
        source, axes = self.data, self.letters
        if self.how.method == "cubic":  # one axis after the other: all at once have 4^rank taps
            for count, letter in enumerate(self.letters[:-1], 1):
                source = compute(
                    self.shape(self.letters[:count]),
                    lambda *index, old=source, axis=letter: self.mixed(old, axis, index),
                    "resize_rows",
                )
            axes = self.letters[-1]

        def element(*index: PrimExpr) -> PrimExpr:
            value = self.mixed(source, axes, index)
            if self.how.mode == "tf_crop_and_resize":
                value = self.extrapolated(value, index, extrapolation_value)
            return arithmetic.cast(dtype, value)

        return compute(self.shape(self.letters), element, "resize", tag=tags.INJECTIVE)


def _resize(operator: str, default_layout: str, about: str) -> Callable[..., Tensor]:
    def resize(
        data: Tensor,
        roi: Sequence[Scalar] | None,
        size: Sequence[Extent],
        layout: str = default_layout,
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "",
        bicubic_alpha: float = -0.75,
        bicubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | None = None,
        output_shape: ShapeLike | None = None,
    ) -> Tensor:
        mode = coordinate_transformation_mode
        rounding = rounding_method or ("round" if mode == "align_corners" else "floor")
        how = _Method(method, mode, rounding, bicubic_alpha, bicubic_exclude != 0)
        resizing = _Resizing(operator, data, roi, size, layout, how)
        return resizing.result(extrapolation_value, out_dtype or data.dtype)

    resize.__name__ = resize.__qualname__ = operator
    resize.__doc__ = about
    return resize


resize2d = _resize(
    "resize2d",
    "NCHW",
    """An image of the size (height, width), interpolated.

    Args:
        roi: (top, left, bottom, right) as fractions, for the mode "tf_crop_and_resize".
        method: "nearest_neighbor", "linear" or "cubic" (Keys, "Cubic Convolution Interpolation for
            Digital Image Processing", 1981, with the parameter `bicubic_alpha`).
        coordinate_transformation_mode: where the centres of pixels are: see `relax.op.image`.
        rounding_method: of nearest neighbours; without one "round" for "align_corners", else
            "floor".
        bicubic_exclude: 1 leaves positions outside of the image out of cubic sums.
    """,
)
resize1d = _resize(
    "resize1d", "NCW", "A sequence of the size (width,), interpolated: see `resize2d`."
)
resize3d = _resize(
    "resize3d", "NCDHW", "A volume of the size (depth, height, width): see `resize2d`."
)


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sequence[Extent],
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> Tensor:
    """Regions of images at one size, (height, width).

    Args:
        boxes: (regions, 4): top, left, bottom, right as fractions of the image.
        box_indices: (regions,): the image of each.
        method: "bilinear" or "nearest_neighbor".
        extrapolation_value: what is outside of an image; without it the nearest of its elements.
    """
    how = _Method(
        {"bilinear": "linear"}.get(method, method), "tf_crop_and_resize", "round", 0, False
    )

    def resizing(corners: Sequence[Scalar] | None) -> _Resizing:
        return _Resizing("crop_and_resize", data, corners, crop_size, layout, how)

    whole = resizing(None)
    place = whole.layout.index("N")
    shape = whole.shape(whole.letters)
    shape[place] = boxes.shape[0]

    def image(*index: PrimExpr) -> PrimExpr:
        return data(*index[:place], box_indices(index[place]), *index[place + 1 :])

    def element(*index: PrimExpr) -> PrimExpr:
        region = resizing([boxes(index[place], corner) for corner in range(4)])
        value = region.mixed(image, region.letters, index)
        if extrapolation_value is not None:
            value = region.extrapolated(value, index, extrapolation_value)
        return arithmetic.cast(out_dtype or data.dtype, value)

    return compute(shape, element, "crop_and_resize", tag=tags.INJECTIVE)


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


def _check_method(operator: str, how: _Method) -> None:
    for value, allowed in ((how.method, METHODS), (how.mode, MODES), (how.rounding, _ROUNDING)):
        if value not in allowed:
            raise DiagnosticError(f'{operator}: there is no "{value}", but {", ".join(allowed)}')


def _total(values: Sequence[PrimExpr]) -> PrimExpr:
    first, *rest = values
    for value in rest:
        first = first + value
    return first


def _coordinate(
    i: PrimExpr,
    extent: PrimExpr,
    size: PrimExpr,
    mode: str,
    start: Scalar,
    end: Scalar,
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
    return arithmetic.cast("float32", extent) / arithmetic.cast("float32", size)


def _repeats(extent: PrimExpr, size: PrimExpr) -> int:
    """How often each pixel is repeated along an axis; 0 if not a whole number of times."""
    old, new = shapes.constant(extent), shapes.constant(size)
    return new // old if old and new and new % old == 0 else 0


def _index(place: PrimExpr, extent: PrimExpr) -> PrimExpr:
    return arithmetic.cast(extent.dtype, place)


def _kept(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    return arithmetic.maximum(arithmetic.minimum(index, extent - 1), 0)


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
    return [weight / whole for weight in kept]


__all__ = [
    "affine_grid", "crop_and_resize", "dilation2d_nchw", "dilation2d_nhwc", "grid_sample",
    "resize1d", "resize2d", "resize3d",
]  # fmt: skip
