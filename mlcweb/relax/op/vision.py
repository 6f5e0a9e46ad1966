"""Operators on regions of images, and on boxes: `relax.op.vision`, `R.vision`."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, by, number, topi
from mlcweb.relax.op.registry import call as call
from mlcweb.relax.op.registry import operator, several, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.tir.expr import IntImm, PrimExpr


def _infer_regions(call: Call, context: Context) -> StructInfo:
    """(regions, channels, height, width) of images and regions (number of the image, x1, y1, x2,
    y2)."""
    data, rois = infer.tensors(call, context)
    layout, size = infer.attribute(call, "layout"), infer.attribute(call, "pooled_size")
    infer.need_rank(call, 0, data, 4, layout)
    infer.need_rank(call, 1, rois, 2, "(regions, 5)")
    if layout not in _LAYOUTS[infer.op_of(call).name]:
        layouts = " or ".join(_LAYOUTS[infer.op_of(call).name])
        raise infer.shape_error(call, f"layout must be {layouts}, not {layout}")
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
        spatial_scale=float(spatial_scale), sample_ratio=whole(sample_ratio), aligned=bool(aligned),
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


def _infer_valid_counts(call: Call, context: Context) -> StructInfo:
    (data,) = infer.tensors(call, context)
    infer.need_rank(call, 0, data, 3, "(images, boxes, numbers)")
    _need_columns(call, data, id_index=-1, score_index=0)
    images, boxes, _ = data.values or (None,) * 3
    return TupleStructInfo(
        [_info("int32", images), TensorStructInfo(data.shape, data.dtype, ndim=3),
         _info("int32", images, boxes)]
    )  # fmt: skip


def _info(dtype: str, *extents: PrimExpr | None) -> TensorStructInfo:
    """The tensor of some extents, of which all are None if one is."""
    axes = [extent for extent in extents if extent is not None]
    shape = axes if len(axes) == len(extents) else None
    return TensorStructInfo(shape, dtype, ndim=len(extents))


def _need_columns(call: Call, data: TensorStructInfo, **least: int) -> None:
    """Refuses attributes, positions in rows, that are less than these, or behind the rows."""
    width = None if data.values is None else constant_int(data.values[2])
    for name, first in least.items():
        column = infer.attribute(call, name)
        last = column + 3 if name == "coord_start" else column
        if column < first or (width is not None and last >= width):
            raise infer.shape_error(
                call, f"{name} is {column}, outside of {infer.described(call, 0, data)}"
            )


def _need_same(call: Call, what: str, one: PrimExpr | None, other: PrimExpr | None) -> None:
    """Refuses two extents that are known to be different."""
    if one is not None and other is not None and dims.differ(one, other):
        raise infer.shape_error(call, f"{what}: {one} and {other}")


@operator(
    "relax.vision.get_valid_counts", "data",
    infer=_infer_valid_counts,
    legalize=by("vision.get_valid_counts", "score_threshold", "id_index", "score_index"),
    differentiable=False,
)  # fmt: skip
def get_valid_counts(
    data: ExprLike, score_threshold: float = 0, id_index: int = 0, score_index: int = 1
) -> Call:
    """The boxes whose score is above a threshold, in their order, at the front.

    Args:
        data: (images, boxes, numbers).
        id_index: where a row has its class, which is negative in rows that are no boxes; -1 if it
            has none.
        score_index: where a row has its score.

    Returns:
        A tuple: how many boxes of each image there are, (images,); the rows, of the shape of
        `data`; and their positions in `data`, (images, boxes). The first and the last are of int32.
        Rows and positions behind them are -1.
    """
    return call(
        get_valid_counts, data, score_threshold=float(score_threshold), id_index=whole(id_index),
        score_index=whole(score_index),
    )  # fmt: skip


def _infer_non_max(call: Call, context: Context) -> StructInfo:
    data, counts, indices = infer.tensors(call, context)
    infer.need_rank(call, 0, data, 3, "(images, boxes, numbers)")
    infer.need_rank(call, 1, counts, 1, "(images,)")
    infer.need_rank(call, 2, indices, 2, "(images, boxes)")
    for index, tensor in ((1, counts), (2, indices)):
        if tensor.dtype not in ("", "int32"):
            name = infer.argument_name(call, index)
            raise infer.dtype_error(call, f"{name} must be of int32, not {tensor.dtype}")
    _need_columns(call, data, coord_start=0, score_index=0, id_index=-1)
    images, boxes, _ = data.values or (None,) * 3
    _need_same(call, "data and valid_count must have as many images",
               images, (counts.values or (None,))[0])  # fmt: skip
    for what, one, other in zip(
        ("images", "boxes"), (images, boxes), indices.values or (None,) * 2, strict=True
    ):
        _need_same(call, f"data and indices must have as many {what}", one, other)
    rows = TensorStructInfo(data.shape, data.dtype, ndim=3)
    if not infer.attribute(call, "return_indices"):
        return rows
    one = None if images is None else IntImm("int64", 1)
    positions = [_info("int32", images, boxes), _info("int32", images, one)]
    soft = infer.attribute(call, "soft_nms_sigma") > 0
    return TupleStructInfo([rows, *positions] if soft else positions)


@operator(
    "relax.vision.non_max_suppression", "data", "valid_count", "indices",
    infer=_infer_non_max,
    legalize=by(
        "vision.non_max_suppression", "max_output_size", "iou_threshold", "force_suppress", "top_k",
        "coord_start", "score_index", "id_index", "return_indices", "invalid_to_bottom",
        "soft_nms_sigma", "score_threshold",
    ),
    differentiable=False,
)  # fmt: skip
def non_max_suppression(
    data: ExprLike,
    valid_count: ExprLike,
    indices: ExprLike,
    max_output_size: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
    soft_nms_sigma: float = 0.0,
    score_threshold: float = 0.0,
) -> Call:
    """The boxes of each image in descending order of their scores, without those that overlap a
    better one of their class.

    Args:
        data: (images, boxes, numbers), what `get_valid_counts` gives, with the other two.
        valid_count: (images,) of int32; the boxes behind these are ignored.
        indices: (images, boxes) of int32, what the result calls the boxes.
        max_output_size: of each image; without limit if it is not positive.
        iou_threshold: boxes overlap whose intersection is at least this part of their union.
        force_suppress: a box suppresses those of other classes, too.
        top_k: only so many of the best boxes are looked at; all if it is not positive.
        coord_start: where a row has the first of its four corners x1, y1, x2, y2.
        score_index, id_index: where a row has its score, and its class; -1 if there is one class.
        return_indices: give positions of boxes rather than their rows.
        invalid_to_bottom: the rows of chosen boxes come first.
        soft_nms_sigma: if positive, boxes that overlap a better one by the part u of their union,
            less than `iou_threshold`, keep their score times exp(-u² / (2 sigma)).
        score_threshold: what scores must stay above, with `soft_nms_sigma`; otherwise 0.

    Returns:
        The rows, of the shape of `data`, with -1 in those that are not chosen, if not
        `return_indices`. Otherwise a tuple of positions, (images, boxes) of int32, -1 behind them,
        and their number, (images, 1); with `soft_nms_sigma` the rows come before them.
    """
    return call(
        non_max_suppression, data, valid_count, indices, max_output_size=whole(max_output_size),
        iou_threshold=float(iou_threshold), force_suppress=bool(force_suppress), top_k=whole(top_k),
        coord_start=whole(coord_start), score_index=whole(score_index), id_index=whole(id_index),
        return_indices=bool(return_indices), invalid_to_bottom=bool(invalid_to_bottom),
        soft_nms_sigma=float(soft_nms_sigma), score_threshold=float(score_threshold),
    )  # fmt: skip


def _infer_multibox(call: Call, context: Context) -> StructInfo:
    scores, differences, anchors = infer.tensors(call, context)
    infer.need_rank(call, 0, scores, 3, "(images, classes, boxes)")
    infer.need_rank(call, 1, differences, 2, "(images, 4 * boxes)")
    infer.need_rank(call, 2, anchors, 3, "(1, boxes, 4)")
    dtype = infer.common_dtype(call, [scores, differences, anchors])
    if len(infer.attribute(call, "variances")) != 4:
        raise infer.shape_error(call, "variances must be four numbers: for x, y, width and height")
    images, _, boxes = scores.values or (None,) * 3
    of_images, width = differences.values or (None,) * 2
    wide = None if width is None else constant_int(width)
    if wide is not None and wide % 4:
        raise infer.shape_error(
            call, f"{infer.described(call, 1, differences)} must have four numbers for each box"
        )
    _need_same(call, "cls_pred and loc_pred must have as many images", images, of_images)
    if boxes is not None:
        _need_same(
            call, "loc_pred must have four numbers for each box of cls_pred", width, boxes * 4
        )
    expected = (IntImm("int64", 1), boxes, IntImm("int64", 4))
    for one, other in zip(expected, anchors.values or (None,) * 3, strict=True):
        _need_same(call, "anchor must be (1, boxes, 4)", one, other)
    every = TensorStructInfo(scores.shape, dtype, ndim=3)
    four = None if boxes is None else IntImm("int64", 4)
    return TupleStructInfo([_info(dtype, images, boxes, four), every])


@operator(
    "relax.vision.multibox_transform_loc", "cls_pred", "loc_pred", "anchor",
    infer=_infer_multibox,
    legalize=by(
        "vision.multibox_transform_loc", "variances", "clip", "threshold", "keep_background",
        "apply_softmax",
    ),
)  # fmt: skip
def multibox_transform_loc(
    cls_pred: ExprLike,
    loc_pred: ExprLike,
    anchor: ExprLike,
    clip: bool = False,
    threshold: float = 0.0,
    variances: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    keep_background: bool = True,
    apply_softmax: bool = True,
) -> Call:
    """Boxes from anchors and the differences to them, and the scores of their classes (Liu et al.,
    "SSD: Single Shot MultiBox Detector", 2016).

    Args:
        cls_pred: (images, classes, boxes).
        loc_pred: (images, 4 * boxes): x and y of the center, in parts of the anchor, then the
            logarithms of width and height.
        anchor: (1, boxes, 4): x1, y1, x2, y2.
        clip: corners are kept to 0 … 1.
        threshold: scores below it become 0.
        variances: what x, y, width and height of `loc_pred` are multiplied by.
        keep_background: False: the scores of class 0 become 0.
        apply_softmax: `cls_pred` are logits, of which the softmax is taken.

    Returns:
        A tuple: boxes, (images, boxes, 4): y1, x1, y2, x2; and scores, of the shape of `cls_pred`.
    """
    return call(
        multibox_transform_loc, cls_pred, loc_pred, anchor, clip=bool(clip),
        threshold=float(threshold), variances=[float(each) for each in variances],
        keep_background=bool(keep_background), apply_softmax=bool(apply_softmax),
    )  # fmt: skip
