"""Sequences, optional values, and what onnxruntime adds to ONNX, give what onnxruntime gives."""

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend.onnx import OnnxError, OpNotImplemented, from_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MICROSOFT = "com.microsoft"


def model_of(nodes, inputs, outputs, weights=None):
    def info(name, array):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, array.shape)

    graph = helper.make_graph(
        nodes,
        "graph",
        [info(name, array) for name, array in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(nodes, inputs, outputs, weights=None):
    model = model_of(nodes, inputs, outputs, weights)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    machine = relax.VirtualMachine(relax.build(from_onnx(model), "llvm"), mlcweb.cpu())
    results = machine["main"](*[mlcweb.nd.array(array) for array in inputs.values()])
    results = [results] if hasattr(results, "numpy") else list(results)
    for result, value in zip(results, expected, strict=True):
        found = result.numpy()
        assert found.dtype == value.dtype and found.shape == value.shape
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
NUMBERS = {f"n{value}": np.int64(value) for value in (0, 1, 2, -1)}


def random(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("float32")


def test_a_sequence_that_is_made_and_changed():
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "y"], ["s"]),
        helper.make_node("SequenceInsert", ["s", "y", "n0"], ["s1"]),
        helper.make_node("SequenceInsert", ["s1", "x"], ["s2"]),
        helper.make_node("SequenceErase", ["s2", "n1"], ["s3"]),
        helper.make_node("SequenceErase", ["s3"], ["s4"]),
        helper.make_node("SequenceLength", ["s3"], ["length"]),
        helper.make_node("SequenceAt", ["s3", "n-1"], ["last"]),
        helper.make_node("ConcatFromSequence", ["s3"], ["joined"], axis=1),
        helper.make_node("ConcatFromSequence", ["s4"], ["stacked"], axis=-1, new_axis=1),
    ]
    outputs = {"length": INT, "last": FLOAT, "joined": FLOAT, "stacked": FLOAT}
    check(nodes, {"x": random(2, 3), "y": random(2, 3) + 1}, outputs, NUMBERS)


@pytest.mark.parametrize(
    ("split", "keepdims"), [(None, 0), (None, 1), (np.int64(2), 1), (np.array([1, 3, 1]), 1)]
)
def test_a_tensor_that_is_split(split, keepdims):
    names = ["x"] if split is None else ["x", "split"]
    nodes = [
        helper.make_node("SplitToSequence", names, ["s"], axis=1, keepdims=keepdims),
        helper.make_node("SequenceAt", ["s", "n-1"], ["last"]),
        helper.make_node("SequenceAt", ["s", "n1"], ["second"]),
    ]
    weights = NUMBERS if split is None else {**NUMBERS, "split": split}
    check(nodes, {"x": random(2, 5, 3)}, {"last": FLOAT, "second": FLOAT}, weights)


def test_an_empty_sequence():
    nodes = [
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("SequenceLength", ["none"], ["length"]),
        helper.make_node("SequenceInsert", ["none", "x"], ["one"]),
        helper.make_node("SequenceAt", ["one", "n0"], ["y"]),
    ]
    check(nodes, {"x": random(3)}, {"length": INT, "y": FLOAT}, NUMBERS)


def test_an_optional_value():
    nodes = [
        helper.make_node("Optional", ["x"], ["some"]),
        helper.make_node("OptionalHasElement", ["some"], ["there"]),
        helper.make_node("OptionalGetElement", ["some"], ["y"]),
    ]
    check(nodes, {"x": random(3)}, {"there": TensorProto.BOOL, "y": FLOAT})


def test_what_is_wrong_with_a_sequence():
    at = helper.make_node("SequenceAt", ["x", "n2"], ["y"])
    with pytest.raises(OnnxError, match="must be a sequence of tensors that the graph makes"):
        from_onnx(model_of([at], {"x": random(3)}, {"y": FLOAT}, NUMBERS))
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"]),
        helper.make_node("SequenceAt", ["s", "n2"], ["y"]),
    ]
    with pytest.raises(OnnxError, match="the position 2 is outside of a sequence of 1"):
        from_onnx(model_of(nodes, {"x": random(3)}, {"y": FLOAT}, NUMBERS))
    nodes[1] = helper.make_node("Relu", ["s"], ["y"])
    with pytest.raises(OnnxError, match="input 0 is a sequence; it must be a tensor"):
        from_onnx(model_of(nodes, {"x": random(3)}, {"y": FLOAT}))


def test_an_operator_that_is_not_there():
    node = helper.make_node("BiasGelus", ["x"], ["y"], domain=MICROSOFT)
    with pytest.raises(OpNotImplemented, match=r"not supported; there is com.microsoft.BiasGelu"):
        from_onnx(model_of([node], {"x": random(3)}, {"y": FLOAT}))


