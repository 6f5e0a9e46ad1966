"""Operators that put elements, turn sequences round, and sum what was broadcast, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb import relax
from mlcweb.relax import TensorStructInfo, op
from mlcweb.relax.errors import ShapeError
from tests.relax.op.conftest import check_operator


def ramp(*shape, dtype="float32"):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    x, rows, columns = ramp(4, 5), np.array([[0], [-1]], "int64"), np.array([1, 3, 3], "int64")
    values = np.array([100.0, 200.0, 300.0], "float32")
    expected = x.copy()
    if accumulate:
        np.add.at(expected, (rows, columns), values)
    else:
        expected[rows, columns] = values
    check_operator(
        lambda v, i, j, u: op.index_put(v, (i, j), u, accumulate), [x, rows, columns, values],
        expected,
    )  # fmt: skip


def test_index_put_of_whole_rows():
    x, rows, values = ramp(4, 3), np.array([2, 0], "int32"), -ramp(2, 3)
    expected = x.copy()
    expected[rows] = values
    check_operator(lambda v, i, u: op.index_put(v, i, u), [x, rows, values], expected)


@given(st.data())
def test_slice_scatter(data):
    extent = data.draw(st.integers(0, 7))
    start, end = (data.draw(st.integers(-8, 8)) for _ in range(2))
    step = data.draw(st.integers(1, 3))
    x = ramp(extent, 2)
    expected = x.copy()
    source = -1 - ramp(*x[start:end:step].shape)
    expected[start:end:step] = source
    check_operator(lambda v, u: op.slice_scatter(v, u, start, end, step), [x, source], expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_reverse_sequence(lengths):
    x = ramp(len(lengths), 5, 2)
    expected = x.copy()
    for row, length in enumerate(lengths):
        expected[row, :length] = x[row, :length][::-1]
    count = np.array(lengths, "int64")
    check_operator(lambda v, n: op.reverse_sequence(v, n), [x, count], expected)
    swapped = np.ascontiguousarray(x.swapaxes(0, 1))
    check_operator(
        lambda v, n: op.reverse_sequence(v, n, 0, 1), [swapped, count],
        np.ascontiguousarray(expected.swapaxes(0, 1)),
    )  # fmt: skip


@given(st.data())
def test_collapse_sum(data):
    target = data.draw(st.lists(st.integers(1, 3), max_size=3))
    wide = [n if n > 1 else data.draw(st.integers(0, 3)) for n in target]
    shape = data.draw(st.lists(st.integers(1, 3), max_size=2)) + wide
    x = ramp(*shape)
    added = tuple(range(len(shape) - len(target)))
    ones = tuple(len(added) + i for i, n in enumerate(target) if n == 1)
    expected = x.sum((*added, *ones), keepdims=True).reshape(target)
    check_operator(lambda v: op.collapse_sum_to(v, target), [x], expected)
    like = np.zeros(target, "float32")
    check_operator(lambda v, u: op.collapse_sum_like(v, u), [x, like], expected)


def test_eye_like():
    x = ramp(3, 4)
    check_operator(lambda v: op.eye_like(v, -1), [x], np.eye(3, 4, -1, "float32"))
    check_operator(lambda v: op.eye_like(v, 1, "int32"), [x], np.eye(3, 4, 1, "int32"))


def test_errors_name_the_operator_and_the_shapes():
    x, n = (relax.Var(name, TensorStructInfo(shape, dtype)) for name, shape, dtype in (
        ("x", (2, 5), "float32"), ("n", (3,), "int64")))  # fmt: skip
    builder = relax.BlockBuilder()
    with pytest.raises(ShapeError, match=r"relax.reverse_sequence: seq_lengths of shape \(3,\)"):
        builder.normalize(op.reverse_sequence(x, n))
    with pytest.raises(ShapeError, match=r"relax.collapse_sum_to: data of shape \(2, 5\)"):
        builder.normalize(op.collapse_sum_to(x, (4,)))
    with pytest.raises(ShapeError, match=r"relax\.index_put: 3 indices"):
        builder.normalize(op.index_put(x, (n, n, n), x))
