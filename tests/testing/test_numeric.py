"""Gradients and conditions checked by numbers; random arrays; what this machine has."""

import numpy as np
import pytest

from mlcweb import testing, tir
from mlcweb.tir import Range

x = np.array([[1.0, -2.0], [0.5, 3.0]])
w = np.array([2.0, -1.0])


def scaled(a, b):
    return float(((a * b) ** 3).sum())


GRADS = [3 * (x * w) ** 2 * w, (3 * (x * w) ** 2 * x).sum(0)]


def test_gradients_by_position_and_by_name():
    testing.check_numerical_grads(scaled, [x, w], GRADS)
    testing.check_numerical_grads(scaled, {"a": x, "b": w}, {"b": GRADS[1]}, scaled(x, w))


@pytest.mark.parametrize(
    ("grads", "error", "message"),
    [
        ([GRADS[0] * 1.3, GRADS[1]], AssertionError, "0 differ too much, at 4 of 4 elements"),
        ([GRADS[0][0]], AssertionError, r"has the shape \(2,\), and the input \(2, 2\)"),
        ([GRADS[0] * np.nan], ValueError, "NaN or infinity"),
    ],
)
def test_gradients_that_differ(grads, error, message):
    with pytest.raises(error, match=message):
        testing.check_numerical_grads(scaled, [x, w], grads)


def test_a_steep_function_needs_a_better_difference():
    steep = np.array([0.3])
    function = lambda a: float(np.exp(8 * a).sum())  # noqa: E731
    testing.check_numerical_grads(
        function, [steep], [8 * np.exp(8 * steep)], delta=0.2, atol=1e-3, rtol=0.05
    )
    with pytest.raises(AssertionError):
        testing.check_numerical_grads(function, [steep], [6 * np.exp(8 * steep)], rtol=0.05)


def test_a_condition_for_all_values():
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    ranges = {i: Range.from_min_extent(0, 10), j: Range.from_min_extent(2, 10)}
    testing.check_bool_expr_is_true(i > 2 * j, ranges, cond=2 * i > 4 * j)
    testing.check_bool_expr_is_true(i + j >= 2, ranges)
    with pytest.raises(AssertionError, match="Counterexample: i = 1, j = 2"):
        testing.check_bool_expr_is_true(i * j != 2, ranges)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_random_arrays_are_finite(dtype):
    array = testing.generate_random_array(dtype, (500, 3))
    assert array.shape == (500, 3) and array.dtype == dtype and np.isfinite(array).all()
    assert len(np.unique(array)) > 200
    with pytest.raises(ValueError, match='"float33" is no type'):
        testing.generate_random_array("float33", (2,))


def test_small_things():
    assert [testing.strtobool(text) for text in ("Yes", "off", "1")] == [1, 0, 1]
    with pytest.raises(ValueError, match="no truth value"):
        testing.strtobool("maybe")
    assert testing.identity_after(3, 0) == 3
    assert testing.run_with_gpu_lock(lambda a, b: a - b, 3, b=1) == 2
    assert testing.requires_package("numpy").args == (False,)
    assert testing.requires_package("no_such_package", "numpy").kwargs == {
        "reason": "needs no_such_package"
    }


def test_what_this_machine_has():
    assert testing.env.has_cublas() is False and testing.env.has_cuda_compute(9) is False
    assert isinstance(testing.env.has_gpu(), bool) and isinstance(testing.env.has_cuda(), bool)
    assert testing.env.build_flag_enabled("USE_LLVM") == testing.env.has_llvm()