def microsoft(op_type, inputs, outputs, **attributes):
    return helper.make_node(op_type, inputs, outputs, domain=MICROSOFT, **attributes)


@pytest.mark.parametrize(
    ("name", "inputs"), [("BiasGelu", ["x", "b"]), ("FastGelu", ["x", "b"]), ("FastGelu", ["x"])]
)
def test_gelu_with_a_bias(name, inputs):
    arrays = {"x": random(2, 3, 8), "b": random(8)}
    given = {key: arrays[key] for key in inputs}
    check([microsoft(name, inputs, ["y"])], given, {"y": FLOAT})


@pytest.mark.parametrize("bias", [False, True])
def test_skip_layer_normalization(bias):
    arrays = {"x": random(2, 3, 8), "skip": random(2, 3, 8) * 2, "g": random(8), "b": random(8)}
    if bias:
        arrays["bias"] = random(8) - 1
    node = microsoft("SkipLayerNormalization", list(arrays), ["y", "", "", "sum"], epsilon=1e-5)
    check([node], arrays, {"y": FLOAT, "sum": FLOAT})


def test_embed_layer_normalization():
    ids = np.array([[1, 3, 0], [2, 2, 4]], "int32")
    arrays = {
        "ids": ids, "segments": ids % 2, "words": random(5, 8), "places": random(6, 8),
        "kinds": random(2, 8), "g": random(8), "b": random(8),
        "mask": np.array([[1, 1, 0], [1, 0, 0]], "int32"),
    }  # fmt: skip
    outputs = ["y", "count", "sum"]
    node = microsoft("EmbedLayerNormalization", list(arrays), outputs, epsilon=1e-5)
    check([node], arrays, {"y": FLOAT, "count": TensorProto.INT32, "sum": FLOAT})


def test_products_of_int16():
    a, b = (np.arange(-6, 6, dtype="int16").reshape(s) * 3 for s in ((3, 4), (4, 3)))
    check([microsoft("MatMulInteger16", ["a", "b"], ["y"])], {"a": a, "b": b},
          {"y": TensorProto.INT32})  # fmt: skip


def test_max_roi_pool():
    regions = np.array([[0, 0, 0, 5, 4], [0, 2, 1, 6, 6], [0, 3, 3, 3, 3]], "float32")
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 3], spatial_scale=1.0)
    check([node], {"x": random(1, 2, 7, 7), "r": regions}, {"y": FLOAT})


def test_boxes_are_chosen_when_the_model_runs():
    boxes = np.random.default_rng(2).random((2, 9, 4)).astype("float32")
    nodes = [helper.make_node("NonMaxSuppression", ["x", "s", "most", "iou", "least"], ["y"])]
    limits = {"most": np.array([4]), "iou": np.float32([0.3]), "least": np.float32([0.2])}
    scores = np.random.default_rng(3).random((2, 3, 9)).astype("float32")
    check(nodes, {"x": boxes, "s": scores}, {"y": INT}, limits)


LENGTHS = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "int32")


@pytest.mark.parametrize(
    ("optional", "attributes", "columns"),
    [
        ({}, {"unidirectional": 1}, 24),
        ({"mask": LENGTHS}, {"scale": 0.3}, 24),
        ({"mask": np.tril(np.ones((2, 4, 4), "int32"))}, {}, 24),
        ({"bias": random(2, 2, 4, 4)}, {}, 24),
        ({}, {"qkv_hidden_sizes": [8, 8, 12]}, 28),
    ],
)
def test_attention_of_a_sequence_to_itself(optional, attributes, columns):
    inputs = {"x": random(2, 4, 8), "w": random(8, columns), "b": random(columns), **optional}
    names = ["x", "w", "b", "mask" if "mask" in optional else "", "", "bias"]
    names = names if "bias" in optional else names[:4]
    node = helper.make_node("Attention", names, ["y"], domain=MICROSOFT, num_heads=2, **attributes)
    check([node], inputs, {"y": FLOAT})


def test_forms_of_attention_that_are_not_there():
    names = {"x": random(2, 4, 8), "w": random(8, 24), "b": random(24), "p": random(2, 2, 2, 1, 4)}
    node = helper.make_node(
        "Attention", ["x", "w", "b", "", "p"], ["y"], domain=MICROSOFT, num_heads=2
    )
    with pytest.raises(OpNotImplemented, match="the input past"):
        from_onnx(model_of([node], names, {"y": FLOAT}))
    node = helper.make_node("Attention", ["x", "w"], ["y"], domain=MICROSOFT, num_heads=5)
    with pytest.raises(OnnxError, match="24 columns are not those of 5 heads"):
        from_onnx(model_of([node], names, {"y": FLOAT}))
