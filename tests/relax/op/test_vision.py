"""Regions of images against NumPy, point by point."""

import math

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te, topi
from mlcweb.relax import op

REGIONS = np.array(
    [[0, 0.5, 1, 5, 4.2], [1, -3, 2, 2.5, 9], [1, 6, 6, 6.2, 6.3], [0, 20, 20, 25, 22]], "float32"
)
"""Inside, over the border, less than an element, and outside."""


def point(image, y, x):
    """An image (c, h, w) at a position."""
    extents = image.shape[1:]
    if any(at < -1 or at > n for at, n in zip((y, x), extents, strict=True)):
        return np.zeros(len(image), image.dtype)
    y, x = (min(max(at, 0), n - 1) for at, n in zip((y, x), extents, strict=True))
    low, left = int(y), int(x)
    high, right = min(low + 1, extents[0] - 1), min(left + 1, extents[1] - 1)
    down, across = y - low, x - left
    rows = [image[:, row, left] * (1 - across) + image[:, row, right] * across
            for row in (low, high)]  # fmt: skip
    return rows[0] * (1 - down) + rows[1] * down


def aligned_regions(data, rois, size, scale, ratio, aligned, mode):
    result = np.zeros((len(rois), data.shape[1], *size), data.dtype)
    for r, (image, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (corner * scale for corner in corners)
        high, wide = y2 - y1, x2 - x1
        if not aligned:
            high, wide = max(high, 1), max(wide, 1)
        bins = high / size[0], wide / size[1]
        counts = [ratio if ratio > 0 else math.ceil(step) for step in bins]
        for i, j in np.ndindex(*size):
            points = [
                point(
                    data[int(image)],
                    y1 + i * bins[0] + (a + 0.5) * bins[0] / counts[0],
                    x1 + j * bins[1] + (b + 0.5) * bins[1] / counts[1],
                )
                for a, b in np.ndindex(*counts)
            ]
            result[r, :, i, j] = getattr(np, {"avg": "mean", "max": "max"}[mode])(points, 0)
    return result


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(("ratio", "aligned"), [(-1, False), (2, False), (2, True)])
def test_roi_align(ratio, aligned, mode, check, random):
    x = random(2, 3, 7, 8)
    expected = aligned_regions(x, REGIONS, (2, 3), 0.9, ratio, aligned, mode)
    check(
        lambda v, r: op.vision.roi_align(v, r, (2, 3), 0.9, ratio, aligned, "NCHW", mode),
        [x, REGIONS], expected, rtol=1e-4,
    )  # fmt: skip


def test_roi_align_of_channels_that_are_last(check, random):
    x = random(2, 3, 7, 8)
    expected = aligned_regions(x, REGIONS, (2, 2), 1.0, 2, False, "avg").transpose(0, 2, 3, 1)
    check(
        lambda v, r: op.vision.roi_align(v, r, 2, 1.0, 2, layout="NHWC"),
        [x.transpose(0, 2, 3, 1).copy(), REGIONS], expected.copy(), rtol=1e-4,
    )  # fmt: skip


def test_roi_pool(check, random):
    x, size, scale = random(2, 3, 7, 8), (2, 3), 0.9
    expected = np.zeros((len(REGIONS), 3, *size), "float32")
    for r, (image, *corners) in enumerate(REGIONS):
        x1, y1, x2, y2 = (math.floor(np.float32(corner) * np.float32(scale) + 0.5)
                          for corner in corners)  # fmt: skip
        for i, j in np.ndindex(*size):
            rows, columns = (
                slice(
                    max(math.floor(at * max(b - a + 1, 1) / n) + a, 0),
                    max(math.ceil((at + 1) * max(b - a + 1, 1) / n) + a, 0),
                )
                for at, a, b, n in ((i, y1, y2, size[0]), (j, x1, x2, size[1]))
            )
            part = x[int(image), :, rows, columns]
            expected[r, :, i, j] = part.max((1, 2)) if part.size else 0
    check(lambda v, r: op.vision.roi_pool(v, r, size, scale), [x, REGIONS], expected)


def test_boxes_for_which_there_is_a_row():
    boxes, scores = te.placeholder((1, 3, 4), name="boxes"), te.placeholder((1, 1, 3), name="s")
    found = topi.vision.all_class_non_max_suppression(
        boxes, scores, 3, 0.5, 0.0, output_shape=(2, 3)
    )
    kernel = tvm.build(te.create_prim_func([boxes, scores, *found]), "interpreter")
    far = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]], "float32")
    rows, count = tvm.nd.empty((2, 3), "int64"), tvm.nd.empty((1,), "int64")
    kernel["main"](tvm.nd.array(far), tvm.nd.array(np.float32([[[0.3, 0.9, 0.6]]])), rows, count)
    np.testing.assert_array_equal(rows.numpy(), [[0, 0, 1], [0, 0, 2]])
    assert count.numpy() == [2]


