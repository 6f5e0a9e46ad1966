"""Activation functions."""

from __future__ import annotations

import math

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import elementwise, shapes, tags
from mlcweb.topi.broadcast import maximum, minimum


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return elementwise.elementwise(
        x, lambda value: arithmetic.maximum(value, arithmetic.const(0, value.dtype))
    )


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where it is positive, alpha x elsewhere."""

    def element(value: PrimExpr) -> PrimExpr:
        zero = arithmetic.const(0, value.dtype)
        low = value * arithmetic.const(alpha, value.dtype)
        return arithmetic.select(value > zero, value, low)

    return elementwise.elementwise(x, element)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, slope x elsewhere; one slope per position along `axis`, or one for
    all."""
    place = shapes.axis_of("prelu", axis, x.ndim)
    if arithmetic.is_const_int(slope.shape[0], 1):
        each = slope
        slope = compute((x.shape[place],), lambda c: each(0), name="slope_broadcasted")

    def element(*index: PrimExpr) -> PrimExpr:
        value = x(*index)
        zero = arithmetic.const(0, value.dtype)
        return arithmetic.select(value > zero, value, value * slope(index[place]))

    return compute(x.shape, element, tag=tags.BROADCAST)


def gelu(x: Tensor) -> Tensor:
    """x Φ(x) with the normal distribution's Φ, by the error function (Hendrycks and Gimpel,
    "Gaussian Error Linear Units", 2016)."""
    scaled = x * math.sqrt(0.5)
    phi = 0.5 + elementwise.erf(scaled) * 0.5
    return x * phi


def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh approximation of `gelu`, from the same paper."""

    half = 0.5 * x
    scaled = math.sqrt(2 / math.pi) * x
    square = 0.044715 * x * x
    inner = scaled * (1.0 + square)
    return half * (1.0 + elementwise.tanh(inner))


def silu(x: Tensor) -> Tensor:
    """x sigmoid(x)."""
    return x * elementwise.sigmoid(x)


def selu(x: Tensor) -> Tensor:
    """λ x where x is positive, λ α (exp(x) - 1) elsewhere (Klambauer et al., "Self-Normalizing
    Neural Networks", 2017)."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805

    high = maximum(x, 0.0)
    low = alpha * (elementwise.exp(x) - 1.0)
    return scale * (high + minimum(0.0, low))


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""

    def element(value: PrimExpr) -> PrimExpr:
        b = arithmetic.const(beta, value.dtype)
        scaled = value * b
        one = arithmetic.const(1, value.dtype)
        low = intrinsics.log(one + intrinsics.exp(scaled)) / b
        limit = arithmetic.const(threshold, value.dtype)
        return arithmetic.select(scaled > limit, value, low)

    return elementwise.elementwise(x, element)


def hard_sigmoid(x: Tensor, alpha: float = 1 / 6, beta: float = 0.5) -> Tensor:
    """max(0, min(1, alpha x + beta))."""
    return elementwise.clip(x * alpha + beta, 0.0, 1.0)


def hard_swish(x: Tensor) -> Tensor:
    """x max(0, min(1, x / 6 + 1 / 2)) (Howard et al., "Searching for MobileNetV3", 2019)."""
    return x * hard_sigmoid(x)
