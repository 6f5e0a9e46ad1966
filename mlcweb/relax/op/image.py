"""Operators on images: `relax.op.image`, `R.image`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.layout import Lettered
from mlcweb.relax.op.legalize import attribute, by, reordered, te, topi
from mlcweb.relax.op.nn.layouts import (
    arranged,
    check_layout,
    check_rank,
    extents_of,
    without_blocks,
)  # fmt: skip
from mlcweb.relax.op.registry import FOLLOW, Infer, Legalize, as_shape, operator, several
from mlcweb.relax.op.registry import call as call
from mlcweb.relax.struct_info import ShapeLike, StructInfo, TensorStructInfo
from mlcweb.tir.arithmetic import const


def _infer_resize(letters: str) -> Infer:
    rank = len(letters) - 2

    def deduce(call: Call, context: Context) -> StructInfo:
        info, size = infer.tensor(call, 0, context), infer.shape(call, 1, context)
        layout = check_layout(call, "layout", letters)
        check_rank(call, 0, info, layout)
        dtype = infer.dtype_or(call, info.dtype, "out_dtype")
        if size.ndim not in (-1, rank):
            axes = "(depth, height, width)" if rank == 3 else "(height, width)"
            raise infer.shape_error(call, f"size must be {axes}, not {call.args[1]}")
        if info.values is None or size.values is None:
            return TensorStructInfo(None, dtype, ndim=len(layout))
        outer = extents_of(info, layout, "NC")
        return TensorStructInfo(arranged([*outer, *size.values], letters, layout), dtype)

    return deduce


_ATTRIBUTES = {
    "layout": "layout",
    "method": "method",
    "coordinate_transformation_mode": "coordinate_transformation_mode",
    "rounding_method": "rounding_method",
    "cubic_alpha": "bicubic_alpha",
    "cubic_exclude": "bicubic_exclude",
    "extrapolation_value": "extrapolation_value",
    "out_dtype": "out_dtype",
}
"""Attributes of the operator, and what TOPI calls them."""


def _legalize_resize(name: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        data, size = call.args
        options = {theirs: attribute(call, ours) for ours, theirs in _ATTRIBUTES.items()}
        roi = [extent.value for extent in attribute(call, "roi")]
        layout = options["layout"]
        images = options["layout"] = without_blocks(layout)
        resize = getattr(topi.image, name)
        if images == layout:
            return builder.call_te(resize, data, roi, size, **options)

        def resized(image: te.Tensor) -> te.Tensor:
            result = resize(reordered(image, layout, images), roi, size, **options)
            return reordered(result, images, layout)

        return builder.call_te(resized, data, primfunc_name_hint=name)

    return legalize


def _resize(letters: str, default_rounding: str) -> Callable[..., Call]:
    rank = len(letters) - 2
    name = f"resize{rank}d"

    @operator(
        f"relax.image.{name}", "data", "size",
        infer=_infer_resize(letters), legalize=_legalize_resize(name),
        layout=Lettered(("layout",), in_blocks=False), precision=FOLLOW,
    )  # fmt: skip
    def build(
        data: ExprLike,
        size: ShapeLike | int,
        roi: float | Sequence[float] | None = None,
        layout: str = letters,
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = default_rounding,
        cubic_alpha: float = -0.75,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | None = None,
    ) -> Call:
        """An image at another size.

        Args:
            size: (height, width), of a volume (depth, height, width), or one number for all.
            roi: the part of the image, as fractions (top, left, bottom, right), that
                `coordinate_transformation_mode="tf_crop_and_resize"` takes.
            method: "nearest_neighbor", "linear" or "cubic" interpolation.
            coordinate_transformation_mode: where the pixel x of the result is in the image of s
                times the pixels: "half_pixel" at (x + 0.5) s - 0.5, "align_corners" at
                x (n - 1) / (m - 1), "asymmetric" at x s, "pytorch_half_pixel" as half_pixel, with 0
                for a size of 1.
            rounding_method: of nearest neighbours: "round", "round_prefer_floor",
                "round_prefer_ceil", "floor" or "ceil".
            cubic_alpha: the steepness of cubic weights.
            cubic_exclude: 1 leaves pixels outside of the image out of cubic sums.
            extrapolation_value: for what is outside of the image with "tf_crop_and_resize".
        """
        corners = [
            const(float(c), "float32") for c in several(0.0 if roi is None else roi, 2 * rank)
        ]
        shape = as_shape(several(size, rank) if isinstance(size, (int, tuple, list)) else size)
        return call(
            build, data, shape, roi=corners, layout=layout, method=method,
            coordinate_transformation_mode=coordinate_transformation_mode,
            rounding_method=rounding_method, cubic_alpha=cubic_alpha, cubic_exclude=cubic_exclude,
            extrapolation_value=extrapolation_value, out_dtype=str(out_dtype or "void"),
        )  # fmt: skip

    return build


resize2d, resize3d = _resize("NCHW", "round"), _resize("NCDHW", "")


def _infer_grid_sample(call: Call, context: Context) -> StructInfo:
    info, grid = infer.tensors(call, context)
    layout = infer.attribute(call, "layout")
    letters = "NCDHW" if "D" in layout else "NCHW"
    check_layout(call, "layout", letters)
    infer.need_rank(call, 0, info, len(letters), layout)
    infer.need_rank(call, 1, grid, len(letters), "(n, axes, …)")
    if info.values is None or grid.values is None:
        return TensorStructInfo(None, info.dtype, ndim=len(letters))
    axes = getattr(grid.values[1], "value", None)
    if axes not in (None, len(letters) - 2):
        raise infer.shape_error(
            call,
            f"{infer.described(call, 1, grid)} must have {len(letters) - 2} coordinates on axis 1",
        )
    spatial = iter(grid.values[2:])
    shape = [
        extent if letter in "NC" else next(spatial)
        for letter, extent in zip(layout, info.values, strict=True)
    ]
    return TensorStructInfo(shape, info.dtype)


@operator(
    "relax.image.grid_sample", "data", "grid",
    infer=_infer_grid_sample,
    legalize=by("image.grid_sample", "method", "layout", "padding_mode", "align_corners"),
    precision=FOLLOW,
)  # fmt: skip
def grid_sample(
    data: ExprLike,
    grid: ExprLike,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Call:
    """The values of images at the positions of a grid.

    Args:
        data: (n, c, h, w), or (n, c, d, h, w).
        grid: (n, 2, …) or (n, 3, …): positions from -1 to 1, that along the last axis first.
        method: "nearest", "bilinear" or "bicubic" interpolation.
        padding_mode: what is outside of the image: "zeros", the nearest element of the "border", or
            the "reflection" of the image.
        align_corners: -1 and 1 are the centres of the outermost elements, not their outer edges.
    """
    return call(
        grid_sample, data, grid, method=method, layout=layout, padding_mode=padding_mode,
        align_corners=bool(align_corners),
    )  # fmt: skip


def _infer_affine_grid(call: Call, context: Context) -> StructInfo:
    info, size = infer.tensor(call, 0, context), infer.shape(call, 1, context)
    infer.need_rank(call, 0, info, 3, "(n, axes, axes + 1)")
    if size.ndim not in (-1, 2, 3):
        raise infer.shape_error(
            call, f"size must be (height, width), or with a depth before; not {call.args[1]}"
        )
    if info.values is None or size.values is None:
        return TensorStructInfo(None, info.dtype, ndim=-1 if size.ndim < 0 else size.ndim + 2)
    matrix = size.ndim, size.ndim + 1
    for extent, number in zip(info.values[1:], matrix, strict=True):
        if getattr(extent, "value", number) != number:
            raise infer.shape_error(
                call, f"{infer.described(call, 0, info)} must be matrices of {matrix}"
            )
    return TensorStructInfo([info.values[0], size.ndim, *size.values], info.dtype)


def _legalize_affine_grid(builder: BlockBuilder, call: Call) -> Expr:
    data, size = call.args
    corners = attribute(call, "align_corners")
    return builder.call_te(topi.image.affine_grid, data, size, align_corners=corners)


@operator(
    "relax.image.affine_grid",
    "data",
    "size",
    infer=_infer_affine_grid,
    legalize=_legalize_affine_grid,
)
def affine_grid(data: ExprLike, size: ShapeLike | int, align_corners: bool = True) -> Call:
    """The grid of an image's own positions, from -1 to 1, after an affine map, for `grid_sample`.

    Args:
        data: matrices of shape (n, 2, 3), or (n, 3, 4) for images of three axes; the last column is
            added.
        size: (height, width), or (depth, height, width); one number is both height and width.
        align_corners: -1 and 1 are the centres of the outermost elements, not their outer edges.
    """
    shape = as_shape((size, size) if isinstance(size, int) else size)
    return call(affine_grid, data, shape, align_corners=bool(align_corners))
