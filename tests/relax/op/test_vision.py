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
