"""Sorting, and what is found among sorted elements, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax import TensorStructInfo, op
from mlcweb.relax.errors import ShapeError
from tests.relax.op.conftest import check_operator

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)


@st.composite
def arrays(draw, dtypes=("float32", "int32", "uint8", "int64")):
    """Arrays with many equal elements."""
    dtype = draw(st.sampled_from(dtypes))
    elements = st.integers(0, 4)
    if dtype == "float32":
        elements = st.sampled_from([0.0, -1.5, 2.0, np.inf, -np.inf, np.nan])
    return draw(hnp.arrays(dtype, draw(SHAPES), elements=elements))


@given(arrays(), st.data(), st.booleans())
def test_sort(x, data, descending):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.sort(x, axis)
    if descending:
        expected = np.flip(expected, axis)
    check_operator(lambda v: op.sort(v, axis, descending), [x], np.ascontiguousarray(expected))


@given(arrays(), st.data(), st.sampled_from(["int32", "int64"]))
def test_argsort_keeps_the_order_of_equal_elements(x, data, dtype):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.argsort(x, axis, kind="stable").astype(dtype)
    check_operator(lambda v: op.argsort(v, axis, False, dtype), [x], expected)


@given(arrays(("int32",)), st.data())
def test_descending_argsort_keeps_the_order_of_equal_elements(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.argsort(-x, axis, kind="stable").astype("int32")
    check_operator(lambda v: op.argsort(v, axis, True), [x], expected)


@given(arrays(("int32",)), st.data(), st.integers(-1, 8), st.booleans())
def test_topk(x, data, k, largest):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    order = np.argsort(-x if largest else x, axis, kind="stable")
    count = min(k, x.shape[axis]) if k >= 1 else x.shape[axis]
    order = np.take(order, np.arange(count), axis)
    values = np.take_along_axis(x, order, axis)
    both = [values, order.astype("int32")]
    check_operator(lambda v: op.topk(v, k, axis, "both", largest), [x], both)
    check_operator(lambda v: op.topk(v, k, axis, "values", largest), [x], values)
    check_operator(
        lambda v: op.topk(v, k, axis, "indices", largest, "int64"), [x], order.astype("int64")
    )


@pytest.mark.parametrize("target", ["wasm", "numpy"])
def test_long_lines_of_any_length(target, random):
    for length in (1, 2, 63, 64, 65, 1000):
        x = random(2, length)
        check_operator(lambda v: op.sort(v), [x], np.sort(x), target=target)


def test_a_symbolic_extent():
    from mlcweb import tir

    n = tir.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", TensorStructInfo((n, 2), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(op.sort(x, 0)))
    vm = relax.VirtualMachine(relax.build(builder.get()), tvm.cpu())
    for length in (0, 1, 7, 33):
        values = np.random.default_rng(length).standard_normal((length, 2)).astype("float32")
        np.testing.assert_array_equal(vm["main"](tvm.nd.array(values)).numpy(), np.sort(values, 0))


def test_the_axis_must_be_one_of_the_tensor():
    x = relax.Var("x", TensorStructInfo((2, 3), "float32"))
    with pytest.raises(ShapeError, match=r"relax.sort: axis 2 is not an axis of a tensor of 2"):
        relax.BlockBuilder().normalize(op.sort(x, 2))


@given(
    hnp.arrays("float32", SHAPES, elements=st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0])),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_bucketize(x, right, narrow):
    boundaries = np.array([-1, 0.5, 0.5, 2], "float32")
    expected = np.searchsorted(boundaries, x, "right" if right else "left")
    check_operator(
        lambda v, b: op.bucketize(v, b, narrow, right), [x, boundaries],
        expected.astype("int32" if narrow else "int64"),
    )  # fmt: skip


# What is as large as the elements say


def run(build, *arrays):
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", TensorStructInfo(a.shape, str(a.dtype))) for i, a in enumerate(arrays)
    ]
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(build(*params)))
    vm = relax.VirtualMachine(relax.build(builder.get()), tvm.cpu())
    result = vm["main"](*map(tvm.nd.array, arrays))
    return [part.numpy() for part in ([result] if isinstance(result, tvm.nd.NDArray) else result)]


@given(arrays(("int32", "float32")))
def test_nonzero(x):
    (places,) = run(op.nonzero, x)
    assert places.dtype == "int64"
    np.testing.assert_array_equal(places, np.stack(np.nonzero(x)))


@given(arrays(("int32",)), st.data())
def test_unique(x, data):
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    if axis is not None and 0 in x.shape:
        return  # NumPy has no slices to compare
    expected = np.unique(x, True, True, True, axis)
    found = run(lambda v: op.unique(v, True, True, True, True, axis), x)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs.reshape(ours.shape))


def test_unique_in_the_order_of_appearance():
    x = np.array([3, 1, 3, 2, 1], "int32")
    values, first, inverse, counts = run(lambda v: op.unique(v, False, True, True, True), x)
    assert values.tolist() == [3, 1, 2]
    assert first.tolist() == [0, 1, 3]
    assert counts.tolist() == [2, 2, 1]
    np.testing.assert_array_equal(values[inverse], x)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_median_along_an_axis(axis, keepdims, check, random):
    x = random(3, 4, 5)
    order = np.argsort(x, axis, kind="stable")
    middle = np.take(order, [(x.shape[axis] - 1) // 2], axis)
    found = [np.take_along_axis(x, middle, axis), middle]
    if not keepdims:
        found = [np.squeeze(part, axis) for part in found]
    check(lambda v: op.median(v, axis, keepdims), [x], found)


def test_median_of_several_axes(check, random):
    x = random(3, 4, 5)
    flat = np.sort(x.transpose(1, 0, 2).reshape(4, 15), 1)[:, 7]
    check(lambda v: op.median(v, [0, 2]), [x], flat)
    check(lambda v: op.median(v, None, True), [x], np.sort(x.ravel())[29].reshape(1, 1, 1))
