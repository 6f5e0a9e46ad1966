"""Choosing boxes that overlap no better one."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import extern
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import BufferStore, IfThenElse, Stmt, sequence
from mlcweb.topi.loops import load, loop
from mlcweb.topi.shapes import Extent, Operand, as_shape, show
from mlcweb.topi.sorting import argsort

_WIDE = "int64"


def all_class_non_max_suppression(
    boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Operand,
    iou_threshold: Operand, score_threshold: Operand, output_format: str = "onnx",
    output_shape: Sequence[Extent] | None = None,
) -> list[Tensor]:  # fmt: skip
    """For each image and class the boxes in descending order of their scores, without those that
    overlap one before them (Neubeck and Van Gool, "Efficient Non-Maximum Suppression", 2006).

    Args:
        boxes: (images, boxes, 4): two opposite corners y1, x1, y2, x2.
        scores: (images, classes, boxes); those not above `score_threshold` are left out.
        max_output_boxes_per_class: of each image; an int, or a tensor of one.
        iou_threshold: boxes overlap whose intersection is more than this part of their union.
        output_format: "onnx".
        output_shape: (rows, 3) of the result; boxes for which there is no row are left out.

    The thresholds are numbers, or tensors of one.

    Returns:
        (images * classes * n, 3), or `output_shape`, of int64: image, class and box of those that
        are chosen, and -1 in the rows behind them; and how many there are, (1,). n is
        `max_output_boxes_per_class` if that is an int, else the number of boxes.
    """
    if output_format != "onnx" or boxes.ndim != 3 or scores.ndim != 3:
        raise DiagnosticError(
            f"all_class_non_max_suppression: boxes {show(boxes.shape)} are (images, boxes, 4), "
            f'scores {show(scores.shape)} (images, classes, boxes), output_format is "onnx", not '
            f'"{output_format}"'
        )
    images, classes, count = scores.shape
    most_of_class = max_output_boxes_per_class
    if isinstance(most_of_class, int):
        rows = images * classes * max(most_of_class, 0)
    else:
        rows = images * classes * count
    if output_shape is not None:
        rows = as_shape(output_shape)[0]
    order = argsort(scores, axis=2, is_ascend=False, dtype=_WIDE)
    limits = [max_output_boxes_per_class, iou_threshold, score_threshold]
    tensors = [limit for limit in limits if isinstance(limit, Tensor)]

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        box, score, ranked, *others = inputs
        chosen, total, state = outputs
        rest = iter(others)

        def number(limit: Operand, dtype: str) -> PrimExpr:
            if not isinstance(limit, Tensor):
                return arithmetic.cast(dtype, arithmetic.convert(limit))
            buffer = next(rest)
            return arithmetic.cast(dtype, BufferLoad(buffer, (_const(0),) * len(buffer.shape)))

        most, threshold, least = (
            number(limit, dtype)
            for limit, dtype in zip(limits, (_WIDE, boxes.dtype, scores.dtype), strict=True)
        )
        row, column, image, label, rank, other = (
            Var(name, _WIDE) for name in ("r", "c", "image", "label", "rank", "other")
        )
        filled, first, free = (
            BufferLoad(total, (_const(0),)),
            *(BufferLoad(state, (_const(n),)) for n in (0, 1)),
        )
        candidate = BufferLoad(ranked, (image, label, rank))
        earlier = BufferLoad(chosen, (first + other, _const(2)))
        shared = overlap(box, image, candidate, earlier)
        check = IfThenElse(shared > threshold, BufferStore(state, _const(0), (_const(1),)))
        keep = sequence(
            *(
                BufferStore(chosen, value, (filled, _const(place)))
                for place, value in enumerate((image, label, candidate))
            ),
            BufferStore(total, filled + 1, (_const(0),)),
        )
        fits = arithmetic.logical_and(
            BufferLoad(score, (image, label, candidate)) > least,
            filled - first < most,
        )
        if output_shape is not None:
            fits = arithmetic.logical_and(fits, filled < rows)
        consider = IfThenElse(
            fits,
            sequence(
                BufferStore(state, _const(1), (_const(1),)),
                loop(other, filled - first, check),
                IfThenElse(arithmetic.equal(free, 1), keep),
            ),
        )
        of_class = sequence(BufferStore(state, filled, (_const(0),)), loop(rank, count, consider))
        clear = BufferStore(chosen, _const(-1), (row, column))
        return sequence(
            loop(row, rows, loop(column, _const(3), clear)),
            BufferStore(total, _const(0), (_const(0),)),
            loop(image, images, loop(label, classes, of_class)),
        )

    shapes = [(rows, _const(3)), (_const(1),), (_const(2),)]
    results = extern(
        shapes, [boxes, scores, order, *tensors], body, "non_max_suppression", dtype=[_WIDE] * 3
    )
    return results[:2]


def _const(value: int) -> PrimExpr:
    return arithmetic.const(value, _WIDE)


def overlap(
    rows: Buffer, image: PrimExpr, one: PrimExpr, other: PrimExpr, start: int = 0
) -> PrimExpr:
    """The intersection of two boxes of an image as a part of their union; 0 where both are empty.
    Rows have four corners from `start` on."""

    def sides(box: PrimExpr, axis: int) -> tuple[PrimExpr, PrimExpr]:
        ends = [load(rows, image, box, start + corner) for corner in (axis, axis + 2)]
        return arithmetic.minimum(*ends), arithmetic.maximum(*ends)

    zero = arithmetic.const(0, rows.dtype)
    both, first, second = (arithmetic.const(1, rows.dtype) for _ in range(3))
    for axis in (0, 1):
        (low, high), (begin, end) = sides(one, axis), sides(other, axis)
        inside = arithmetic.minimum(high, end) - arithmetic.maximum(low, begin)
        both = both * arithmetic.maximum(inside, zero)
        first, second = first * (high - low), second * (end - begin)
    union = first + second - both
    return arithmetic.select(union > zero, both / union, zero)
