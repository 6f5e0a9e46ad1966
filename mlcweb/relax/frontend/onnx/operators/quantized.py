"""Operators on quantised tensors: x = (q - zero point) * scale."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import CONVOLUTIONS, Extent, per_channel
from mlcweb.relax.frontend.onnx.arguments import axis_of
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.frontend.onnx.operators.windows import window
from mlcweb.relax.frontend.onnx.tensors import dtype_name
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr


def _zero(node: Node, index: int, like: str, shape: Sequence[Extent] = ()) -> Expr:
    """A zero point that may be left out."""
    return node.tensor(index) if node.has(index) else op.zeros(list(shape), like)


def _spread(node: Node, value: Expr, ndim: int, axis: int) -> Expr:
    """A scale or zero point, to be broadcast against the tensor: vectors run along an axis, and
    what has as many dimensions as the tensor has an element for each block of it."""
    rank = node.info_of(value).ndim
    if rank == 1 and ndim > 1:
        if node.shape_of(value)[0] == 1:
            return node.emit(op.squeeze(value, [0]))
        value = op.expand_dims(value, [i for i in range(ndim) if i != axis])
        return node.emit(value)
    return value


def _blocks(node: Node, value: Expr, shape: list[Extent], axis: int) -> Expr:
    """A number for each block, repeated for each element of it."""
    size = node.attrs.get("block_size", 0)
    if not size or node.info_of(value).ndim != len(shape):
        return value
    repeated = node.emit(op.repeat(value, size, axis))
    extent, there = shape[axis], node.shape_of(repeated)[axis]
    if isinstance(there, PrimExpr) or there == extent:
        return repeated
    return node.emit(op.strided_slice(repeated, [axis], [0], [extent]))


def _parameters(node: Node, scale: int, zero: int, like: str) -> tuple[Expr, Expr]:
    """Scale and zero point of the first input, to be broadcast against it."""
    shape = node.shape(0)
    axis = axis_of(node, 1, len(shape)) if len(shape) > 1 else 0
    operands = []
    for index in (scale, zero):
        value = _zero(node, index, like, node.shape(scale)) if index == zero else (
            node.tensor(index))  # fmt: skip
        value = node.emit(value)
        value = _blocks(node, value, shape, axis)
        operands.append(_spread(node, value, len(shape), axis))
    return operands[0], operands[1]


def quantized(node: Node, x: Expr, scale: Expr, zero: Expr, dtype: str) -> Expr:
    """x / scale + zero, rounded to even and kept in the range of `dtype`."""
    wide = node.info_of(x).dtype
    moved = op.round(x / _as(node, scale, wide)) + _as(node, zero, wide)
    clipped = op.clip(moved, float(dtypes.min_value(dtype)), float(dtypes.max_value(dtype)))
    return op.astype(node.emit(clipped), dtype)


def _as(node: Node, value: Expr, dtype: str) -> Expr:
    return value if node.info_of(value).dtype == dtype else op.astype(value, dtype)


@converter("QuantizeLinear")
def _quantize_linear(node: Node) -> Expr:
    dtype = node.dtype(2) if node.has(2) else "uint8"
    if node.attrs.get("output_dtype"):
        dtype = dtype_name(node.attrs["output_dtype"], f"{node}: the result")
    if not dtypes.is_integer(dtype):
        raise node.unsupported(f"quantising to {dtype}")
    scale, zero = _parameters(node, 1, 2, dtype)
    x = node.tensor(0)
    precision = node.attrs.get("precision", 0)
    wide = dtype_name(precision, f"{node}: precision") if precision else "float32"
    x = x if node.dtype(0) == wide else node.emit(op.astype(x, wide))
    return quantized(node, x, scale, zero, dtype)


@converter("DequantizeLinear")
def _dequantize_linear(node: Node) -> Expr:
    scale, zero = _parameters(node, 1, 2, node.dtype(0))
    wide = node.dtype(1)
    if node.attrs.get("output_dtype"):
        wide = dtype_name(node.attrs["output_dtype"], f"{node}: the result")
    away = _as(node, node.tensor(0), "int32") - _as(node, zero, "int32")
    return op.astype(node.emit(away), wide) * _as(node, scale, wide)


@converter("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node) -> list[Expr]:
    x, zero = node.tensor(0), node.const(0.0, "float32")
    low = node.emit(op.minimum(op.min(x), zero))
    high = node.emit(op.maximum(op.max(x), zero))
    scale = node.emit((high - low) / node.const(255.0, "float32"))
    place = op.round(op.clip(op.negative(low / scale), 0.0, 255.0))
    offset = node.emit(op.astype(node.emit(place), "uint8"))
    return [node.emit(quantized(node, x, scale, offset, "uint8")), scale, offset]


def _wide(node: Node, index: int, zero: int, axis: int | None = None) -> Expr:
    """An input without its zero point, as int32."""
    x = node.emit(op.astype(node.tensor(index), "int32"))
    if not node.has(zero):
        return x
    offset = node.emit(op.astype(node.tensor(zero), "int32"))
    ndim = node.info_of(x).ndim
    if node.info_of(offset).ndim == 1:
        offset = _spread(node, offset, ndim, ndim - 2 if axis is None else axis)
    return node.emit(x - offset)


@converter("MatMulInteger")
def _matmul_integer(node: Node) -> Expr:
    columns = node.ndim(1) - 1
    return op.matmul(_wide(node, 0, 2), _wide(node, 1, 3, columns))


def _convolved(node: Node, data: Expr, weight: Expr) -> Expr:
    build = CONVOLUTIONS[node.info_of(data).ndim - 2]
    moved = window(node, node.shape_of(weight)[2:])
    return build(data, weight, **moved, groups=node.attrs.get("group", 1))


@converter("ConvInteger")
def _conv_integer(node: Node) -> Expr:
    return _convolved(node, _wide(node, 0, 2), _wide(node, 1, 3, 0))


def _requantized(node: Node, total: Expr, factor: Expr, scale: int, zero: int) -> Expr:
    """Sums of products as quantised numbers."""
    wide = node.emit(op.astype(total, "float32") * factor)
    return quantized(node, wide, node.tensor(scale), node.tensor(zero), node.dtype(zero))


@converter("QLinearMatMul")
def _qlinear_matmul(node: Node) -> Expr:
    columns = node.ndim(3) - 1
    total = node.emit(op.matmul(_wide(node, 0, 2), _wide(node, 3, 5, columns)))
    ndim = node.info_of(total).ndim
    scales = [
        _spread(node, node.emit(_as(node, node.tensor(index), "float32")), ndim, axis)
        for index, axis in ((1, ndim - 2), (4, ndim - 1))
    ]
    return _requantized(node, total, op.multiply(*scales), 6, 7)


@converter("QLinearConv")
def _qlinear_conv(node: Node) -> Expr:
    total = node.emit(_convolved(node, _wide(node, 0, 2), _wide(node, 3, 5, 0)))
    ndim = node.info_of(total).ndim
    if node.has(8):
        total = node.emit(total + per_channel(node.tensor(8), ndim))
    weights = node.tensor(4)
    if node.info_of(weights).ndim == 1:
        weights = _spread(node, weights, ndim, 1)
    return _requantized(node, total, node.tensor(1) * weights, 6, 7)
