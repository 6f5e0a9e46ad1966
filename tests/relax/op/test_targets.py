"""A sample of the lowered operators on the other targets: windows, scans, scatters, resizing."""

import numpy as np
import pytest

from mlcweb.relax import op
from tests.relax.op.references import convolution, convolution_transpose


@pytest.mark.parametrize("target", ["wasm", "numpy"])
def test_sample(target, check, random):
    x, w = random(1, 3, 5, 6), random(4, 3, 3, 2)
    check(op.nn.conv2d, [x, w], convolution(x, w, [1, 1], [0] * 4, [1, 1]), 1e-4, target)
    up = random(3, 2, 2, 2)
    check(lambda a, b: op.nn.conv2d_transpose(a, b, 2), [x, up],
          convolution_transpose(x, up, [2, 2], [0] * 4, [0, 0], [1, 1]), 1e-4, target)  # fmt: skip
    check(lambda v: op.cumsum(v, 2), [x], np.cumsum(x, 2), 1e-5, target)
    ids, new = np.array([[2, 0]], "int64"), random(1, 2)
    expected = x[0, 0, :, :2].copy()
    expected[ids[0], [0, 1]] += new[0]
    check(lambda *a: op.scatter_elements(*a, reduction="add"), [x[0, 0, :, :2].copy(), ids, new],
          expected, 1e-5, target)  # fmt: skip
    wide = np.repeat(np.repeat(x, 2, 2), 2, 3)
    check(
        lambda v: op.image.resize2d(
            v, (10, 12), method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        ),
        [x], wide, 1e-5, target,
    )  # fmt: skip
