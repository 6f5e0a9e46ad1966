"""Choosing boxes that are rows of numbers: a class, a score, four corners, in any order.

Rows that are not chosen are filled with -1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute, extern
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import IfThenElse, Stmt, sequence
from mlcweb.topi import shapes
from mlcweb.topi.loops import load, loop, store
from mlcweb.topi.shapes import Extent, Scalar
from mlcweb.topi.sorting import argsort
from mlcweb.topi.vision.boxes import overlap

_exp = intrinsics.unary_functions["exp"]
_INDEX = "int32"


def get_valid_counts(
    data: Tensor, score_threshold: Scalar = 0, id_index: int = 0, score_index: int = 1
) -> list[Tensor]:
    """The boxes whose score is above a threshold, in their order, at the front.

    Args:
        data: (images, boxes, numbers).
        score_threshold: a number, or a tensor of one.
        id_index: where a row has its class, which is negative in rows that are no boxes; -1 if it
            has none.
        score_index: where a row has its score.

    Returns:
        How many boxes of each image there are, (images,); the rows, of the shape of `data`; and
        their positions in `data`, (images, boxes). The first and the last are of int32.
    """
    shapes.need_rank("get_valid_counts", data, 3, "(images, boxes, numbers)")
    images, boxes, numbers = data.shape
    tensors = [score_threshold] if isinstance(score_threshold, Tensor) else []

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        source, *thresholds = inputs
        counts, rows, positions = outputs
        image, box, column = (Var(name, _INDEX) for name in ("image", "box", "column"))
        least = score_threshold
        for threshold in thresholds:
            least = load(threshold, *[0] * len(threshold.shape))
        count = load(counts, image)
        valid = load(source, image, box, score_index) > arithmetic.cast(data.dtype, least)
        if id_index >= 0:
            valid = arithmetic.logical_and(valid, load(source, image, box, id_index) >= 0)
        number = load(source, image, box, column)
        take = sequence(
            loop(column, numbers, store(rows, number, image, count, column)),
            store(positions, box, image, count),
            store(counts, count + 1, image),
        )
        of_image = sequence(
            store(counts, 0, image),
            loop(box, boxes, IfThenElse(valid, take)),
            loop(box, boxes, IfThenElse(box >= count, _clear(rows, positions, image, box))),
        )
        return loop(image, images, of_image)

    return extern(
        [(images,), data.shape, (images, boxes)], [data, *tensors], body, "get_valid_counts",
        dtype=[_INDEX, data.dtype, _INDEX],
    )  # fmt: skip


def non_max_suppression(
    data: Tensor, valid_count: Tensor, indices: Tensor, max_output_size: Extent = -1,
    iou_threshold: Scalar = 0.5, force_suppress: bool = False, top_k: Extent = -1,
    coord_start: int = 2,
    score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False, soft_nms_sigma: float = 0.0, score_threshold: float = 0.0,
) -> Tensor | list[Tensor]:  # fmt: skip
    """The boxes of each image in descending order of their scores, without those that overlap a
    better one of their class (Neubeck and Van Gool, "Efficient Non-Maximum Suppression", 2006).

    Args:
        data: (images, boxes, numbers), what `get_valid_counts` gives, with the other two.
        valid_count: (images,); the boxes behind these are ignored.
        indices: (images, boxes), what the result calls the boxes.
        max_output_size: of each image; without limit if it is not positive.
        iou_threshold: boxes overlap whose intersection is at least this part of their union.
        force_suppress: a box suppresses those of other classes, too.
        top_k: only so many of the best boxes are looked at; all if it is not positive.
        coord_start: where a row has the first of its four corners x1, y1, x2, y2.
        id_index: where a row has its class; -1 if there is one class.
        return_indices: give positions of boxes rather than their rows.
        invalid_to_bottom: the rows of chosen boxes come first.
        soft_nms_sigma: if positive, the score of a box that overlaps a better one by the part u is
            multiplied by exp(-u² / (2 sigma)), and the best that is left comes next (Bodla et al.,
            "Soft-NMS", 2017).
        score_threshold: what scores must stay above, with `soft_nms_sigma`; otherwise 0.

    Returns:
        The rows, of the shape of `data`, if not `return_indices`. Otherwise a list of positions,
        (images, boxes) of int32, and their number, (images, 1); with `soft_nms_sigma` the rows
        come before them.
    """
    for name, tensor, rank, layout in (
        ("data", data, 3, "(images, boxes, numbers)"),
        ("valid_count", valid_count, 1, "(images,)"),
        ("indices", indices, 2, "(images, boxes)"),
    ):
        if tensor.ndim != rank:
            raise DiagnosticError(
                f"non_max_suppression: {name} {shapes.show(tensor.shape)} must be {layout}"
            )
    images, boxes, numbers = data.shape
    scores = compute((images, boxes), lambda i, j: data[i, j, score_index], "score")
    order = argsort(scores, valid_count, axis=1, is_ascend=False, dtype=_INDEX)
    soft = soft_nms_sigma > 0
    least = arithmetic.const(float(score_threshold) if soft else 0.0, data.dtype)
    limit = arithmetic.convert(max_output_size)
    class_index = -1 if force_suppress else id_index

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        source, ranked, valid, called = inputs
        rows, chosen, counts, state, spare = outputs
        image, box = (Var(name, _INDEX) for name in ("image", "box"))
        ours = _Image(
            image, rows, chosen, counts, state, spare, called, least,
            arithmetic.cast(data.dtype, iou_threshold), limit,
            _considered(load(valid, image), boxes, top_k), score_index, class_index, coord_start,
        )  # fmt: skip
        place = load(ranked, image, box)
        take = sequence(
            ours.copy(rows, (image, box), lambda column: load(source, image, place, column)),
            store(chosen, place, image, box),
        )
        sort = IfThenElse(box < ours.considered, take, ours.clear(box))
        of_image = sequence(
            loop(box, boxes, sort),
            store(counts, 0, image, 0),
            ours.decay(-0.5 / soft_nms_sigma) if soft else ours.suppress(),
        )
        return loop(image, images, of_image)

    rows, chosen, counts, *_ = extern(
        [data.shape, (images, boxes), (images, 1), (2,), (numbers,)],
        [data, order, valid_count, indices], body, "non_max_suppression",
        dtype=[data.dtype, _INDEX, _INDEX, _INDEX, data.dtype],
    )  # fmt: skip
    if return_indices:
        return [rows, chosen, counts] if soft else [chosen, counts]
    if not invalid_to_bottom:
        return rows
    return get_valid_counts(rows, 0, -1, score_index)[1]


def _considered(count: PrimExpr, boxes: PrimExpr, top_k: Extent) -> PrimExpr:
    """How many boxes of an image are looked at."""
    count = arithmetic.minimum(arithmetic.cast(_INDEX, count), arithmetic.cast(_INDEX, boxes))
    if isinstance(top_k, int):
        return arithmetic.minimum(count, top_k) if top_k > 0 else count
    return arithmetic.select(top_k > 0, arithmetic.minimum(count, top_k), count)


@dataclass
class _Image:
    """What is done with the boxes of one image, which are in descending order of their scores."""

    image: PrimExpr
    rows: Buffer
    chosen: Buffer
    counts: Buffer
    state: Buffer
    spare: Buffer
    called: Buffer
    least: PrimExpr
    overlap: PrimExpr
    limit: PrimExpr
    considered: PrimExpr
    score_index: int
    class_index: int
    coord_start: int

    def __post_init__(self) -> None:
        self.boxes = self.rows.shape[1]
        self.count = load(self.counts, self.image, 0)
        self.fits = logic.any(self.limit <= 0, self.count < self.limit)
        self.box, self.other = (Var(name, _INDEX) for name in ("box", "other"))

    def suppress(self) -> Stmt:
        """Each box that is left, in order, suppresses those behind it."""
        image, box, other, count = self.image, self.box, self.other, self.count
        chosen, counts = self.chosen, self.counts
        left = logic.all(other > box, self.score(other) > self.least, self.of_class(box, other))
        drop = sequence(
            store(self.rows, -1, image, other, self.score_index), store(chosen, -1, image, other)
        )
        check = IfThenElse(left, IfThenElse(self.shared(box, other) >= self.overlap, drop))
        keep = sequence(store(counts, count + 1, image, 0), loop(other, self.considered, check))
        choose = IfThenElse(
            logic.all(self.score(box) > self.least, self.fits), keep, self.clear(box)
        )
        gather = sequence(
            store(chosen, load(self.called, image, load(chosen, image, box)), image, count),
            store(counts, count + 1, image, 0),
        )
        return sequence(
            loop(box, self.considered, choose),
            store(counts, 0, image, 0),
            loop(box, self.boxes, IfThenElse(load(chosen, image, box) >= 0, gather)),
            loop(box, self.boxes, IfThenElse(box >= count, store(chosen, -1, image, box))),
        )

    def decay(self, scale: float) -> Stmt:
        """The best box that is left is swapped to the front, and the scores of those that are left
        sink."""
        image, box, other, count = self.image, self.box, self.other, self.count
        rows, chosen, counts, state = self.rows, self.chosen, self.counts, self.state
        best, score = load(state, 0), self.score
        left = logic.all(
            other >= count, load(chosen, image, other) >= 0, score(other) > self.least
        )  # fmt: skip
        better = logic.any(best < 0, score(other) > score(arithmetic.maximum(best, 0)))
        swap = sequence(
            self.copy(self.spare, (), lambda column: load(rows, image, count, column)),
            self.copy(rows, (image, count), lambda column: load(rows, image, best, column)),
            self.copy(rows, (image, best), lambda column: load(self.spare, column)),
            store(state, load(chosen, image, count), 1),
            store(chosen, load(chosen, image, best), image, count),
            store(chosen, load(state, 1), image, best),
        )
        part = self.shared(count, other)
        factor = _exp(part * part * arithmetic.const(scale, rows.dtype))
        drop = store(chosen, -1, image, other)
        sink = sequence(
            store(rows, score(other) * factor, image, other, self.score_index),
            IfThenElse(score(other) <= self.least, drop),
        )
        check = IfThenElse(
            logic.all(left, other > count, self.of_class(count, other)),
            IfThenElse(part >= self.overlap, drop, sink),
        )
        choose = sequence(
            swap, loop(other, self.considered, check), store(counts, count + 1, image, 0)
        )
        find = IfThenElse(logic.all(left, better), store(state, other, 0))
        choose_best = sequence(
            store(state, -1, 0),
            loop(other, self.considered, find),
            IfThenElse(best >= 0, choose),
        )
        name = store(chosen, load(self.called, image, load(chosen, image, box)), image, box)
        return sequence(
            loop(box, self.considered, IfThenElse(self.fits, choose_best)),
            loop(box, self.boxes, IfThenElse(box < count, name, self.clear(box))),
        )

    def score(self, box: PrimExpr) -> PrimExpr:
        return load(self.rows, self.image, box, self.score_index)

    def of_class(self, one: PrimExpr, other: PrimExpr) -> PrimExpr:
        """Whether two boxes are of one class."""
        if self.class_index < 0:
            return arithmetic.const(True)
        both = (load(self.rows, self.image, box, self.class_index) for box in (one, other))
        return arithmetic.equal(*both)

    def shared(self, one: PrimExpr, other: PrimExpr) -> PrimExpr:
        return overlap(self.rows, self.image, one, other, self.coord_start)

    def copy(
        self, target: Buffer, row: tuple[PrimExpr, ...], value: Callable[[Var], PrimExpr]
    ) -> Stmt:
        column = Var("column", _INDEX)
        return loop(column, self.rows.shape[2], store(target, value(column), *row, column))

    def clear(self, box: PrimExpr) -> Stmt:
        return _clear(self.rows, self.chosen, self.image, box)


def _clear(rows: Buffer, positions: Buffer, image: PrimExpr, box: PrimExpr) -> Stmt:
    column = Var("column", _INDEX)
    return sequence(
        loop(column, rows.shape[2], store(rows, -1, image, box, column)),
        store(positions, -1, image, box),
    )
