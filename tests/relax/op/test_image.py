"""Resizing against NumPy, pixel by pixel."""

import math

import numpy as np
import pytest

from mlcweb.relax import op


def coordinate(i, n, m, mode):
    """The place in an axis of n pixels of the pixel i of m."""
    if mode == "align_corners":
        return i * (n - 1) / (m - 1) if m > 1 else 0.0
    if mode == "asymmetric":
        return i * n / m
    if mode == "pytorch_half_pixel" and m == 1:
        return 0.0
    return (i + 0.5) * n / m - 0.5


def axis_weights(n, m, method, mode, rounding):
    """The matrix (m, n) that resizes an axis."""
    rows = np.zeros((m, n))
    for i in range(m):
        x = coordinate(i, n, m, mode)
        if method == "nearest_neighbor":
            near = {
                "floor": lambda x: math.floor(x + 1e-5),
                "ceil": lambda x: math.ceil(x - 1e-5),
                "round_prefer_floor": lambda x: math.ceil(x - 0.5),
                "round_prefer_ceil": lambda x: math.floor(x + 0.5),
            }[rounding](x)
            rows[i, min(max(near, 0), n - 1)] = 1
            continue
        low, t = math.floor(x), x - math.floor(x)
        a = -0.75
        taps = {0: 1 - t, 1: t} if method == "linear" else {
            k: _cubic(abs(k - t), a) for k in (-1, 0, 1, 2)
        }  # fmt: skip
        for k, weight in taps.items():
            rows[i, min(max(low + k, 0), n - 1)] += weight
    return rows


def _cubic(d, a):
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a


CASES = [
    ("nearest_neighbor", "asymmetric", "floor"),
    ("nearest_neighbor", "half_pixel", "round_prefer_ceil"),
    ("nearest_neighbor", "align_corners", "round_prefer_floor"),
    ("nearest_neighbor", "asymmetric", "ceil"),
    ("linear", "half_pixel", "round"),
    ("linear", "align_corners", "round"),
    ("linear", "asymmetric", "round"),
    ("linear", "pytorch_half_pixel", "round"),
    ("cubic", "half_pixel", "round"),
    ("cubic", "align_corners", "round"),
]


@pytest.mark.parametrize(("method", "mode", "rounding"), CASES)
@pytest.mark.parametrize("size", [(8, 6), (3, 2), (1, 9)])
def test_resize2d(method, mode, rounding, size, check, random):
    x = random(1, 2, 4, 5)
    down, across = (
        axis_weights(n, m, method, mode, rounding) for n, m in zip((4, 5), size, strict=True)
    )
    expected = np.einsum("yh,nchw,xw->ncyx", down, x, across).astype("float32")
    options = {
        "method": method, "coordinate_transformation_mode": mode, "rounding_method": rounding,
    }  # fmt: skip
    check(lambda v: op.image.resize2d(v, size, **options), [x], expected, rtol=1e-4)


def test_resize2d_of_another_layout(check, random):
    x = random(1, 3, 4, 2)
    down, across = (
        axis_weights(n, m, "linear", "half_pixel", "round") for n, m in ((3, 6), (4, 8))
    )
    expected = np.einsum("yh,nhwc,xw->nyxc", down, x, across).astype("float32")
    check(lambda v: op.image.resize2d(v, (6, 8), layout="NHWC"), [x], expected, rtol=1e-4)


def test_cubic_sums_without_what_is_outside(check, random):
    x = np.ones((1, 1, 3, 3), "float32")
    check(lambda v: op.image.resize2d(v, (5, 5), method="cubic", cubic_exclude=1), [x],
          np.ones((1, 1, 5, 5), "float32"), rtol=1e-4)  # fmt: skip


def test_crop(check):
    x = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
    check(
        lambda v: op.image.resize2d(
            v, (2, 2), (0.0, 0.0, 1.0, 2.0), method="linear", extrapolation_value=-1.0,
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        [x], np.array([[[[0, -1], [12, -1]]]], "float32"),
    )  # fmt: skip


@pytest.mark.parametrize(("method", "mode", "rounding"), [CASES[0], CASES[4], CASES[5]])
def test_resize3d(method, mode, rounding, check, random):
    x = random(1, 2, 3, 4, 5)
    deep, down, across = (
        axis_weights(n, m, method, mode, rounding)
        for n, m in zip((3, 4, 5), (5, 2, 6), strict=True)
    )
    expected = np.einsum("zd,yh,xw,ncdhw->nczyx", deep, down, across, x).astype("float32")
    options = {
        "method": method, "coordinate_transformation_mode": mode, "rounding_method": rounding,
    }  # fmt: skip
    check(lambda v: op.image.resize3d(v, (5, 2, 6), **options), [x], expected, rtol=1e-4)
