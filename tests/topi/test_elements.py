"""Operators on elements against NumPy: many shapes, dtypes, broadcasts, no elements at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from mlcweb import TVMError, te, topi
from tests.strategies import examples

SHAPES = mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=4, min_side=0, max_side=5)


def numbers(shape, dtype, seed):
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.random(shape) < 0.5
    if dtype.startswith("float"):
        return generator.uniform(0.5, 4, shape).astype(dtype)
    return generator.integers(1, 12, shape).astype(dtype)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "greater": np.greater, "less_equal": np.less_equal,
    "equal": np.equal, "not_equal": np.not_equal, "floor_divide": np.floor_divide,
    "floor_mod": np.mod, "mod": np.fmod,
}  # fmt: skip
FLOAT_BINARY = {"divide": np.divide, "power": np.power, "log_add_exp": np.logaddexp}
BIT_BINARY = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
}  # fmt: skip
BOOL_BINARY = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
ALL_BINARY = [
    *((name, f, ("float32", "float64", "int32", "int64")) for name, f in BINARY.items()),
    *((name, f, ("float32", "float64")) for name, f in FLOAT_BINARY.items()),
    *((name, f, ("int32", "int64")) for name, f in BIT_BINARY.items()),
    *((name, f, ("bool",)) for name, f in BOOL_BINARY.items()),
]


@pytest.mark.parametrize(("name", "reference", "dtypes"), ALL_BINARY)
def test_binary_operators_broadcast_as_numpy_does(run, name, reference, dtypes):
    @examples(8)
    @given(SHAPES, st.sampled_from(dtypes), st.integers(0, 2**16))
    def check(shapes, dtype, seed):
        a, b = (numbers(shape, dtype, seed + i) for i, shape in enumerate(shapes.input_shapes))
        got = run(getattr(topi, name), a, b)
        want = reference(a, b)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    check()


UNARY = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "atan": np.arctan, "asinh": np.arcsinh, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "abs": np.abs, "negative": np.negative,
    "sign": np.sign, "square": np.square, "identity": lambda x: x, "log2": np.log2,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "isnan": np.isnan, "isfinite": np.isfinite,
    "isinf": np.isinf,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_operators(run, random, name):
    positive = name in ("log", "sqrt", "rsqrt", "log2")
    for shape in ((), (5,), (2, 3, 4), (0, 3)):
        x = random(*shape) * 3
        x = np.abs(x) + np.float32(0.1) if positive else x
        if name.startswith("is") and x.size > 3:
            x.flat[:3] = np.nan, np.inf, -np.inf
        got = run(getattr(topi, name), x)
        np.testing.assert_allclose(got, UNARY[name](x), rtol=3e-5, atol=1e-6)


def test_scalars_take_the_type_of_the_tensor(run, random):
    x = random(3, 4)
    np.testing.assert_array_equal(run(lambda a: a * 2 + 1.0, x), x * 2 + 1)
    np.testing.assert_array_equal(run(lambda a: 2.0 - a, x), 2 - x)
    whole = random(5, dtype="int32")
    assert run(lambda a: topi.add(a, 3), whole).dtype == np.int32
    np.testing.assert_array_equal(run(lambda a: -a, whole), -whole)


def test_clip_cast_full(run, random):
    x = random(4, 5) * 5
    np.testing.assert_array_equal(run(lambda a: topi.clip(a, -1, 2), x), x.clip(-1, 2))
    np.testing.assert_array_equal(run(lambda a: topi.cast(a, "int32"), x), x.astype("int32"))
    assert (run(lambda: topi.full((2, 3), "float32", 1.5)) == 1.5).all()
    assert (run(lambda a: topi.full_like(a, 7), x) == 7).all()


def test_where_and_broadcast_to(run, random):
    condition, x, y = random(3, 1, dtype="bool"), random(3, 4), random(4)
    got = run(topi.where, condition, x, y)
    np.testing.assert_array_equal(got, np.where(condition, x, y))
    np.testing.assert_array_equal(
        run(lambda a: topi.broadcast_to(a, (2, 3, 4)), y), np.broadcast_to(y, (2, 3, 4))
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda a, b: topi.add(a, b), r"add: the shapes \(4, 5\) and \(3,\) do not broadcast"),
        (lambda a, b: topi.broadcast_to(a, (5,)), r"\(4, 5\) does not broadcast to \(5,\)"),
        (lambda a, b: topi.where(a, a, b), "where: the shapes"),
        (lambda a, b: topi.all(a), "bool is expected"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(TVMError, match=message):
        build(te.placeholder((4, 5), name="a"), te.placeholder((3,), name="b"))
