"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.arguments import axis_of, cast_dtype
from mlcweb.relax.frontend.onnx.known import as_known
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.tir import dtype as dtypes

_UNARY: dict[str, Callable[..., Expr]] = {
    "Abs": op.abs, "Neg": op.negative, "Sqrt": op.sqrt, "Exp": op.exp, "Log": op.log,
    "Erf": op.erf, "Tanh": op.tanh, "Sigmoid": op.sigmoid, "Relu": op.nn.relu,
    "Floor": op.floor, "Ceil": op.ceil, "Round": op.round, "Sign": op.sign, "Not": op.logical_not,
    "Sin": op.sin, "Cos": op.cos, "Tan": op.tan, "Sinh": op.sinh, "Cosh": op.cosh,
    "Asin": op.asin, "Acos": op.acos, "Atan": op.atan, "Asinh": op.asinh, "Acosh": op.acosh,
    "Atanh": op.atanh, "IsNaN": op.isnan, "BitwiseNot": op.bitwise_not, "Identity": lambda x: x,
}  # fmt: skip

_BINARY: dict[str, Callable[..., Expr]] = {
    "Add": op.add, "Sub": op.subtract, "Mul": op.multiply, "Div": op.divide,
    "Equal": op.equal, "Less": op.less, "LessOrEqual": op.less_equal, "Greater": op.greater,
    "GreaterOrEqual": op.greater_equal, "And": op.logical_and, "Or": op.logical_or,
    "Xor": op.logical_xor, "BitwiseAnd": op.bitwise_and, "BitwiseOr": op.bitwise_or,
    "BitwiseXor": op.bitwise_xor,
}  # fmt: skip

_VARIADIC: dict[str, Callable[..., Expr]] = {
    "Max": op.maximum,
    "Min": op.minimum,
    "Sum": op.add,
}


def number(node: Node, value: float, index: int = 0) -> Expr:
    """A constant scalar of the type of an input."""
    return node.const(value, node.dtype(index))


@converter(*_UNARY)
def _unary(node: Node) -> Expr:
    return _UNARY[node.op_type](node.tensor(0))


@converter(*_BINARY)
def _binary(node: Node) -> Expr:
    return _BINARY[node.op_type](*operands(node))


def operands(node: Node) -> tuple[Expr, Expr]:
    """Two inputs to be broadcast; before opset 7 the second one from the attribute `axis` on."""
    a, b = node.tensor(0), node.tensor(1)
    if node.opset < 7 and node.attrs.get("broadcast") and "axis" in node.attrs:
        behind = node.ndim(0) - axis_of(node, 0, node.ndim(0)) - node.ndim(1)
        if behind:
            b = op.expand_dims(b, [node.ndim(1) + i for i in range(behind)])
    return a, b


@converter(*_VARIADIC, "Mean")
def _variadic(node: Node) -> Expr:
    inputs = node.tensors()
    if node.op_type == "Mean":
        return reduce(op.add, inputs) * number(node, 1 / len(inputs))
    return reduce(_VARIADIC[node.op_type], inputs)


@converter("Pow")
def _power(node: Node) -> Expr:
    base, exponent = operands(node)
    dtype, other = node.dtype(0), node.dtype(1)
    exponents = as_known(exponent)
    if exponents is not None and exponents.elements == (2,):
        return base * base
    if dtype == other and dtypes.is_float(dtype):
        return base**exponent
    wide = dtype if dtypes.is_float(dtype) else other if dtypes.is_float(other) else "float64"
    power = op.astype(base, wide) ** op.astype(exponent, wide)
    return op.astype(power if dtypes.is_float(dtype) else op.round(power), dtype)


