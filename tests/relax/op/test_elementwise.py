"""Elementwise operators against NumPy: broadcasts, element types, tensors without elements."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from mlcweb import relax
from mlcweb.relax import op
from tests.strategies import examples

QUICK = settings(
    examples(2), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
SHAPES = mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4)

BINARY = {
    "add": (np.add, "float32"),
    "subtract": (np.subtract, "int32"),
    "multiply": (np.multiply, "float64"),
    "divide": (np.divide, "float32"),
    "floor_divide": (np.floor_divide, "int32"),
    "mod": (np.fmod, "int32"),
    "floor_mod": (np.mod, "int64"),
    "power": (np.power, "float32"),
    "maximum": (np.maximum, "float32"),
    "minimum": (np.minimum, "int32"),
    "atan2": (np.arctan2, "float32"),
    "log_add_exp": (np.logaddexp, "float32"),
    "equal": (np.equal, "int32"),
    "not_equal": (np.not_equal, "int32"),
    "less": (np.less, "float32"),
    "less_equal": (np.less_equal, "int32"),
    "greater": (np.greater, "float32"),
    "greater_equal": (np.greater_equal, "int32"),
    "logical_and": (np.logical_and, "bool"),
    "logical_or": (np.logical_or, "bool"),
    "logical_xor": (np.logical_xor, "bool"),
    "bitwise_and": (np.bitwise_and, "int32"),
    "bitwise_or": (np.bitwise_or, "int32"),
    "bitwise_xor": (np.bitwise_xor, "int64"),
    "left_shift": (np.left_shift, "int32"),
    "right_shift": (np.right_shift, "int32"),
}
POSITIVE_RIGHT = ("divide", "floor_divide", "mod", "floor_mod", "left_shift", "right_shift")


@pytest.mark.parametrize("name", BINARY)
@QUICK
@given(shapes=SHAPES)
def test_binary(name, shapes, check, random):
    reference, dtype = BINARY[name]
    a, b = (random(*shape, dtype=dtype) for shape in shapes.input_shapes)
    if name in POSITIVE_RIGHT:
        b = np.abs(b) % 7 + np.asarray(1, dtype)
    if name == "power":
        a = np.abs(a) + np.float32(0.5)
    if name == "left_shift":
        a = np.abs(a)
    check(getattr(op, name), [a, b], np.asarray(reference(a, b)))


def _erf(x):
    from math import erf

    return np.vectorize(erf, otypes=["float32"])(x)


UNARY = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": _erf, "exp": np.exp,
    "floor": np.floor, "negative": np.negative, "round": np.round, "sign": np.sign, "sin": np.sin,
    "sinh": np.sinh, "square": np.square, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "asinh": np.arcsinh, "atan": np.arctan, "isfinite": np.isfinite, "isinf": np.isinf,
    "isnan": np.isnan, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(3, 5), (0, 2)])
def test_unary(name, shape, check, random):
    x = random(*shape)
    check(getattr(op, name), [x], UNARY[name](x), rtol=2e-5)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("log", np.log), ("sqrt", np.sqrt), ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("acosh", lambda x: np.arccosh(1 + x)), ("asin", lambda x: np.arcsin(x / 4)),
        ("acos", lambda x: np.arccos(x / 4)), ("atanh", lambda x: np.arctanh(x / 4)),
    ],
)  # fmt: skip
def test_unary_on_a_part_of_the_numbers(name, reference, check, random):
    x = np.abs(random(4, 3)) + np.float32(0.1)
    inside = {"acosh": 1 + x, "asin": x / 4, "acos": x / 4, "atanh": x / 4}.get(name, x)
    check(getattr(op, name), [inside], reference(x), rtol=2e-5)


@pytest.mark.parametrize("name", ["abs", "negative", "sign", "square", "floor", "round", "trunc"])
def test_integers_too(name, check, random):
    x = random(6, dtype="int32")
    reference = {"floor": np.copy, "round": np.copy, "trunc": np.copy}.get(name) or UNARY[name]
    check(getattr(op, name), [x], reference(x))


def test_special_numbers(check):
    x = np.array([np.nan, np.inf, -np.inf, 0.0], "float32")
    for name in ("isnan", "isinf", "isfinite"):
        check(getattr(op, name), [x], UNARY[name](x))


def test_bits_and_truth(check, random):
    bits, truth = random(5, dtype="int32"), random(5, dtype="bool")
    check(op.bitwise_not, [bits], ~bits)
    check(op.logical_not, [truth], ~truth)


def test_clip_and_fma(check, random):
    x, y, z = random(3, 4), random(3, 4), random(3, 4)
    check(lambda v: op.clip(v, -0.5, 1), [x], np.clip(x, -0.5, 1))
    check(op.ewise_fma, [x, y, z], x * y + z)


def test_where_and_masks(check, random):
    mask, x, y = random(2, 1, dtype="bool"), random(3), random(2, 3)
    check(op.where, [mask, x, y], np.where(mask, x, y))
    full = random(2, 3, dtype="bool")
    check(lambda m, v: op.masked_fill(v, m, -1.0), [full, y], np.where(full, np.float32(-1), y))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "bool"])
def test_astype(dtype, check, random):
    x = random(4, 2) * 3
    check(lambda v: op.astype(v, dtype), [x], x.astype(dtype))


def test_types_of_results_have_their_full_names():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float16"))
    calls = [op.astype(x, "float"), op.arange(3, dtype="int"), op.matmul(x, x, out_dtype="float")]
    names = [call.attrs["out_dtype" if "out_dtype" in call.attrs else "dtype"] for call in calls]
    assert names == ["float32", "int32", "float32"]


def test_scalar_constants_are_written_into_the_function(check, random):
    x = random(2, 3)
    check(lambda v: v + relax.const(1.5), [x], x + np.float32(1.5))
    check(lambda v: relax.const(2.0) / (v * v + relax.const(1.0)), [x], 2 / (x * x + 1))
    check(lambda v: -v - relax.const([1.0, 2.0, 3.0]), [x], -x - np.float32([1, 2, 3]))
    module = relax.transform.LegalizeOps()(_sum_of_constants())
    assert len(module["add"].params) == 2


def _sum_of_constants():
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        builder.emit_func_output(builder.emit(op.add(relax.const(1.0), relax.const(2.0))))
    return builder.get()
