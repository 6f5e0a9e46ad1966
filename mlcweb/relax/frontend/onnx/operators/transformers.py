"""Operators of onnxruntime's domain "com.microsoft" that transformers are made of."""

from __future__ import annotations

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.node import Node, Value, converter


@converter("com.microsoft.BiasGelu")
def _bias_gelu(node: Node) -> Expr:
    return op.nn.gelu(node.emit(node.tensor(0) + node.tensor(1)))


@converter("com.microsoft.FastGelu")
def _fast_gelu(node: Node) -> Expr:
    x = node.tensor(0)
    return op.nn.gelu_tanh(node.emit(x + node.tensor(1)) if node.has(1) else x)


def _layer_norm(node: Node, x: Expr, scale: int) -> Expr:
    """Over the last axis, by the inputs `scale` and, if there is one, the next."""
    gamma = node.tensor(scale)
    beta = node.tensor(scale + 1) if node.has(scale + 1) else op.zeros_like(gamma)
    return op.nn.layer_norm(x, gamma, beta, [-1], node.attrs.get("epsilon", 1e-12))


@converter("com.microsoft.SkipLayerNormalization")
def _skip_layer_norm(node: Node) -> list[Value]:
    """Gives the sum that is normalised as well; of mean and deviation nothing is computed."""
    if any(node.outputs[1:3]):
        raise node.unsupported("the mean and the deviation as outputs")
    total = node.tensor(0) + node.tensor(1)
    if node.has(4):
        total = total + node.tensor(4)
    total = node.emit(total)
    return [_layer_norm(node, total, 2), None, None, total]


@converter("com.microsoft.EmbedLayerNormalization")
def _embed_layer_norm(node: Node) -> list[Expr]:
    """Normalised sums of embeddings of words, positions and segments; how many words of the mask
    there are; and the sums."""
    words = node.tensor(0)
    batch, length = node.shape(0)
    total = op.take(node.tensor(2), words, 0)
    if node.has(8):
        places = op.take(node.tensor(3), node.tensor(8), 0)
    else:
        places = op.expand_dims(op.strided_slice(node.tensor(3), [0], [0], [length]), 0)
    total = total + places
    if node.has(1):
        total = total + op.take(node.tensor(4), node.tensor(1), 0)
    total = node.emit(total)
    count = op.sum(node.tensor(7), 1) if node.has(7) else op.zeros([batch], "int32")
    return [_layer_norm(node, total, 5), count, total]


@converter("com.microsoft.MatMulInteger16")
def _matmul_integer(node: Node) -> Expr:
    """The product of int16 or uint16 in 32 bits."""
    both = [node.dtype(0), node.dtype(1)]
    dtype = "uint32" if both == ["uint16", "uint16"] else "int32"
    a, b = (op.astype(node.tensor(index), dtype) for index in (0, 1))
    return op.matmul(a, b)
