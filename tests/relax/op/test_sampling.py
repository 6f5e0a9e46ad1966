"""Drawing from distributions, against NumPy."""

import numpy as np
import pytest

from mlcweb.relax import op


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_values_drawn_by_uniform_numbers(dtype, check):
    prob = np.float32([[0.25, 0.25, 0, 0.5], [0, 0, 0.75, 0.25]])
    uniform = np.float32([[0], [0.25], [0.5], [0.99], [0.5], [0.75], [1]])
    rows = np.array([[0], [0], [0], [0], [1], [1], [1]], dtype)
    sums = prob.cumsum(1)
    drawn = [
        [min(np.searchsorted(sums[row], number, side="right"), 3)]
        for (row,), (number,) in zip(rows, uniform, strict=True)
    ]
    assert [value for (value,) in drawn] == [0, 1, 3, 3, 2, 3, 3]
    check(
        lambda p, u, i: op.multinomial_from_uniform(p, u, i, dtype),
        [prob, uniform, rows], np.array(drawn, dtype),
    )  # fmt: skip