def test_rows_for_as_many_boxes_as_are_asked_for():
    boxes, scores = te.placeholder((1, 6, 4), name="boxes"), te.placeholder((1, 2, 6), name="s")
    for most, rows in ((3, 6), (8, 16), (0, 0), (tvm.tir.const(3, "int64"), 12)):
        chosen, count = topi.vision.all_class_non_max_suppression(boxes, scores, most, 0.5, 0.1)
        assert [int(n) for n in chosen.shape] == [rows, 3] and [int(n) for n in count.shape] == [1]


def detections(images=2, boxes=12):
    """Rows of a class (-1: none), a score and two corners, of which many overlap."""
    generator = np.random.default_rng(3)
    rows = np.empty((images, boxes, 6), "float32")
    rows[..., 0] = generator.integers(-1, 2, (images, boxes))
    rows[..., 1] = generator.integers(1, 8, (images, boxes)) / 8
    center, half = (generator.random((images, boxes, 2)) for _ in range(2))
    rows[..., 2:4], rows[..., 4:] = center - half / 2 - 0.2, center + half / 2 + 0.2
    rows[:, ::3, [2, 4]] = rows[:, ::3, [4, 2]]  # corners in any order
    return rows


def counted(rows, threshold, classes=True):
    result, places = np.full_like(rows, -1), np.full(rows.shape[:2], -1, "int32")
    counts = []
    for image, of_image in enumerate(rows):
        valid = of_image[:, 1] > threshold
        if classes:
            valid &= of_image[:, 0] >= 0
        (chosen,) = np.nonzero(valid)
        result[image, : len(chosen)], places[image, : len(chosen)] = of_image[chosen], chosen
        counts.append(len(chosen))
    return [np.array(counts, "int32"), result, places]


@pytest.mark.parametrize("id_index", [0, -1])
def test_boxes_above_a_score(id_index, check, random):
    rows = detections()
    expected = counted(rows, 0.25, id_index == 0)
    assert 0 < expected[0].min() and expected[0].max() < 12
    check(lambda x: op.vision.get_valid_counts(x, 0.25, id_index), [rows], expected)


def part_of_union(one, other):
    (a, b), (c, d) = (np.sort(box.reshape(2, 2), 0) for box in (one, other))
    both = np.prod(np.maximum(np.minimum(b, d) - np.maximum(a, c), 0))
    return both / (np.prod(b - a) + np.prod(d - c) - both)


def suppressed(
    counts, rows, places, max_output_size=-1, iou_threshold=0.5, force_suppress=False, top_k=-1,
    id_index=0, soft_nms_sigma=0.0, score_threshold=0.0,
):  # fmt: skip
    """For each image (row, place) of the boxes that are chosen, in order; rows with new scores."""
    result = []
    for of_image, count, called in zip(rows, counts, places, strict=True):
        order = np.argsort(-of_image[:count, 1], kind="stable")
        left = [(of_image[i].copy(), called[i]) for i in order[: top_k if top_k > 0 else None]]
        chosen = []
        while left and (max_output_size <= 0 or len(chosen) < max_output_size):
            best = max(range(len(left)), key=lambda i: left[i][0][1]) if soft_nms_sigma else 0
            row, place = left.pop(best)
            if row[1] <= (score_threshold if soft_nms_sigma else 0):
                break
            chosen.append((row, place))
            others, left = left, []
            for other, called_other in others:
                if force_suppress or id_index < 0 or other[id_index] == row[id_index]:
                    part = part_of_union(row[2:], other[2:])
                    if part >= iou_threshold:
                        continue
                    if soft_nms_sigma:
                        other[1] *= np.exp(-part * part / (2 * soft_nms_sigma))
                left.append((other, called_other))
        result.append(chosen)
    return result


def suppress(counts, rows, places, **options):
    return op.vision.non_max_suppression(rows, counts, places, **options)


