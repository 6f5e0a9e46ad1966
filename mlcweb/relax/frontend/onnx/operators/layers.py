"""Products, convolutions and normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from mlcweb.relax import op
from mlcweb.relax.expr import Expr, TupleGetItem
from mlcweb.relax.frontend.common import CONVOLUTIONS, TRANSPOSED, per_channel, with_bias
from mlcweb.relax.frontend.onnx.arguments import axis_of, normalized
from mlcweb.relax.frontend.onnx.control import MAX_STEPS
from mlcweb.relax.frontend.onnx.node import Node, Value, converter
from mlcweb.relax.frontend.onnx.operators.elementwise import number
from mlcweb.relax.frontend.onnx.operators.windows import window
from mlcweb.tir.arithmetic import const
from mlcweb.tir.expr import PrimExpr

Builder = TypeVar("Builder")


@converter("MatMul")
def _matmul(node: Node) -> Expr:
    return op.matmul(node.tensor(0), node.tensor(1))


@converter("Gemm")
def _gemm(node: Node) -> Expr:
    a, b = node.tensor(0), node.tensor(1)
    a = op.permute_dims(a) if node.attrs.get("transA", 0) else a
    b = op.permute_dims(b) if node.attrs.get("transB", 0) else b
    alpha, beta = node.attrs.get("alpha", 1.0), node.attrs.get("beta", 1.0)
    result = op.matmul(a, b)
    if alpha != 1.0:
        result = result * number(node, alpha)
    if not node.has(2):
        return result
    bias = node.tensor(2)
    return result + (bias if beta == 1.0 else bias * number(node, beta))


@converter("Einsum")
def _einsum(node: Node) -> Expr:
    return op.einsum(node.tensors(), node.attrs["equation"])


@converter("Conv")
def _conv(node: Node) -> Expr:
    rank = node.ndim(0) - 2
    build = _rank(node, CONVOLUTIONS, rank)
    moved = window(node, node.static_shape(1)[2:])
    result = build(node.tensor(0), node.tensor(1), **moved, groups=node.attrs.get("group", 1))
    return with_bias(result, node.tensor(2) if node.has(2) else None, rank + 2)


@converter("ConvTranspose")
def _conv_transpose(node: Node) -> Expr:
    rank = node.ndim(0) - 2
    build = _rank(node, TRANSPOSED, rank)
    kernel, image = node.static_shape(1)[2:], node.shape(0)[2:]
    strides = node.attrs.get("strides", [1] * rank)
    dilation = node.attrs.get("dilations", [1] * rank)
    extra = node.attrs.get("output_padding", [0] * rank)
    pads = node.attrs.get("pads", [0] * 2 * rank)
    auto = node.attrs.get("auto_pad", "NOTSET")
    shape = node.attrs.get("output_shape")
    if shape is not None or auto.startswith("SAME"):
        node.static_shape(0, range(2, rank + 2))
        shape = shape or [n * s for n, s in zip(image, strides, strict=True)]
        pads = [0] * 2 * rank
        for i in range(rank):
            reach = strides[i] * (image[i] - 1) + extra[i] + (kernel[i] - 1) * dilation[i] + 1
            total = max(reach - shape[i], 0)
            extra[i] += max(shape[i] - reach, 0)
            small, large = total // 2, total - total // 2
            pads[i], pads[rank + i] = (small, large) if auto == "SAME_UPPER" else (large, small)
    result = build(
        node.tensor(0),
        node.tensor(1),
        strides=strides,
        padding=pads,
        output_padding=extra,
        dilation=dilation,
        groups=node.attrs.get("group", 1),
    )
    return with_bias(result, node.tensor(2) if node.has(2) else None, rank + 2)


def _rank(node: Node, builders: dict[int, Builder], rank: int) -> Builder:
    if rank not in builders:
        raise node.unsupported(f"{rank} spatial axes; there are {', '.join(map(str, builders))}")
    return builders[rank]


@converter("BatchNormalization")
def _batch_norm(node: Node) -> Value | list[Expr]:
    if node.attrs.get("training_mode", 0):
        return _batch_norm_of_batch(node)
    epsilon = node.attrs.get("epsilon", 1e-5)
    result = node.emit(op.nn.batch_norm(*node.tensors(), axis=1, epsilon=epsilon, training=False))
    return TupleGetItem(result, 0)


def _batch_norm_of_batch(node: Node) -> list[Expr]:
    """Normalised by the batch's own mean and variance, and the running ones after it."""
    ndim = node.ndim(0)
    axes = [axis for axis in range(ndim) if axis != 1]
    x, scale, bias, mean, variance = node.tensors()
    momentum = node.attrs.get("momentum", 0.9)
    now = node.emit(op.mean(x, axes)), node.emit(op.variance(x, axes))
    away = x - per_channel(now[0], ndim)
    epsilon = number(node, node.attrs.get("epsilon", 1e-5))
    inverse = node.emit(op.rsqrt(now[1] + epsilon))
    normal = away * per_channel(node.emit(inverse * scale), ndim)
    running = [
        old * node.const(momentum, node.info_of(old).dtype) + new * number(node, 1 - momentum)
        for old, new in zip((mean, variance), now, strict=True)
    ]
    return [normal + per_channel(bias, ndim), *running]