@converter("Mod")
def _modulus(node: Node) -> Expr:
    """The remainder with the sign of the dividend (fmod=1), or with that of the divisor. Of floats
    the latter comes from the former, so that it is right for infinities as well."""
    a, b = operands(node)
    if node.attrs.get("fmod", 0):
        return op.mod(a, b)
    if not dtypes.is_float(node.dtype(0)):
        return op.floor_mod(a, b)
    rest, zero = node.emit(op.mod(a, b)), number(node, 0)
    other = op.not_equal(rest < zero, b < zero)
    return op.where(op.logical_and(op.not_equal(rest, zero), other), rest + b, rest)


@converter("BitShift")
def _bit_shift(node: Node) -> Expr:
    """Bits that are shifted by the width of the type or more (or by less than 0) all leave."""
    x, by, dtype = node.tensor(0), node.tensor(1), node.dtype(0)
    left = node.attrs["direction"] == "LEFT"
    width, none = node.const(dtypes.bits(dtype), dtype), node.const(0, dtype)
    inside = by < width
    signed = not dtype.startswith("uint")
    if signed:
        inside = op.logical_and(inside, by >= none)
    inside = node.emit(inside)
    by = op.where(inside, by, none)
    shifted = op.left_shift(x, by) if left else op.right_shift(x, by)
    sign = op.right_shift(x, node.const(dtypes.bits(dtype) - 1, dtype)) if signed else none
    return op.where(inside, shifted, none if left else sign)


@converter("IsInf")
def _is_infinite(node: Node) -> Expr:
    x, infinity = node.tensor(0), number(node, math.inf)
    positive, negative = node.attrs.get("detect_positive", 1), node.attrs.get("detect_negative", 1)
    if positive and negative:
        return op.isinf(x)
    if not positive and not negative:
        return op.not_equal(op.isinf(x), op.isinf(x))
    return op.equal(x, infinity if positive else number(node, -math.inf))


@converter("Reciprocal")
def _reciprocal(node: Node) -> Expr:
    return number(node, 1.0) / node.tensor(0)


@converter("Cast")
def _cast(node: Node) -> Expr:
    return _converted(node, cast_dtype(node))


@converter("BitCast")
def _bit_cast(node: Node) -> Expr:
    """The same bits as another type of the same width."""
    from mlcweb import topi

    dtype = cast_dtype(node)
    if "bool" in (dtype, node.dtype(0)):
        raise node.unsupported("the bits of bool")
    if dtypes.bits(dtype) != dtypes.bits(node.dtype(0)):
        raise node.wrong(f"{dtype} and {node.dtype(0)} have different widths")
    return node.builder.emit_te(topi.reinterpret, node.tensor(0), dtype)


@converter("CastLike")
def _cast_like(node: Node) -> Expr:
    return _converted(node, node.dtype(1))


def _converted(node: Node, dtype: str) -> Expr:
    x = node.tensor(0)
    if dtype == "bool" and node.dtype(0) != "bool":
        return op.not_equal(x, number(node, 0))
    return x if node.dtype(0) == dtype else op.astype(x, dtype)


@converter("Where")
def _where(node: Node) -> Expr:
    return op.where(*node.tensors())


@converter("Clip")
def _clip(node: Node) -> Expr:
    x = node.tensor(0)
    if node.opset < 11:
        low, high = node.attrs.get("min"), node.attrs.get("max")
    else:
        bounds = [node.known(index) for index in (1, 2)]
        if any(node.has(i) and not value for i, value in zip((1, 2), bounds, strict=True)):
            bounded = op.maximum(x, node.tensor(1)) if node.has(1) else x
            return op.minimum(bounded, node.tensor(2)) if node.has(2) else bounded
        low, high = (value.elements[0] if value else None for value in bounds)
    if low is not None and high is not None:
        return op.minimum(op.maximum(x, number(node, low)), number(node, high)) if (
            low > high
        ) else op.clip(x, low, high)  # fmt: skip
    if low is not None:
        return op.maximum(x, number(node, low))
    return x if high is None else op.minimum(x, number(node, high))


# Activations