OPTIONS = [
    {}, {"max_output_size": 2}, {"force_suppress": True}, {"top_k": 4, "iou_threshold": 0.2},
    {"id_index": -1, "iou_threshold": 0.3}, {"soft_nms_sigma": 0.4, "iou_threshold": 0.5},
    {"soft_nms_sigma": 0.3, "score_threshold": 0.3, "id_index": -1, "max_output_size": 4},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_boxes_without_those_that_overlap(options, check, random):
    inputs = counted(detections(), 0.1)
    chosen = suppressed(*inputs, **options)
    assert [len(each) for each in chosen] != list(inputs[0])
    rows, places = np.full_like(inputs[1], -1), np.full_like(inputs[2], -1)
    for image, boxes in enumerate(chosen):
        for i, (row, place) in enumerate(boxes):
            rows[image, i], places[image, i] = row, place
    counts = np.array([[len(boxes)] for boxes in chosen], "int32")
    soft = "soft_nms_sigma" in options
    check(
        lambda *x: suppress(*x, **options),
        inputs, [rows, places, counts] if soft else [places, counts],
    )  # fmt: skip
    check(
        lambda *x: suppress(*x, **options, return_indices=False, invalid_to_bottom=True),
        inputs, rows,
    )  # fmt: skip


def test_rows_of_suppressed_boxes_stay_where_they_were(check, random):
    counts, rows, places = counted(detections(), 0.1)
    expected = np.full_like(rows, -1)
    for image, boxes in enumerate(suppressed(counts, rows, places)):
        order = np.argsort(-rows[image, : counts[image], 1], kind="stable")
        kept = {place for _, place in boxes}
        for i, source in enumerate(order):
            if places[image, source] in kept:
                expected[image, i] = rows[image, source]
    check(
        lambda *x: suppress(*x, return_indices=False), [counts, rows, places], expected
    )  # fmt: skip


@pytest.mark.parametrize("target", ["numpy", "wasm"])
def test_suppression_on_targets(target, check, random):
    inputs = counted(detections(), 0.1)
    chosen = suppressed(*inputs)
    places = np.full_like(inputs[2], -1)
    for image, boxes in enumerate(chosen):
        places[image, : len(boxes)] = [place for _, place in boxes]
    counts = np.array([[len(boxes)] for boxes in chosen], "int32")
    check(suppress, inputs, [places, counts], target=target)


def test_the_first_elements_of_each_row_are_sorted():
    x, count = te.placeholder((2, 5), name="x"), te.placeholder((2,), "int32", name="count")
    order = topi.argsort(x, count, axis=1, is_ascend=False, dtype="int32")
    kernel = tvm.build(te.create_prim_func([x, count, order]), "interpreter")
    result = tvm.nd.empty((2, 5), "int32")
    rows = np.float32([[3, 9, 3, 5, 7], [1, 2, 3, 4, 5]])
    kernel["main"](tvm.nd.array(rows), tvm.nd.array(np.int32([3, 5])), result)
    assert result.numpy().tolist() == [[1, 0, 2, 3, 4], [4, 3, 2, 1, 0]]


@pytest.mark.parametrize(
    "options",
    [
        {}, {"clip": True, "threshold": 0.3, "keep_background": False},
        {"apply_softmax": False, "variances": (0.1, 0.1, 0.2, 0.2)},
    ],
)  # fmt: skip
def test_boxes_of_anchors(options, check, random):
    scores, differences = random(2, 3, 5), random(2, 20)
    low, size = np.abs(random(1, 5, 2)) / 4, np.abs(random(1, 5, 2)) / 4
    anchors = np.concatenate([low, low + size], 2)
    variances = np.float32(options.get("variances", (1, 1, 1, 1)))
    parts = differences.reshape(2, 5, 4) * variances
    center = parts[..., :2] * size + low + size / 2
    half = np.exp(parts[..., 2:]) * size / 2
    boxes = np.concatenate([(center - half)[..., ::-1], (center + half)[..., ::-1]], 2)
    if options.get("clip"):
        boxes = boxes.clip(0, 1)
    wanted = scores
    if options.get("apply_softmax", True):
        wanted = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    wanted = wanted * (wanted >= options.get("threshold", 0))
    if not options.get("keep_background", True):
        wanted[:, 0] = 0
    check(
        lambda *x: op.vision.multibox_transform_loc(*x, **options),
        [scores, differences, anchors], [boxes, wanted], rtol=1e-4,
    )  # fmt: skip
