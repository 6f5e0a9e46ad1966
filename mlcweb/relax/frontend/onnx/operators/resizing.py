"""Resize and Upsample: a weighted sum of a few neighbours along each axis that changes.

The neighbours and weights are the same for all images of a size, so they are computed here, and
each axis costs one `take` and one `multiply` per neighbour.
"""

from __future__ import annotations

import math

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.onnx.arguments import normalized
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.tir.expr import PrimExpr

MAX_EXTENT = 1 << 16
"""Places are lists of numbers when a model is imported."""

Neighbour = tuple[list[int], list[float] | None]
"""Of every position of the result: where the neighbour is, and its weight (None: 1)."""


@converter("Upsample")
def _upsample(node: Node) -> Expr:
    scales = node.attrs.get("scales")
    if scales is None:
        scales = [float(s) for s in node.needed(1, "scales").elements]
    node.attrs.setdefault("coordinate_transformation_mode", "asymmetric")
    node.attrs.setdefault("nearest_mode", "floor")
    return _scaled(node, list(range(node.ndim())), scales)


@converter("Resize")
def _resize(node: Node) -> Expr:
    if node.opset < 11:
        node.attrs.setdefault("coordinate_transformation_mode", "asymmetric")
        node.attrs.setdefault("nearest_mode", "floor")
    axes = [normalized(node, a, node.ndim()) for a in node.attrs.get("axes", range(node.ndim()))]
    index, factor = (None, 1) if node.opset < 11 else (3, 2)
    if index is None or not node.has(index) or not node.ints(index, "sizes"):
        scales = [float(scale) for scale in node.needed(factor, "scales").elements]
        return _scaled(node, axes, scales)
    requested = node.ints(index, "sizes")
    policy = node.attrs.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        shape = node.shape()
        changed = [place for place, axis in enumerate(axes) if shape[axis] != requested[place]]
        axes, requested = ([values[p] for p in changed] for values in (axes, requested))
        if any(isinstance(shape[axis], PrimExpr) for axis in axes):
            return _symbolic(node, dict(zip(axes, requested, strict=True)))
    extents = node.static_shape(0, axes)
    ratios = [size / extent for extent, size in zip(extents, requested, strict=True)]
    if policy != "stretch":
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        ratios = [ratio] * len(axes)
        requested = [math.floor(ratio * extent + 0.5) for extent in extents]
    return _resized(node, axes, extents, requested, ratios)


def _scaled(node: Node, axes: list[int], scales: list[float]) -> Expr:
    changed = [place for place, scale in enumerate(scales) if scale != 1]
    axes, scales = [axes[place] for place in changed], [scales[place] for place in changed]
    shape = node.shape()
    if any(isinstance(shape[axis], PrimExpr) for axis in axes):
        if any(scale != int(scale) for scale in scales):
            raise node.unsupported(f"symbolic extents times {scales}, which are not whole")
        sizes = [shape[axis] * int(scale) for axis, scale in zip(axes, scales, strict=True)]
        return _symbolic(node, dict(zip(axes, sizes, strict=True)))
    extents = node.static_shape(0, axes)
    sizes = [math.floor(extent * scale) for extent, scale in zip(extents, scales, strict=True)]
    return _resized(node, axes, extents, sizes, scales)


def _symbolic(node: Node, sizes: dict[int, Extent]) -> Expr:
    """An image (n, c, h, w) of symbolic extents at other `sizes`, by axis, by the operator that
    finds the neighbours in a run."""
    shape = node.shape()
    mode = node.attrs.get("mode", "nearest")
    if len(shape) != 4 or not sizes.keys() <= {2, 3} or node.attrs.get("antialias", 0):
        raise node.unsupported(f"axes other than the two of images, of the shape {shape}")
    transformation = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    if transformation not in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        raise node.unsupported(f'coordinate_transformation_mode="{transformation}"')
    return op.image.resize2d(
        node.tensor(0),
        [sizes.get(axis, shape[axis]) for axis in (2, 3)],
        layout="NCHW",
        method={"nearest": "nearest_neighbor"}.get(mode, mode),
        coordinate_transformation_mode=transformation,
        rounding_method=node.attrs.get("nearest_mode", "round_prefer_floor"),
        cubic_alpha=node.attrs.get("cubic_coeff_a", -0.75),
        cubic_exclude=node.attrs.get("exclude_outside", 0),
    )


def _resized(
    node: Node, axes: list[int], extents: list[int], sizes: list[int], scales: list[float]
) -> Expr:
    x, ndim = node.tensor(0), node.ndim()
    for axis, extent, size, scale in zip(axes, extents, sizes, scales, strict=True):
        if scale == 1.0 and size == extent:
            continue
        if size > MAX_EXTENT:
            raise node.unsupported(f"an extent of {size}, of more than {MAX_EXTENT}")
        places = [_source(node, i, extent, size, scale) for i in range(size)]
        terms = []
        for indices, weights in _neighbours(node, places, extent, scale):
            term = op.take(x, node.const(indices, "int64"), axis)
            if weights is not None:
                column = node.const(weights, node.dtype(0))
                if axis < ndim - 1:
                    column = op.expand_dims(column, [1 + i for i in range(ndim - 1 - axis)])
                term = term * column
            terms.append(node.emit(term))
        x = terms[0]
        for term in terms[1:]:
            x = node.emit(x + term)
    return x


def _source(node: Node, i: int, extent: int, size: int, scale: float) -> float:
    """Where a position of the result lies in the image."""
    mode = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    if mode == "half_pixel":
        return (i + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        adjustment = size / (scale * extent)
        return extent / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        return 0.0 if size == 1 else i * (extent - 1) / (scale * extent - 1)
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if size > 1 else 0.0
    raise node.unsupported(f'coordinate_transformation_mode="{mode}"')


def _neighbours(node: Node, places: list[float], extent: int, scale: float) -> list[Neighbour]:
    mode = node.attrs.get("mode", "nearest")
    if node.attrs.get("antialias", 0) and scale < 1 and mode != "nearest":
        raise node.unsupported("antialias=1")
    if mode == "nearest":
        rounded = _ROUNDED[node.attrs.get("nearest_mode", "round_prefer_floor")]
        return [([_inside(rounded(place), extent) for place in places], None)]
    if mode == "linear":
        weigh, reach = _linear, range(2)
    elif mode == "cubic":
        a = node.attrs.get("cubic_coeff_a", -0.75)
        weigh, reach = lambda t: _cubic(t, a), range(-1, 3)
    else:
        raise node.unsupported(f'mode="{mode}"')
    exclude = bool(node.attrs.get("exclude_outside", 0))
    columns: list[Neighbour] = [([], []) for _ in reach]
    for place in places:
        first = math.floor(place)
        weights = [weigh(place - first - k) for k in reach]
        if exclude:
            inside = [
                w if 0 <= first + k < extent else 0.0 for w, k in zip(weights, reach, strict=True)
            ]
            weights = [w / sum(inside) for w in inside]
        for (indices, column), k, weight in zip(columns, reach, weights, strict=True):
            indices.append(_inside(first + k, extent))
            assert column is not None
            column.append(weight)
    return columns


def _inside(i: int, extent: int) -> int:
    return min(max(i, 0), extent - 1)


def _linear(t: float) -> float:
    return max(1 - abs(t), 0.0)


def _cubic(t: float, a: float) -> float:
    """Source: R. Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    t = abs(t)
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


_ROUNDED = {
    "round_prefer_floor": lambda place: math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: math.floor(place + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}
