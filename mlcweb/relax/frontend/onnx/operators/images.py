"""Operators on images."""

from __future__ import annotations

import math

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.arguments import normalized
from mlcweb.relax.frontend.onnx.known import flat_index, positions
from mlcweb.relax.frontend.onnx.node import Node, converter

_METHODS = {
    "linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest",
    "cubic": "bicubic", "bicubic": "bicubic",
}  # fmt: skip


@converter("GridSample")
def _grid_sample(node: Node) -> Expr:
    rank = node.ndim(0) - 2
    if rank not in (2, 3):
        raise node.unsupported(f"{rank} spatial axes; there are 2 and 3")
    grid = node.emit(op.permute_dims(node.tensor(1), [0, rank + 1, *range(1, rank + 1)]))
    return op.image.grid_sample(
        node.tensor(0),
        grid,
        _METHODS[node.attrs.get("mode", "linear")],
        "NCHW" if rank == 2 else "NCDHW",
        node.attrs.get("padding_mode", "zeros"),
        bool(node.attrs.get("align_corners", 0)),
    )


@converter("AffineGrid")
def _affine_grid(node: Node) -> Expr:
    _, _, *image = node.ints(1, "size")
    corners = bool(node.attrs.get("align_corners", 0))
    grid = node.emit(op.image.affine_grid(node.tensor(0), image, corners))
    return op.permute_dims(grid, [0, *range(2, len(image) + 2), 1])


@converter("CenterCropPad")
def _center_crop_pad(node: Node) -> Expr:
    shape = node.static_shape(0)
    axes = [normalized(node, a, len(shape)) for a in node.attrs.get("axes", range(len(shape)))]
    x = node.tensor(0)
    widths = [0] * 2 * len(shape)
    for axis, extent in zip(axes, node.ints(1, "shape"), strict=True):
        over = shape[axis] - extent
        if over > 0:
            x = node.emit(op.strided_slice(x, [axis], [over // 2], [over // 2 + extent]))
        elif over < 0:
            widths[2 * axis], widths[2 * axis + 1] = -over // 2, -over - -over // 2
    return op.nn.pad(x, widths) if any(widths) else x


@converter("Col2Im")
def _columns_to_image(node: Node) -> Expr:
    """Each column is a window; where windows meet, their elements are added."""
    batch, deep, _ = node.static_shape(0)
    image, kernel = node.ints(1, "image_shape"), node.ints(2, "block_shape")
    rank = len(image)
    strides = node.attrs.get("strides", [1] * rank)
    dilation = node.attrs.get("dilations", [1] * rank)
    pads = node.attrs.get("pads", [0] * 2 * rank)
    channels = deep // math.prod(kernel)
    whole = [n + pads[d] + pads[rank + d] for d, n in enumerate(image)]
    counts = [(whole[d] - dilation[d] * (kernel[d] - 1) - 1) // strides[d] + 1 for d in range(rank)]
    places = []
    for inside in positions(kernel):
        for window in positions(counts):
            at = [window[d] * strides[d] + inside[d] * dilation[d] for d in range(rank)]
            places.append(flat_index(at, whole))
    size = math.prod(whole)
    columns = node.emit(op.reshape(node.tensor(0), [batch, channels, len(places)]))
    indices = op.broadcast_to(node.const([[places]], "int64"), [batch, channels, len(places)])
    start = node.emit(op.zeros([batch, channels, size], node.dtype(0)))
    total = op.scatter_elements(start, node.emit(indices), columns, 2, "add")
    padded = node.emit(op.reshape(node.emit(total), [batch, channels, *whole]))
    axes = list(range(2, 2 + rank))
    ends = [pads[d] + n for d, n in enumerate(image)]
    return op.strided_slice(padded, axes, pads[:rank], ends)
