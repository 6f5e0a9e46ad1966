"""Operators of onnxruntime's domain "com.microsoft" that transformers are made of."""

from __future__ import annotations

import math

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import Extent
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


@converter("com.microsoft.Attention")
def _attention(node: Node) -> list[Expr]:
    """Of a sequence (batch, length, width) to itself: input 1 projects it to queries, keys and
    values side by side."""
    for index, name in ((4, "past"), (6, "past_sequence_length")):
        if node.has(index):
            raise node.unsupported(f"the input {name}")
    if node.attrs.get("do_rotary", 0):
        raise node.unsupported("do_rotary=1")
    batch, length, _ = node.shape(0)
    heads, dtype = node.attrs["num_heads"], node.dtype(0)
    (width,) = node.static_shape(1, [1])
    widths = node.attrs.get("qkv_hidden_sizes", [width // 3] * 3)
    if sum(widths) != width or widths[0] != widths[1] or any(each % heads for each in widths):
        raise node.wrong(f"weights of {width} columns are not those of {heads} heads of q, k and v")
    projected = op.matmul(node.tensor(0), node.tensor(1))
    if node.has(2):
        projected = projected + node.tensor(2)
    parts = node.fields(op.split(projected, [widths[0], 2 * widths[0]], 2), 3)
    q, k, v = (
        node.emit(op.permute_dims(op.reshape(x, [batch, length, heads, each // heads]), order))
        for x, each, order in zip(
            parts, widths, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True
        )
    )
    scale = node.attrs.get("scale", 0.0) or 1 / math.sqrt(widths[0] // heads)
    scores = op.matmul(q, k) * node.const(scale, dtype)
    if node.has(5):
        scores = scores + node.tensor(5)
    hidden = node.const(node.attrs.get("mask_filter_value", -10000.0), dtype)
    if node.has(3):
        scores = (
            scores
            + op.astype(node.const(1, node.dtype(3)) - _mask(node, [batch, length]), dtype) * hidden
        )
    if node.attrs.get("unidirectional", 0):
        seen = op.tril(op.ones([length, length], dtype))
        scores = scores + (node.const(1, dtype) - seen) * hidden
    result = op.matmul(op.nn.softmax(node.emit(scores), -1), v)
    return [op.reshape(op.permute_dims(result, [0, 2, 1, 3]), [batch, length, widths[2]])]


def _mask(node: Node, size: list[Extent]) -> Expr:
    """1 where a key is seen: of (batch, keys) or (batch, queries, keys), for all heads."""
    batch, length = size
    shape = node.shape(3)
    if len(shape) == 2:
        return op.reshape(node.tensor(3), [batch, 1, 1, length])
    if len(shape) == 3:
        return op.reshape(node.tensor(3), [batch, 1, length, length])
    raise node.unsupported(f"a mask of the shape {shape}; it must be (batch, keys) or (batch, "
                           "queries, keys)")  # fmt: skip


@converter("com.microsoft.MatMulInteger16")
def _matmul_integer(node: Node) -> Expr:
    """The product of int16 or uint16 in 32 bits."""
    both = [node.dtype(0), node.dtype(1)]
    dtype = "uint32" if both == ["uint16", "uint16"] else "int32"
    a, b = (op.astype(node.tensor(index), dtype) for index in (0, 1))
    return op.matmul(a, b)