@converter("LayerNormalization")
def _layer_norm(node: Node) -> Expr | list[Expr]:
    x, ndim = node.tensor(0), node.ndim(0)
    axes = list(range(axis_of(node, -1, ndim), ndim))
    epsilon = node.attrs.get("epsilon", 1e-5)
    shape = [node.shape(0)[axis] for axis in axes]
    bias = node.tensor(2) if node.has(2) else op.zeros(shape, node.dtype(0))
    scale = node.tensor(1)
    if node.shape(1) != shape:
        scale = op.broadcast_to(scale, shape)
    result = op.nn.layer_norm(x, scale, bias, axes, epsilon)
    if len([name for name in node.outputs if name]) == 1:
        return result
    mean, inverse = moments(node, x, axes, epsilon)
    return [result, mean, inverse]


def moments(node: Node, x: Expr, axes: Sequence[int], epsilon: float) -> tuple[Expr, Expr]:
    """The mean over axes, and the inverse of the standard deviation."""
    mean = node.emit(op.mean(x, list(axes), keepdims=True))
    away = node.emit(x - mean)
    variance = op.mean(away * away, list(axes), keepdims=True)
    return mean, node.emit(op.rsqrt(variance + number(node, epsilon)))


@converter("InstanceNormalization")
def _instance_norm(node: Node) -> Expr:
    x, ndim = node.tensor(0), node.ndim(0)
    axes = list(range(2, ndim))
    mean, inverse = moments(node, x, axes, node.attrs.get("epsilon", 1e-5))
    scale, bias = (per_channel(node.tensor(index), ndim) for index in (1, 2))
    normal = (x - mean) * inverse
    return normal * scale + bias


@converter("GroupNormalization")
def _group_norm(node: Node) -> Expr:
    shape = node.shape(0)
    groups, channels = node.attrs["num_groups"], node.static_shape(0, [1])[0]
    split = [shape[0], groups, channels // groups, *shape[2:]]
    x = node.emit(op.reshape(node.tensor(0), split))
    axes = list(range(2, len(split)))
    mean, inverse = moments(node, x, axes, node.attrs.get("epsilon", 1e-5))
    normal = op.reshape((x - mean) * inverse, shape)
    scale, bias = node.tensor(1), node.tensor(2)
    if node.opset < 21:  # one number per group
        scale, bias = (op.repeat(value, channels // groups, 0) for value in (scale, bias))
    scale, bias = (per_channel(value, len(shape)) for value in (scale, bias))
    return normal * scale + bias


@converter("RMSNormalization")
def _rms_norm(node: Node) -> Expr:
    x, ndim = node.tensor(0), node.ndim(0)
    axes = list(range(axis_of(node, -1, ndim), ndim))
    square = op.mean(x * x, axes, keepdims=True)
    inverse = op.rsqrt(square + number(node, node.attrs.get("epsilon", 1e-5)))
    return x * inverse * node.tensor(1)


@converter("MeanVarianceNormalization")
def _mean_variance(node: Node) -> Expr:
    x, axes = node.tensor(0), node.attrs.get("axes", [0, 2, 3])
    mean = node.emit(op.mean(x, axes, keepdims=True))
    away = node.emit(x - mean)
    deviation = op.sqrt(op.mean(away * away, axes, keepdims=True))
    return away / (deviation + number(node, 1e-9))


@converter("LpNormalization")
def _lp_norm(node: Node) -> Expr:
    x, axis = node.tensor(0), axis_of(node, -1, node.ndim(0))
    if node.attrs.get("p", 2) == 1:
        norm = op.sum(op.abs(x), [axis], keepdims=True)
    else:
        norm = op.sqrt(op.sum(x * x, [axis], keepdims=True))
    norm, zero = node.emit(norm), number(node, 0)
    return op.where(op.equal(norm, zero), zero, x / norm)


@converter("LRN")
def _local_response(node: Node) -> Expr:
    """x / (bias + alpha / size * sum of squares of the neighbouring channels) ** beta."""
    x, size = node.tensor(0), node.attrs["size"]
    if not 0 < size <= MAX_STEPS:
        raise node.unsupported(f"{size} channels at a time; there can be 1 to {MAX_STEPS}")
    channels = node.static_shape(0, [1])[0]
    low, high = (size - 1) // 2, size - 1 - (size - 1) // 2
    widths = [0, 0, low, high] + [0, 0] * (node.ndim(0) - 2)
    squares = node.emit(op.nn.pad(x * x, widths))
    near = [op.strided_slice(squares, [1], [i], [i + channels]) for i in range(size)]
    total = near[0]
    for other in near[1:]:
        total = total + other
    scaled = total * number(node, node.attrs.get("alpha", 1e-4) / size)
    base = scaled + number(node, node.attrs.get("bias", 1.0))
    return x / base ** number(node, node.attrs.get("beta", 0.75))


@converter("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: Node) -> Expr:
    build = {
        "Softmax": op.nn.softmax,
        "LogSoftmax": op.nn.log_softmax,
        "Hardmax": partial(_hardmax, node),
    }[node.op_type]
    x, shape = node.tensor(0), node.shape(0)
    if node.opset >= 13:
        return build(x, normalized(node, node.attrs.get("axis", -1), len(shape)))
    axis = axis_of(node, 1, len(shape))
    if axis == len(shape) - 1:
        return build(x, axis)
    rows = node.emit(op.reshape(x, [*shape[:axis], -1]))  # all axes from this one on are one
    return op.reshape(build(rows, axis), shape)


def _hardmax(node: Node, x: Expr, axis: int) -> Expr:
    depth = node.shape_of(x)[axis]
    if isinstance(depth, PrimExpr):
        raise node.unsupported(f"the symbolic extent {depth} of axis {axis}")
    one, zero = (const(value, node.dtype(0)) for value in (1.0, 0.0))
    return op.one_hot(op.argmax(x, axis), one, zero, depth, axis)
