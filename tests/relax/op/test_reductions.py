"""Reductions and running sums against NumPy."""

import numpy as np
import pytest

from mlcweb.relax import op

AXES = [None, 0, -1, (0, 2), (0, 1, 2)]
REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod,
    "variance": np.var, "std": np.std,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims, check, random):
    x = random(2, 3, 4)
    expected = np.asarray(REDUCTIONS[name](x, axis=axis, keepdims=keepdims))
    given = list(axis) if isinstance(axis, tuple) else axis
    check(lambda v: getattr(op, name)(v, given, keepdims), [x], expected, rtol=1e-4)


def test_of_integers_and_of_nothing(check, random):
    x = random(3, 4, dtype="int32")
    check(lambda v: op.sum(v, 0), [x], x.sum(0, dtype="int32"))
    empty = random(0, 4)
    check(lambda v: op.sum(v, 0), [empty], empty.sum(0))
    check(lambda v: op.prod(v, 0), [empty], empty.prod(0))
    check(lambda v: op.sum(v, 1), [empty], empty.sum(1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(name, axis, keepdims, check, random):
    x = random(3, 5, dtype="int32") % 3
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    check(lambda v: getattr(op, name)(v, axis, keepdims), [x], np.asarray(expected, "int64"))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_scans(name, axis, check, random):
    x = random(3, 4)
    check(lambda v: getattr(op, name)(v, axis), [x], getattr(np, name)(x, axis=axis))


def test_exclusive_scans_in_another_type(check, random):
    x = random(3, 4, dtype="int32")
    whole = np.cumsum(x, 1, dtype="float32")
    check(lambda v: op.cumsum(v, 1, "float32", True), [x], whole - x.astype("float32"))
    check(lambda v: op.cumsum(v, 0), [random(0, 2)], np.zeros((0, 2), "float32"))
