"""Activation functions."""

from __future__ import annotations

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import per_channel
from mlcweb.relax.frontend.torch.translator import Number, Translator, function


@function("gelu")
def gelu(t: Translator, input: Expr, approximate: str = "none") -> Expr:
    return op.nn.gelu_tanh(input) if approximate == "tanh" else op.nn.gelu(input)


@function("leaky_relu")
def leaky_relu(
    t: Translator, input: Expr, negative_slope: float = 0.01, inplace: bool = False
) -> Expr:
    return op.nn.leakyrelu(input, negative_slope)


@function("elu")
def elu(
    t: Translator, input: Expr, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0,
    inplace: bool = False,
) -> Expr:  # fmt: skip
    """scale x where x is positive, scale alpha (exp(input_scale x) - 1) elsewhere."""
    one, zero = (t.const(value, t.dtype(input)) for value in (1, 0))
    if input_scale == 1:
        below = t.const(-alpha, t.dtype(input)) * op.nn.relu(one - op.exp(input))
        return _scaled(t, below + op.nn.relu(input), scale)
    below = op.exp(_scaled(t, op.minimum(input, zero), input_scale)) - one
    return _scaled(t, op.nn.relu(input) + _scaled(t, below, alpha), scale)


def _scaled(t: Translator, value: Expr, factor: Number) -> Expr:
    if factor == 1:
        return value
    value = t.bound(value)
    return value * t.const(factor, t.dtype(value))


@function("celu")
def celu(t: Translator, input: Expr, alpha: float = 1.0, inplace: bool = False) -> Expr:
    """`elu` whose slope is 1 at 0 for every alpha."""
    return elu(t, input, alpha, input_scale=1 / alpha)


@function("prelu")
def prelu(t: Translator, input: Expr, weight: Expr) -> Expr:
    slope = per_channel(weight, t.ndim(input)) if t.ndim(input) > 1 else weight
    return op.where(input > t.const(0, t.dtype(input)), input, slope * input)


@function("softsign")
def softsign(t: Translator, input: Expr) -> Expr:
    return input / (op.abs(input) + t.const(1, t.dtype(input)))


@function("softshrink")
def softshrink(t: Translator, input: Expr, lambd: float = 0.5) -> Expr:
    """What is beyond -lambd and lambd, moved by that to 0."""
    return input - op.clip(input, -lambd, lambd)


@function("hardshrink")
def hardshrink(t: Translator, input: Expr, lambd: float = 0.5) -> Expr:
    zero = t.const(0, t.dtype(input))
    return op.where(op.abs(input) > t.const(lambd, t.dtype(input)), input, zero)


@function("tanhshrink")
def tanhshrink(t: Translator, input: Expr) -> Expr:
    return input - op.tanh(input)


@function("threshold", "_threshold")
def threshold(
    t: Translator, input: Expr, threshold: Number, value: Number, inplace: bool = False
) -> Expr:
    dtype = t.dtype(input)
    return op.where(input > t.const(threshold, dtype), input, t.const(value, dtype))


@function("logsigmoid", "log_sigmoid")
def logsigmoid(t: Translator, input: Expr) -> Expr:
    return op.negative(op.nn.softplus(-input))


@function("mish")
def mish(t: Translator, input: Expr, inplace: bool = False) -> Expr:
    return input * op.tanh(op.nn.softplus(input))


@function("glu")
def glu(t: Translator, input: Expr, dim: int = -1) -> Expr:
    halves = t.bound(op.split(input, 2, dim % t.ndim(input)))
    return halves[0] * op.sigmoid(halves[1])


@function("softplus")
def softplus(t: Translator, input: Expr, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    return op.nn.softplus(input, beta, threshold)


@function("hardsigmoid")
def hardsigmoid(t: Translator, input: Expr, inplace: bool = False) -> Expr:
    dtype = t.dtype(input)
    gate = op.clip(input + t.const(3, dtype), 0, 6)
    return gate / t.const(6, dtype)


@function("hardswish")
def hardswish(t: Translator, input: Expr, inplace: bool = False) -> Expr:
    return input * hardsigmoid(t, input)
