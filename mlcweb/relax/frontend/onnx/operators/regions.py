"""Regions of images, and boxes."""

from __future__ import annotations

import math

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.struct_info import ShapeStructInfo
from mlcweb.tir.expr import Var as PrimVar


@converter("RoiAlign")
def _roi_align(node: Node) -> Expr:
    """Aligned regions, the default since opset 16, are half an element before others."""
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    if node.attrs.get("mode", "avg") != "avg":
        raise node.unsupported("the mode max, which takes weighted corners, not points")
    mode = node.attrs.get("coordinate_transformation_mode", default)
    aligned = mode == "half_pixel"
    scale = node.attrs.get("spatial_scale", 1.0)
    dtype = node.dtype(1)
    corners = node.tensor(1)
    if aligned:
        corners = corners - node.const(0.5 / scale, dtype)
    images = op.astype(op.expand_dims(node.tensor(2), 1), dtype)
    regions = node.emit(op.concat([images, corners], 1))
    size = node.attrs.get("output_height", 1), node.attrs.get("output_width", 1)
    return op.vision.roi_align(
        node.tensor(0), regions, size, scale, node.attrs.get("sampling_ratio", 0), aligned
    )


@converter("MaxRoiPool")
def _max_roi_pool(node: Node) -> Expr:
    scale = node.attrs.get("spatial_scale", 1.0)
    return op.vision.roi_pool(node.tensor(0), node.tensor(1), node.attrs["pooled_shape"], scale)


@converter("MaxUnpool")
def _max_unpool(node: Node) -> Expr:
    """Elements put where MaxPool found them, zeros elsewhere; positions are in the flat tensor."""
    shape, kernel = node.static_shape(0), node.attrs["kernel_shape"]
    rank = len(kernel)
    strides = node.attrs.get("strides") or [1] * rank
    pads = node.attrs.get("pads") or [0] * 2 * rank
    inferred = [
        (n - 1) * stride + k - pads[axis] - pads[rank + axis]
        for axis, (n, stride, k) in enumerate(zip(shape[2:], strides, kernel, strict=True))
    ]
    inferred = [*shape[:2], *inferred]
    target = node.ints(2, "output_shape") if node.has(2) else inferred
    values, places = (op.reshape(node.tensor(index), [-1]) for index in (0, 1))
    empty = op.zeros([math.prod(inferred)], node.dtype(0))
    result = node.emit(op.reshape(op.scatter_elements(empty, places, values), inferred))
    if target == inferred:
        return result
    widths = [width for old, new in zip(inferred, target, strict=True) for width in (0, new - old)]
    return op.nn.pad(result, widths)


@converter("NonMaxSuppression", "AllClassNMS")
def _non_max_suppression(node: Node) -> Expr:
    """How many boxes are chosen is known when the model runs."""
    boxes = node.tensor(0)
    if node.attrs.get("center_point_box", 0):
        center, size = node.fields(op.split(boxes, [2], 2))
        half = node.emit(size * node.const(0.5, node.dtype(0)))
        corners = [center - half, center + half]
        boxes = node.emit(op.concat(corners, 2))  # x before y, which makes no difference
    defaults = ((0, "int64"), (0.0, node.dtype(0)), (-math.inf, node.dtype(1)))
    most, iou, least = (
        node.tensor(index) if node.has(index) else node.const(*default)
        for index, default in enumerate(defaults, 2)
    )
    rows, count = node.fields(
        op.vision.all_class_non_max_suppression(boxes, node.tensor(1), most, iou, least)
    )
    extent = PrimVar("chosen", "int64")
    shape = node.emit(op.tensor_to_shape(count))
    node.builder.match_cast(shape, ShapeStructInfo([extent]))
    return op.strided_slice(rows, [0], [0], [extent], assume_inbound=True)