@converter("LeakyRelu")
def _leaky_relu(node: Node) -> Expr:
    return op.nn.leakyrelu(node.tensor(0), node.attrs.get("alpha", 0.01))


@converter("PRelu")
def _prelu(node: Node) -> Expr:
    x, slope = operands(node)
    if node.opset < 7 and node.ndim(1) == 1 and node.ndim(0) > 2:  # a slope per channel
        slope = op.expand_dims(slope, [1 + i for i in range(node.ndim(0) - 2)])
    return op.where(x < number(node, 0), x * slope, x)


@converter("Elu", "Celu", "Selu")
def _exponential_linear(node: Node) -> Expr:
    """max(x, 0) + a (exp(min(x, 0) / b) - 1), times a factor."""
    x, zero = node.tensor(0), number(node, 0)
    alpha = node.attrs.get("alpha", 1.67326319217681884765625 if node.op_type == "Selu" else 1.0)
    factor = node.attrs.get("gamma", 1.05070102214813232421875) if node.op_type == "Selu" else 1.0
    below = op.minimum(x, zero)
    if node.op_type == "Celu":
        below = below / number(node, alpha)
    below = (op.exp(below) - number(node, 1)) * number(node, alpha)
    result = op.maximum(x, zero) + below
    return result if factor == 1.0 else result * number(node, factor)


@converter("ThresholdedRelu")
def _thresholded_relu(node: Node) -> Expr:
    x = node.tensor(0)
    return op.where(x > number(node, node.attrs.get("alpha", 1.0)), x, number(node, 0))


@converter("HardSigmoid", "HardSwish")
def _hard_sigmoid(node: Node) -> Expr:
    x = node.tensor(0)
    swish = node.op_type == "HardSwish"
    alpha = 1 / 6 if swish else node.attrs.get("alpha", 0.2)
    beta = 0.5 if swish else node.attrs.get("beta", 0.5)
    line = x * number(node, alpha) + number(node, beta)
    gate = op.clip(line, 0, 1)
    return x * gate if swish else gate


@converter("Softplus")
def _softplus(node: Node) -> Expr:
    return _soft(node, node.tensor(0))


def _soft(node: Node, x: Expr) -> Expr:
    """log(1 + exp(x)), without overflow."""
    tail = op.log(op.exp(op.negative(op.abs(x))) + number(node, 1))
    return op.maximum(x, number(node, 0)) + tail


@converter("Mish")
def _mish(node: Node) -> Expr:
    x = node.tensor(0)
    return x * op.tanh(_soft(node, x))


@converter("Softsign")
def _softsign(node: Node) -> Expr:
    x = node.tensor(0)
    return x / (op.abs(x) + number(node, 1))


@converter("Swish")
def _swish(node: Node) -> Expr:
    x, alpha = node.tensor(0), node.attrs.get("alpha", 1.0)
    scaled = x if alpha == 1.0 else x * number(node, alpha)
    return x * op.sigmoid(scaled)


@converter("Shrink")
def _shrink(node: Node) -> Expr:
    x, bias, limit = node.tensor(0), node.attrs.get("bias", 0.0), node.attrs.get("lambd", 0.5)
    bias = number(node, bias)
    low = op.where(x < number(node, -limit), x + bias, number(node, 0))
    return op.where(x > number(node, limit), x - bias, low)


@converter("Gelu", "com.microsoft.Gelu")
def _gelu(node: Node) -> Expr:
    tanh = node.attrs.get("approximate", "none") == "tanh"
    return (op.nn.gelu_tanh if tanh else op.nn.gelu)(node.tensor(0))


@converter("Dropout")
def _dropout(node: Node) -> Expr | list[Expr]:
    """Nothing is dropped where a model is run."""
    if node.has(2) and node.number(2, "training_mode"):
        raise node.unsupported("training_mode is true")
    if len(node.outputs) == 1:
        return node.tensor(0)
    return [node.tensor(0), op.ones(node.shape(0), "bool")]
