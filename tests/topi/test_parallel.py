"""Sorts and running results in the form for GPUs, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, topi
from mlcweb.script import relax as R


@pytest.fixture
def on_gpu(run):
    """Operators as they are for a GPU, run on the processor."""

    def checked(operator, *arrays):
        with tvm.target.Target("webgpu"):
            return run(operator, *arrays)

    return checked


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_sorts(on_gpu, dtype, is_ascend, axis):
    x = np.random.default_rng(1).integers(-4, 5, (7, 33)).astype(dtype)
    if dtype == "float32":
        x[2, 3] = x[2, 9] = x[5, 3] = np.nan
    bits = x if is_ascend else np.where(np.isnan(x), -np.inf, -x) if dtype == "float32" else -x
    want = np.argsort(bits, axis=axis, kind="stable")
    got = on_gpu(lambda a: topi.argsort(a, None, axis, is_ascend, "int32"), x)
    np.testing.assert_array_equal(got, want)
    got = on_gpu(lambda a: topi.sort(a, axis, is_ascend), x)
    np.testing.assert_array_equal(got, np.take_along_axis(x, want, axis))
    values, places = on_gpu(lambda a: topi.topk(a, 3, axis, "both", is_ascend, "int64"), x)
    np.testing.assert_array_equal(places, want.take(range(3), axis))
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis).take(range(3), axis))


def test_sorts_of_the_first_elements(on_gpu, run):
    x = np.random.default_rng(2).integers(0, 9, (4, 12)).astype("float32")
    count = np.array([0, 12, 5, 1], "int32")
    operator = lambda a, c: topi.argsort(a, c, 1, True, "int32")  # noqa: E731
    np.testing.assert_array_equal(on_gpu(operator, x, count), run(operator, x, count))


@pytest.mark.parametrize("extent", [1, 5, 128, 129, 700])
@pytest.mark.parametrize("exclusive", [True, False])
def test_running_sums(on_gpu, extent, exclusive):
    x = np.random.default_rng(3).integers(-9, 10, (2, extent, 3)).astype("int32")
    got = on_gpu(lambda a: topi.cumsum(a, 1, "int64", exclusive), x)
    want = x.cumsum(1, "int64")
    np.testing.assert_array_equal(got, want - x if exclusive else want)


def test_running_products(on_gpu):
    x = np.random.default_rng(4).uniform(0.9, 1.1, 300).astype("float32")
    np.testing.assert_allclose(on_gpu(topi.cumprod, x), x.cumprod(), rtol=1e-5)


@pytest.mark.parametrize("target", ["cuda", "webgpu"])
def test_a_model_for_a_gpu_sorts(target):
    @tvm.script.ir_module
    class Model:
        @R.function
        def main(x: R.Tensor(("n", 40), "float32")):
            with R.dataflow():
                order = R.argsort(x, axis=-1, descending=True, dtype="int32")
                sums = R.cumsum(x, axis=1)
                best = R.topk(x, 2, axis=1, ret_type="values", largest=True)
                result = order, sums, best
                R.output(result)
            return result

    x = np.random.default_rng(5).random((3, 40), "float32")
    device = tvm.device(target)
    machine = relax.VirtualMachine(relax.build(Model, target), device)
    order, sums, best = machine["main"](tvm.nd.array(x, device))
    np.testing.assert_array_equal(order.numpy(), np.argsort(-x, axis=1, kind="stable"))
    np.testing.assert_allclose(sums.numpy(), x.cumsum(1), rtol=1e-5)
    np.testing.assert_array_equal(best.numpy(), -np.sort(-x, axis=1)[:, :2])
