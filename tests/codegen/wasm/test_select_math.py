"""Mathematical functions in WebAssembly: errors against extended precision, special values."""

import math

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb.script import from_source
from tests.codegen.compiled import BUILDERS, compiled

COUNT = 8193
"""So many arguments: vectors, and a last one that is computed alone."""

Long = np.longdouble

FUNCTIONS = {
    # name: (reference, range of arguments, error in ULP of float32 and of float64)
    "exp": (np.exp, (-100, 88), 1, 1),
    "exp2": (np.exp2, (-140, 127), 1, 1.1),
    "exp10": (lambda x: np.power(Long(10), x), (-40, 38), 0.6, 2),
    "log": (np.log, (1e-40, 1e30), 1, 1),
    "log2": (np.log2, (1e-30, 1e30), 0.6, 2),
    "log10": (np.log10, (1e-30, 1e30), 0.6, 2),
    "log1p": (np.log1p, (-0.99, 1e5), 0.6, 2),
    "sqrt": (np.sqrt, (0, 1e10), 0.5, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-10, 1e10), 1.5, 1.5),
    "sin": (np.sin, (-1e4, 1e4), 0.6, 2),
    "cos": (np.cos, (-1e4, 1e4), 0.6, 2),
    "tan": (np.tan, (-1e4, 1e4), 0.6, 3),
    "sinh": (np.sinh, (-80, 80), 0.6, 3),
    "cosh": (np.cosh, (-80, 80), 0.6, 3),
    "tanh": (np.tanh, (-12, 12), 2, 4),
    "asin": (np.arcsin, (-1, 1), 0.6, 3),
    "acos": (np.arccos, (-1, 1), 0.6, 3),
    "atan": (np.arctan, (-1e3, 1e3), 0.6, 1),
    "asinh": (np.arcsinh, (-1e4, 1e4), 0.6, 4),
    "acosh": (np.arccosh, (1, 1e6), 0.6, 4),
    "atanh": (np.arctanh, (-0.999, 0.999), 0.6, 4),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-60, 60), 3, 3),
    "erf": (lambda x: np.vectorize(math.erf)(x.astype(float)).astype(Long), (-5, 5), 2, 1.5),
}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-310, 700.0, -700.0)


def kernel(expression, dtype, count, inputs=1, target="wasm"):
    names = "ABCD"[: inputs + 1]
    parameters = ", ".join(f'{name}: T.Buffer(({count},), "{dtype}")' for name in names)
    return compiled(
        target,
        from_source(
            f"@T.prim_func\ndef main({parameters}):\n"
            '    T.func_attr({"tir.noalias": True})\n'
            f"    for i in range({count}):\n        {names[-1]}[i] = {expression}\n"
        ),
    )


def errors(result, reference):
    """The errors of results in units of the last place."""
    rounded = reference.astype(result.dtype)
    unit = np.spacing(np.abs(rounded)).astype(Long)
    with np.errstate(invalid="ignore"):
        distance = np.abs(result.astype(Long) - reference) / unit
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(np.isfinite(rounded) & np.isfinite(result), distance, np.where(same, 0, np.inf))


def arguments(low, high, dtype):
    random = np.random.default_rng(1)
    if low > 0:
        values = np.exp(random.uniform(np.log(low), np.log(high), COUNT))
    else:
        near_zero = random.normal(0, 0.5, COUNT // 2).clip(low, high)
        values = np.concatenate([near_zero, random.uniform(low, high, COUNT - COUNT // 2)])
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_stay_within_the_documented_bounds(name, dtype):
    reference, bounds, single, double = FUNCTIONS[name]
    x = arguments(*bounds, dtype)
    for target in BUILDERS:
        y = np.empty_like(x)
        kernel(f"T.{name}(A[i])", dtype, COUNT, target=target).run(x, y)
        worst = errors(y, reference(x.astype(Long))).max()
        assert worst <= (single if dtype == "float32" else double), target


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 4e-7), ("float64", 1e-14)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name, dtype, rtol):
    x = np.array(SPECIAL).astype(dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][0](x.astype(Long)).astype(dtype)
    for target in BUILDERS:
        y = np.empty_like(x)
        kernel(f"T.{name}(A[i])", dtype, len(x), target=target).run(x, y)
        np.testing.assert_allclose(y, expected, rtol=rtol, atol=1e-318, err_msg=target)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "reference"), [("pow", np.power), ("atan2", np.arctan2), ("hypot", np.hypot)]
)
def test_functions_of_two_arguments(name, reference, dtype):
    random = np.random.default_rng(2)
    x = random.uniform(-9, 9, COUNT).astype(dtype)
    y = random.integers(-9, 9, COUNT).astype(dtype)
    z = np.empty_like(x)
    kernel(f"T.{name}(A[i], B[i])", dtype, COUNT, inputs=2).run(x, y, z)
    with np.errstate(divide="ignore"):
        expected = reference(x.astype(Long), y.astype(Long))
    assert errors(z, expected).max() <= (0.6 if dtype == "float32" else 64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding(dtype):
    x = np.array([-2.5, -1.5, -0.5, -0.4, 0.0, 0.5, 1.5, 2.5, 2.4999, 1e30, -np.inf], dtype)
    for name, expected in {
        "floor": np.floor(x),
        "ceil": np.ceil(x),
        "trunc": np.trunc(x),
        "nearbyint": np.rint(x),
        "round": np.rint(x),
    }.items():
        y = np.empty_like(x)
        kernel(f"T.{name}(A[i])", dtype, len(x)).run(x, y)
        np.testing.assert_array_equal(y, expected)
