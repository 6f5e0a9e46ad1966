"""Whole networks with random weights give what onnxruntime gives."""

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend.onnx import from_onnx

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from tests.relax.frontend import onnx_models  # noqa: E402


def check(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, inputs)
    executable = relax.build(from_onnx(model), "llvm")
    machine = relax.VirtualMachine(executable, mlcweb.cpu())
    arguments = [mlcweb.nd.array(inputs[value.name]) for value in model.graph.input]
    results = machine["main"](*arguments)
    results = [results] if hasattr(results, "numpy") else list(results)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.numpy(), value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("network", "name"), [("resnet50", "data"), ("mobilenet_v2", "input.1")])
def test_a_network_for_images(network, name):
    model = getattr(onnx_models, network)(width=8, size=64, classes=20)
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64)).astype("float32")
    check(model, {name: image})


@pytest.mark.parametrize(("batch", "length"), [(2, 8), ("batch", 8), ("batch", "length")])
def test_bert_with_fixed_and_symbolic_extents(batch, length):
    model = onnx_models.bert(2, 32, 4, words=100, length=length, batch=batch)
    rng = np.random.default_rng(1)
    shape = (2 if batch == 2 else 3, 8)
    inputs = {
        "input_ids": rng.integers(0, 100, shape),
        "attention_mask": rng.integers(0, 2, shape) | (np.arange(8) == 0),
        "token_type_ids": rng.integers(0, 2, shape),
    }
    check(model, inputs)


def test_shapes_are_computed_when_a_model_is_imported():
    """Nothing is left of Shape, Gather and Concat but the extents."""
    text = from_onnx(onnx_models.bert(1, 32, 4, words=100, length=8)).script()
    assert "R.reshape(lv" in text and "R.shape([batch, 8, 4, 8])" in text
    assert "shape_of" not in text and "R.concat" not in text
