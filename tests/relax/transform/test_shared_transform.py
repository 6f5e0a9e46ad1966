"""One transformation of the weights that several functions have in common. Programs that TVM was
asked about are in passes/."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax.transform import LiftTransformParams
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_functions import EXTENT_OF_WEIGHT
from tests.relax.transform.running import flat

MODELS = """
@I.ir_module
class Module:
    @R.function
    def prefill(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((8, 4), "float32"),
        a: R.Tensor((8,), "float32"), unused: R.Tensor((8,), "float32"),
    ):
        R.func_attr({"num_input": 1})
        n = T.int64()
        with R.dataflow():
            t = R.permute_dims(w)
            y = R.matmul(x, t)
            z = R.add(y, R.exp(a))
            R.output(z)
        return z

    @R.function
    def decode(
        x: R.Tensor((1, 4), "float32"), s: R.Tensor((8,), "float32"),
        w: R.Tensor((8, 4), "float32"), a: R.Tensor((8,), "float32"),
        b: R.Tensor((8,), "float32"),
    ):
        R.func_attr({"num_input": 2})
        with R.dataflow():
            t = R.permute_dims(w)
            again = R.permute_dims(w)
            y = R.add(R.matmul(x, t), R.matmul(x, again))
            own = R.negative(b)
            z = R.add(R.multiply(y, s), own)
            R.output(z)
        return z
"""
rng = np.random.default_rng(1)
X, S, W = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((1, 4), (8,), (8, 4)))
A, B = (rng.uniform(-1, 1, 8).astype("float32") for _ in "ab")
PREFILL, DECODE = X @ W.T + np.exp(A), 2 * (X @ W.T) * S - B


def machine(mod: tvm.IRModule) -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(mod), tvm.cpu())


def arrays(*values: np.ndarray) -> list[tvm.nd.NDArray]:
    return [tvm.nd.array(value) for value in values]


@pytest.mark.parametrize("shared", [True, ["prefill", "decode"], ["decode", "prefill"]])
def test_all_functions_take_what_one_transformation_gives(shared) -> None:
    mod = LiftTransformParams(shared)(from_source(MODELS))
    assert {var.name_hint for var in mod.functions} == {"prefill", "decode", "transform_params"}
    for name in ("prefill", "decode"):
        assert "R.permute_dims" not in mod[name].script()
    vm = machine(mod)
    weights = [tvm.nd.array(value) for value in flat(vm["transform_params"](arrays(W, A, B)))]
    (prefill,) = flat(vm["prefill"](*arrays(X), *weights))
    (decode,) = flat(vm["decode"](*arrays(X, S), *weights))
    np.testing.assert_allclose(prefill, PREFILL, rtol=1e-5)
    np.testing.assert_allclose(decode, DECODE, rtol=1e-5)


def test_weights_of_symbolic_shapes_correspond() -> None:
    text = MODELS.replace("R.Tensor((8,", 'R.Tensor(("m",').replace(
        "        with R.dataflow()", "        m = T.int64()\n        with R.dataflow()"
    )
    mod = LiftTransformParams(True)(from_source(text))
    vm = machine(mod)
    weights = [tvm.nd.array(value) for value in flat(vm["transform_params"](arrays(W, A, B)))]
    (prefill,) = flat(vm["prefill"](*arrays(X), *weights))
    np.testing.assert_allclose(prefill, PREFILL, rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "shared", "message"),
    [
        ("unused: R.Tensor((8,)", "unused: R.Tensor((7,)", True, "have the same weights"),
        ('"num_input": 1', '"num_input": 2', True, "have the same weights"),
        ('"num_input": 2', '"other": 2', ["decode"], 'no function "decode".*it has prefill'),
        ("num_input", "other", True, "no function says"),
    ],
)
def test_functions_that_cannot_share_are_refused(old, new, shared, message) -> None:
    with pytest.raises(DiagnosticError, match=message):
        LiftTransformParams(shared)(from_source(MODELS.replace(old, new)))


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_lifted_later_follows_what_was_lifted_before(shared) -> None:
    """Where a mark keeps a value from being lifted, a second pass lifts what follows it."""
    text = MODELS.replace("t = R.permute_dims(w)", "t = R.builtin.stop_lift_params(w)").replace(
        "R.matmul(x, t)", "R.matmul(x, R.permute_dims(t))"
    )
    once = LiftTransformParams(shared)(from_source(text))
    mod = LiftTransformParams(shared)(once)
    assert len(mod.functions) == len(once.functions)
    assert "R.permute_dims" not in mod["prefill"].script()
    name = "transform_params" if shared else "prefill_transform_params"
    vm = machine(mod)
    weights = [tvm.nd.array(value) for value in flat(vm[name](arrays(W, A, B)))]
    (prefill,) = flat(vm["prefill"](*arrays(X), *weights))
    np.testing.assert_allclose(prefill, PREFILL, rtol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_extents_that_only_lifted_weights_define_are_passed_on(shared) -> None:
    mod = LiftTransformParams(shared)(from_source(EXTENT_OF_WEIGHT))
    vm = machine(mod)
    shape, *weights = vm["transform_params" if shared else "main_transform_params"](arrays(W))
    y, z = vm["main"](*arrays(X[0]), shape, *weights)
    np.testing.assert_allclose(y.numpy(), X[0] + W.sum(0), rtol=1e-5)
    assert z.numpy().tolist() == [1] * 8
