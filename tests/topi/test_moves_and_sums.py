"""Reductions and operators that move elements, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb import TVMError, te, topi
from tests.strategies import examples

REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean,
    "variance": np.var,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(run, name):
    @examples(10)
    @given(st.data())
    def check(data):
        shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple))
        axes = data.draw(
            st.none()
            | st.integers(-len(shape), len(shape) - 1)
            | st.sets(st.integers(0, len(shape) - 1), min_size=1).map(sorted).map(tuple)
        )
        keepdims = data.draw(st.booleans())
        x = np.random.default_rng(1).uniform(0.5, 2, shape).astype("float32")
        got = run(lambda a: getattr(topi, name)(a, axes, keepdims), x)
        want = REDUCTIONS[name](x, axis=axes, keepdims=keepdims)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    check()


@pytest.mark.parametrize(("name", "reference"), [("argmax", np.argmax), ("argmin", np.argmin)])
def test_positions_of_extremes(run, name, reference):
    x = np.random.default_rng(2).integers(0, 4, (5, 6, 3)).astype("float32")
    for axis in (None, 0, 1, -1):
        got = run(lambda a, axis=axis: getattr(topi, name)(a, axis), x)
        np.testing.assert_array_equal(got, reference(x, axis=axis))
    kept = run(lambda a: getattr(topi, name)(a, 1, keepdims=True), x)
    np.testing.assert_array_equal(kept, reference(x, axis=1, keepdims=True))
    last = run(lambda a: getattr(topi, name)(a, 1, select_last_index=True), x)
    np.testing.assert_array_equal(last, 5 - reference(x[:, ::-1], axis=1))
    alone = run(lambda a: getattr(topi, name)(a, ()), x)
    assert alone.dtype == np.int32 and not alone.any() and alone.shape == x.shape


def test_all_and_any(run, random):
    x = random(3, 4, dtype="bool")
    np.testing.assert_array_equal(run(lambda a: topi.all(a, 1), x), x.all(1))
    np.testing.assert_array_equal(run(lambda a: topi.any(a, 0), x), x.any(0))


def test_empty_sums(run):
    x = np.zeros((0, 3), "float32")
    assert run(lambda a: topi.sum(a, 0), x).tolist() == [0, 0, 0]
    assert run(lambda a: topi.sum(a, 1), x).shape == (0,)


@examples(25)
@given(st.permutations(range(4)), st.lists(st.integers(0, 4), min_size=4, max_size=4))
def test_transpose(order, shape):
    from tests.topi.conftest import run

    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    got = run(lambda a: topi.transpose(a, order), x)
    np.testing.assert_array_equal(got, x.transpose(order))


MOVES = [
    ("reshape", lambda a: topi.reshape(a, (6, 10)), lambda x: x.reshape(6, 10)),
    ("reshape -1", lambda a: topi.reshape(a, (2, -1, 2)), lambda x: x.reshape(2, -1, 2)),
    ("flatten", topi.nn.flatten, lambda x: x.reshape(3, 20)),
    ("reverse", topi.transpose, lambda x: x.T),
    ("expand_dims", lambda a: topi.expand_dims(a, 1, 2), lambda x: x[:, None, None]),
    ("expand_dims end", lambda a: topi.expand_dims(a, -1), lambda x: x[..., None]),
    ("squeeze", lambda a: topi.squeeze(topi.expand_dims(a, 1), 1), lambda x: x),
    ("squeeze all", lambda a: topi.squeeze(topi.expand_dims(a, 1, 2)), lambda x: x),
    ("tile", lambda a: topi.tile(a, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    ("tile more", lambda a: topi.tile(a, (2, 1, 1, 2)), lambda x: np.tile(x, (2, 1, 1, 2))),
    ("repeat", lambda a: topi.repeat(a, 2, 1), lambda x: x.repeat(2, 1)),
    ("flip", lambda a: topi.flip(a, -1), lambda x: x[..., ::-1]),
    ("tril", lambda a: topi.tril(a, 1), lambda x: np.tril(x, 1)),
    ("triu", lambda a: topi.triu(a, -1), lambda x: np.triu(x, -1)),
    ("layout", lambda a: topi.layout_transform(a, "HWC", "CHW"), lambda x: x.transpose(2, 0, 1)),
    (
        "layout of blocks",
        lambda a: topi.layout_transform(a, "CHW", "HCW2c"),
        lambda x: np.pad(x, ((0, 1), (0, 0), (0, 0))).reshape(2, 2, 4, 5).transpose(2, 0, 3, 1),
    ),
    (
        "layout without blocks",
        lambda a: topi.layout_transform(a, "CH5c", "HC"),
        lambda x: x.transpose(1, 0, 2).reshape(4, 15),
    ),
    (
        "strided_slice",
        lambda a: topi.strided_slice(a, [1, 5, 0], [3, -10, 5], [1, -2, 2]),
        lambda x: x[1:3, 5:-10:-2, 0:5:2],
    ),
    (
        "slice of an axis",
        lambda a: topi.strided_slice(a, [-3], [100], axes=[2]),
        lambda x: x[:, :, -3:100],
    ),
]


@pytest.mark.parametrize(
    ("operator", "reference"), [pair[1:] for pair in MOVES], ids=[pair[0] for pair in MOVES]
)
def test_moves(run, random, operator, reference):
    x = random(3, 4, 5)
    got, want = run(operator, x), reference(x)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def test_joining_and_taking_apart(run, random):
    a, b, c = random(2, 3), random(2, 1), random(2, 3)
    np.testing.assert_array_equal(
        run(lambda *x: topi.concatenate(x, -1), a, b, c), np.concatenate([a, b, c], -1)
    )
    np.testing.assert_array_equal(run(lambda *x: topi.stack(x, 1), a, c), np.stack([a, c], 1))
    wide = random(4, 7)
    for got, want in zip(
        run(lambda x: topi.split(x, (2, 3), 1), wide), np.split(wide, (2, 3), 1), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    halves = run(lambda x: topi.split(x, 2, 0), wide)
    np.testing.assert_array_equal(halves[1], wide[2:])


def test_taking_by_index(run, random):
    x, index = random(4, 5), np.array([[3, 0], [-1, 9]], "int32")
    inside = np.array([[3, 0], [1, 2]], "int64")
    np.testing.assert_array_equal(run(lambda a, i: topi.take(a, i, 0), x, inside), x[inside])
    np.testing.assert_array_equal(run(lambda a, i: topi.take(a, i, 1), x, inside), x[:, inside])
    np.testing.assert_array_equal(run(topi.take, x, inside), x.ravel()[inside])
    np.testing.assert_array_equal(
        run(lambda a, i: topi.take(a, i, 0, mode="clip"), x, index), x[index.clip(0, 3)]
    )
    np.testing.assert_array_equal(
        run(lambda a, i: topi.take(a, i, 0, mode="wrap"), x, index), x[index % 4]
    )
    along = np.array([[0, 3, 1, 2, 2]], "int64")
    np.testing.assert_array_equal(
        run(lambda a, i: topi.gather(a, 0, i), x, along), np.take_along_axis(x, along, 0)
    )
    hot = run(lambda i: topi.one_hot(i, 1.0, 0.0, 4, -1, "float32"), inside)
    np.testing.assert_array_equal(hot, np.eye(4, dtype="float32")[inside])


def test_ranges_and_grids(run):
    assert run(lambda: topi.arange(1, 10, 2, "int32")).tolist() == [1, 3, 5, 7, 9]
    assert run(lambda: topi.arange(5, dtype="int64")).tolist() == [0, 1, 2, 3, 4]
    assert run(lambda: topi.arange(3, 0, -1, "int32")).tolist() == [3, 2, 1]
    x, y = np.arange(3, dtype="float32"), np.arange(4, dtype="float32")
    for indexing in ("ij", "xy"):
        got = run(lambda a, b, kind=indexing: topi.meshgrid([a, b], kind), x, y)
        for one, want in zip(got, np.meshgrid(x, y, indexing=indexing), strict=True):
            np.testing.assert_array_equal(one, want)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda a: topi.reshape(a, (7, 3)), r"\(4, 5\) has 20 elements, \(7, 3\) has 21"),
        (lambda a: topi.reshape(a, (-1, -1)), "only one extent"),
        (lambda a: topi.transpose(a, (0, 0)), "does not name each"),
        (lambda a: topi.squeeze(a, 0), r"dimension 0 of \(4, 5\) is not 1"),
        (lambda a: topi.split(a, 0, 0), "cannot be cut in 0 parts"),
        (lambda a: topi.concatenate([a, topi.transpose(a)], 0), "Cannot join"),
        (lambda a: topi.sum(a, 2), r"sum: axis 2 of a tensor with 2 dimension\(s\)"),
        (lambda a: topi.sum(a, (0, -2)), "named twice"),
        (lambda a: topi.strided_slice(a, [0], [4], [0]), "stride is 0"),
        (lambda a: topi.layout_transform(a, "NCHW", "NCHW4c"), "no change of the layout"),
        (lambda a: topi.layout_transform(a, "HW", "WC"), "no change of the layout"),
        (lambda a: topi.arange(0, 5, 0), "step is not 0"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(TVMError, match=message):
        build(te.placeholder((4, 5), name="a"))
