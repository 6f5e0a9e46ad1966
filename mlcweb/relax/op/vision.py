"""Operators on regions of images, and on boxes: `relax.op.vision`, `R.vision`."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, by, number, topi
from mlcweb.relax.op.registry import call as call
from mlcweb.relax.op.registry import operator, several
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo


def _infer_regions(call: Call, context: Context) -> StructInfo:
    """(regions, channels, height, width) of images and regions (number of the image, x1, y1, x2,
    y2)."""
    data, rois = infer.tensors(call, context)
    layout, size = infer.attribute(call, "layout"), infer.attribute(call, "pooled_size")
    infer.need_rank(call, 0, data, 4, layout)
    infer.need_rank(call, 1, rois, 2, "(regions, 5)")
    if layout not in _LAYOUTS[infer.op_of(call).name]:
        wanted = " or ".join(_LAYOUTS[infer.op_of(call).name])
        raise infer.shape_error(call, f"layout must be {wanted}, not {layout}")
    mode = dict(call.attrs or {}).get("mode", "avg")
    if mode not in ("avg", "max"):
        raise infer.shape_error(call, f'mode must be "avg" or "max", not "{mode}"')
    if rois.values is not None and getattr(rois.values[1], "value", 5) != 5:
        raise infer.shape_error(
            call, f"{infer.described(call, 1, rois)} must have rows of 5 numbers: image, x1, y1, "
            "x2, y2"
        )  # fmt: skip
    if data.values is None or rois.values is None:
        return TensorStructInfo(None, data.dtype, ndim=4)
    extents = dict(zip(layout, [rois.values[0], *data.values[1:]], strict=True))
    extents |= {"H": size[0], "W": size[1]}
    return TensorStructInfo([extents[letter] for letter in layout], data.dtype)


_LAYOUTS = {"relax.vision.roi_align": ("NCHW", "NHWC"), "relax.vision.roi_pool": ("NCHW",)}


@operator(
    "relax.vision.roi_align", "data", "rois",
    infer=_infer_regions,
    legalize=by(
        "vision.roi_align", "pooled_size", "spatial_scale", "mode", "sample_ratio", "aligned",
        "layout",
    ),
)  # fmt: skip
def roi_align(
    data: ExprLike,
    rois: ExprLike,
    pooled_size: int | Sequence[int],
    spatial_scale: float,
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Call:
    """Regions of images at one size, each element from points of its bin that are interpolated (He
    et al., "Mask R-CNN", 2017).

    Args:
        data: images, in the layout.
        rois: (regions, 5): the number of the image, then x1, y1, x2, y2.
        pooled_size: (height, width) of the results, or one number for both.
        spatial_scale: what the corners are multiplied by to be positions in `data`.
        sample_ratio: points per bin and axis; as many as elements of the image if not positive.
        aligned: regions may be smaller than an element.
        layout: "NCHW" or "NHWC".
        mode: "avg" or "max" of the points.
    """
    return call(
        roi_align, data, rois, pooled_size=several(pooled_size, 2),
        spatial_scale=float(spatial_scale), sample_ratio=int(sample_ratio), aligned=bool(aligned),
        layout=layout, mode=mode,
    )  # fmt: skip


@operator(
    "relax.vision.roi_pool", "data", "rois",
    infer=_infer_regions, legalize=by("vision.roi_pool", "pooled_size", "spatial_scale", "layout"),
)  # fmt: skip
def roi_pool(
    data: ExprLike,
    rois: ExprLike,
    pooled_size: int | Sequence[int],
    spatial_scale: float,
    layout: str = "NCHW",
) -> Call:
    """The greatest elements of the bins of regions, 0 where a bin is empty; see `roi_align`.
    Corners are rounded, and belong to their region (Girshick, "Fast R-CNN", 2015)."""
    return call(
        roi_pool, data, rois, pooled_size=several(pooled_size, 2),
        spatial_scale=float(spatial_scale), layout=layout,
    )  # fmt: skip


def _infer_suppression(call: Call, context: Context) -> StructInfo:
    boxes, scores = (infer.tensor(call, index, context) for index in (0, 1))
    infer.need_rank(call, 0, boxes, 3, "(images, boxes, 4)")
    infer.need_rank(call, 1, scores, 3, "(images, classes, boxes)")
    shown = infer.attribute(call, "output_format")
    if shown != "onnx":
        raise infer.shape_error(call, f'output_format must be "onnx", not "{shown}"')
    count = TensorStructInfo([1], "int64")
    if scores.values is None:
        return TupleStructInfo([TensorStructInfo(None, "int64", ndim=2), count])
    return TupleStructInfo([TensorStructInfo([dims.product(scores.values), 3], "int64"), count])


def _legalize_suppression(builder: BlockBuilder, call: Call) -> Expr:
    boxes, scores, *limits = call.args
    return builder.call_te(
        topi.vision.all_class_non_max_suppression, boxes, scores, *map(number, limits),
        attribute(call, "output_format"),
    )  # fmt: skip


@operator(
    "relax.vision.all_class_non_max_suppression", "boxes", "scores", "max_output_boxes_per_class",
    "iou_threshold", "score_threshold",
    infer=_infer_suppression, legalize=_legalize_suppression, differentiable=False,
)  # fmt: skip
def all_class_non_max_suppression(
    boxes: ExprLike,
    scores: ExprLike,
    max_output_boxes_per_class: ExprLike,
    iou_threshold: ExprLike,
    score_threshold: ExprLike,
    output_format: str = "onnx",
) -> Call:
    """For each image and class the boxes in descending order of their scores, without those that
    overlap one before them.

    Args:
        boxes: (images, boxes, 4): two opposite corners y1, x1, y2, x2.
        scores: (images, classes, boxes).
        max_output_boxes_per_class: of each image.
        iou_threshold: boxes overlap whose intersection is more than this part of their union.
        score_threshold: boxes with no higher score are left out.
        output_format: "onnx".

    Returns:
        A tuple of (images * classes * boxes, 3), which has image, class and box of those that are
        chosen, -1 behind them; and how many there are, (1,). Both are of int64.
    """
    return call(
        all_class_non_max_suppression, boxes, scores, max_output_boxes_per_class, iou_threshold,
        score_threshold, output_format=output_format,
    )  # fmt: skip
