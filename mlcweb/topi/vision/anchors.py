"""Boxes that are described relative to others."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi.broadcast import greater_equal
from mlcweb.topi.elementwise import cast
from mlcweb.topi.nn.softmax import softmax
from mlcweb.topi.transform import reshape

_exp = intrinsics.unary_functions["exp"]


def multibox_transform_loc(
    cls_pred: Tensor, loc_pred: Tensor, anchor: Tensor, variances: Sequence[float],
    clip: bool = False, threshold: float = 0.0, keep_background: bool = True,
    apply_softmax: bool = True,
) -> list[Tensor]:  # fmt: skip
    """Boxes from anchors and the differences to them, and the scores of their classes (Liu et al.,
    "SSD: Single Shot MultiBox Detector", 2016).

    Args:
        cls_pred: (images, classes, boxes).
        loc_pred: (images, 4 * boxes): x and y of the center, in parts of the anchor, then the
            logarithms of width and height.
        anchor: (1, boxes, 4): x1, y1, x2, y2.
        variances: what x, y, width and height of `loc_pred` are multiplied by.
        clip: corners are kept to 0 … 1.
        threshold: scores below it become 0.
        keep_background: False: the scores of class 0 become 0.
        apply_softmax: `cls_pred` are logits, of which the softmax is taken.

    Returns: boxes, (images, boxes, 4): y1, x1, y2, x2; and scores, of the shape of `cls_pred`.
    """
    dtype = cls_pred.dtype
    images, _, count = cls_pred.shape
    each = [images, count, arithmetic.const(4, count.dtype)]
    differences = reshape(loc_pred, each)
    scales = [arithmetic.const(float(scale), dtype) for scale in variances]
    zero, half, one = (arithmetic.const(value, dtype) for value in (0.0, 0.5, 1.0))

    def ends(image: PrimExpr, box: PrimExpr, axis: int) -> list[PrimExpr]:
        low, high = anchor[0, box, axis], anchor[0, box, axis + 2]
        center = differences[image, box, axis] * scales[axis] * (high - low) + (low + high) * half
        size = _exp(differences[image, box, axis + 2] * scales[axis + 2])
        reach = half * size * (high - low)
        both = [center - reach, center + reach]
        if clip:
            return [arithmetic.maximum(zero, arithmetic.minimum(one, end)) for end in both]
        return both

    def corner(b: PrimExpr, a: PrimExpr, k: PrimExpr) -> PrimExpr:
        (left, right), (top, bottom) = (ends(b, a, axis) for axis in (0, 1))
        value = right
        for place, other in reversed(list(enumerate((top, left, bottom)))):
            value = arithmetic.select(arithmetic.equal(k, place), other, value)
        return value

    boxes = compute(each, corner, "multibox_boxes")
    scores = softmax(cls_pred, axis=1) if apply_softmax else cls_pred
    least = arithmetic.const(float(threshold), dtype)
    scores = scores * cast(greater_equal(scores, least), dtype)
    if not keep_background:
        every = scores
        scores = compute(
            every.shape,
            lambda b, c, n: intrinsics.if_then_else(arithmetic.equal(c, 0), zero, every[b, c, n]),
            "multibox_scores_bg",
        )
    return [boxes, scores]
