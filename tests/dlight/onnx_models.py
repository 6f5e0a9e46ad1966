"""Small ResNets and BERT encoders in ONNX with random weights, as PyTorch exports them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 9


@dataclass
class _Graph:
    """Nodes and weights under way; values are called by their names."""

    rng: np.random.Generator
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output, whose name is returned."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, array: Any, dtype: str = "float32") -> str:
        """An initializer."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def random(self, *shape: int, scale: float) -> str:
        """An initializer of normally distributed numbers."""
        return self.constant(self.rng.standard_normal(shape, "float32") * np.float32(scale))

    def model(self, inputs: list[Any], output: str, shape: tuple[int, ...]) -> ModelProto:
        """The model that returns one of the values."""
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "main", inputs, [result], self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def resnet(
    blocks: tuple[int, ...] = (3, 4, 6, 3),
    width: int = 64,
    size: int = 224,
    classes: int = 1000,
    batch: int = 1,
    seed: int = 0,
) -> ModelProto:
    """A ResNet of bottlenecks, its batch normalizations folded into the convolutions, as exported
    for inference: ResNet-50 by default.

    Args:
        blocks: bottlenecks of each stage.
        width: channels of the first convolution.
        size: height and width of the input "x", [batch, 3, size, size] float32.
    """
    graph = _Graph(np.random.default_rng(seed))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, 3, size, size))

    def convolution(data: str, source: int, target: int, kernel: int, stride: int = 1) -> str:
        weight = graph.random(
            target, source, kernel, kernel, scale=(2 / (source * kernel**2)) ** 0.5
        )
        bias = graph.random(target, scale=0.1)
        return graph.add(
            "Conv", data, weight, bias, kernel_shape=[kernel] * 2, strides=[stride] * 2,
            pads=[kernel // 2] * 4,
        )  # fmt: skip

    value = graph.add("Relu", convolution("x", 3, width, 7, 2))
    value = graph.add("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            inside = graph.add("Relu", convolution(value, channels, inner, 1))
            inside = graph.add("Relu", convolution(inside, inner, inner, 3, stride))
            inside = convolution(inside, inner, 4 * inner, 1)
            if not block:
                value = convolution(value, channels, 4 * inner, 1, stride)
            value = graph.add("Relu", graph.add("Add", inside, value))
            channels = 4 * inner
    value = graph.add("Flatten", graph.add("GlobalAveragePool", value), axis=1)
    weight = graph.random(classes, channels, scale=channels**-0.5)
    bias = graph.random(classes, scale=0.1)
    result = graph.add("Gemm", value, weight, bias, transB=1)
    return graph.model([x], result, (batch, classes))


def bert(
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    length: int = 128,
    vocabulary: int = 30522,
    batch: int = 1,
    seed: int = 0,
) -> ModelProto:
    """A BERT encoder: BERT-base by default. The input "ids" is [batch, length] int64; the output
    [batch, length, hidden] float32."""
    graph = _Graph(np.random.default_rng(seed))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, (batch, length))
    depth = hidden // heads

    def linear(value: str, source: int, target: int) -> str:
        weight = graph.random(source, target, scale=source**-0.5)
        return graph.add("Add", graph.add("MatMul", value, weight), graph.random(target, scale=0.1))

    def norm(value: str) -> str:
        scale, bias = graph.constant(np.ones(hidden)), graph.random(hidden, scale=0.1)
        return graph.add("LayerNormalization", value, scale, bias, axis=-1, epsilon=1e-12)

    def split(value: str, *order: int) -> str:
        shape = graph.constant([batch, length, heads, depth], "int64")
        return graph.add("Transpose", graph.add("Reshape", value, shape), perm=order)

    def attention(value: str) -> str:
        query, key, whole = (linear(value, hidden, hidden) for _ in range(3))
        scores = graph.add("MatMul", split(query, 0, 2, 1, 3), split(key, 0, 2, 3, 1))
        scaled = graph.add("Div", scores, graph.constant(depth**0.5))
        weights = graph.add("Softmax", scaled, axis=-1)
        mixed = graph.add("MatMul", weights, split(whole, 0, 2, 1, 3))
        ordered = graph.add("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = graph.add("Reshape", ordered, graph.constant([batch, length, hidden], "int64"))
        return linear(joined, hidden, hidden)

    def gelu(value: str) -> str:
        erf = graph.add("Erf", graph.add("Div", value, graph.constant(2**0.5)))
        product = graph.add("Mul", value, graph.add("Add", erf, graph.constant(1.0)))
        return graph.add("Mul", product, graph.constant(0.5))

    words = graph.random(vocabulary, hidden, scale=0.1)
    embedded = graph.add("Gather", words, "ids", axis=0)
    value = norm(graph.add("Add", embedded, graph.random(1, length, hidden, scale=0.1)))
    for _ in range(layers):
        value = norm(graph.add("Add", attention(value), value))
        inner = gelu(linear(value, hidden, 4 * hidden))
        value = norm(graph.add("Add", linear(inner, 4 * hidden, hidden), value))
    return graph.model([ids], value, (batch, length, hidden))
