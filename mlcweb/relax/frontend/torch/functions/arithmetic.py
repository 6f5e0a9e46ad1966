"""Functions that work element by element, and the rules for mixing element types."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.frontend.torch.translator import (
    Number,
    Operand,
    TorchError,
    Translator,
    dtype_name,
    function,
)
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import floordiv
from mlcweb.tir.expr import PrimExpr

_ORDER = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
)  # fmt: skip


def promoted(t: Translator, *values: Operand) -> list[E.Expr]:
    """Operands as tensors of one element type. A number takes the type of the tensors, unless it
    is of a higher kind: a float makes integers float32."""
    tensors = [t.dtype(value) for value in values if isinstance(value, E.Expr)]
    dtype = max(tensors, key=_ORDER.index)
    for value in values:
        if isinstance(value, float) and not dtypes.is_float(dtype):
            dtype = "float32"
        if type(value) is int and dtype == "bool":
            dtype = "int64"
    return [_as(t, value, dtype) for value in values]


def _as(t: Translator, value: Operand, dtype: str) -> E.Expr:
    if not isinstance(value, E.Expr):
        return t.const(_number(value), dtype)
    return value if t.dtype(value) == dtype else op.astype(value, dtype)


def _number(value: Operand) -> Number:
    if not isinstance(value, (int, float)):
        raise TorchError(f"{value} is not a number")
    return value


_BINARY: dict[str, tuple[Callable[..., E.Expr], Callable[..., Any]]] = {
    "maximum": (op.maximum, max),
    "minimum": (op.minimum, min),
    "eq": (op.equal, operator.eq),
    "ne": (op.not_equal, operator.ne),
    "lt": (op.less, operator.lt),
    "le": (op.less_equal, operator.le),
    "gt": (op.greater, operator.gt),
    "ge": (op.greater_equal, operator.ge),
    "mul": (op.multiply, operator.mul),
    "floordiv": (op.floor_divide, operator.floordiv),
    "floor_divide": (op.floor_divide, operator.floordiv),
    "remainder": (op.floor_mod, operator.mod),
    "mod": (op.floor_mod, operator.mod),
    "fmod": (op.mod, operator.mod),
    "and": (op.logical_and, operator.and_),
    "or": (op.logical_or, operator.or_),
    "logical_and": (op.logical_and, operator.and_),
    "logical_or": (op.logical_or, operator.or_),
    "logical_xor": (op.logical_xor, operator.xor),
}
"""What is done to tensors, and to numbers (extents are computed with as well)."""


def _binary(name: str) -> None:
    build, compute = _BINARY[name]

    @function(name, {"and": "and_", "or": "or_"}.get(name, name), f"i{name}")
    def convert(t: Translator, input: Operand, other: Operand) -> Operand:
        if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
            if isinstance(input, PrimExpr) and compute is operator.floordiv:
                return floordiv(input, other)
            return compute(input, other)
        return build(*promoted(t, input, other))


for _name in _BINARY:
    _binary(_name)


@function("multiply")
def multiply(t: Translator, input: E.Expr, other: Operand) -> E.Expr:
    return op.multiply(*promoted(t, input, other))


def _scaled(t: Translator, value: Operand, alpha: Number) -> Operand:
    if alpha == 1:
        return value
    return op.multiply(*promoted(t, value, alpha)) if isinstance(value, E.Expr) else value * alpha


@function("add", "iadd")
def add(t: Translator, input: Operand, other: Operand, *, alpha: Number = 1) -> Operand:
    other = _scaled(t, other, alpha)
    if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
        return input + other
    return op.add(*promoted(t, input, other))


@function("sub", "isub", "subtract")
def sub(t: Translator, input: Operand, other: Operand, *, alpha: Number = 1) -> Operand:
    other = _scaled(t, other, alpha)
    if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
        return input - other
    return op.subtract(*promoted(t, input, other))


@function("rsub")
def rsub(t: Translator, input: E.Expr, other: Operand, alpha: Number = 1) -> E.Expr:
    return op.subtract(*promoted(t, other, _scaled(t, input, alpha)))


@function("div", "truediv", "true_divide", "divide", "itruediv")
def div(
    t: Translator, input: Operand, other: Operand, *, rounding_mode: str | None = None
) -> Operand:
    if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
        return input / other
    a, b = promoted(t, input, other)
    if rounding_mode == "floor":
        return op.floor_divide(a, b)
    if not dtypes.is_float(t.dtype(a)):
        if rounding_mode == "trunc":
            return op.divide(a, b)
        a, b = op.astype(a, "float32"), op.astype(b, "float32")
    return op.trunc(op.divide(a, b)) if rounding_mode else op.divide(a, b)


@function("pow")
def power(t: Translator, input: Operand, exponent: Operand) -> Operand:
    if not isinstance(input, E.Expr) and not isinstance(exponent, E.Expr):
        return operator.pow(input, exponent)
    if exponent == 2:
        return op.multiply(input, input)
    if exponent == 0.5:
        return op.sqrt(input)
    return op.power(*promoted(t, input, exponent))


_UNARY: dict[str, Callable[..., E.Expr]] = {
    "relu": op.nn.relu, "sigmoid": op.sigmoid, "tanh": op.tanh, "exp": op.exp, "log": op.log,
    "sqrt": op.sqrt, "rsqrt": op.rsqrt, "neg": op.negative, "abs": op.abs, "absolute": op.abs,
    "erf": op.erf, "sin": op.sin, "cos": op.cos, "tan": op.tan, "floor": op.floor, "ceil": op.ceil,
    "round": op.round, "square": op.square, "sign": op.sign, "logical_not": op.logical_not,
    "silu": op.nn.silu, "relu6": op.nn.relu6, "isnan": op.isnan, "trunc": op.trunc,
}  # fmt: skip


def _unary(name: str, build: Callable[..., E.Expr]) -> None:
    @function(name)
    def convert(t: Translator, input: E.Expr, inplace: bool = False) -> E.Expr:
        return build(input)


for _name, _build in _UNARY.items():
    _unary(_name, _build)


@function("reciprocal")
def reciprocal(t: Translator, input: E.Expr) -> E.Expr:
    return op.divide(t.const(1, t.dtype(input)), input)


@function("log1p")
def log1p(t: Translator, input: E.Expr) -> E.Expr:
    return op.log(op.add(input, t.const(1, t.dtype(input))))


@function("clamp", "clip", "hardtanh")
def clamp(
    t: Translator, input: E.Expr, min: Operand | None = None, max: Operand | None = None,
    inplace: bool = False, min_val: Operand | None = None, max_val: Operand | None = None,
) -> E.Expr:  # fmt: skip
    low, high = (min_val if min is None else min), (max_val if max is None else max)
    if (
        low is not None
        and high is not None
        and not isinstance(low, E.Expr)
        and not isinstance(high, E.Expr)
    ):
        return op.clip(input, low, high)
    if low is not None:
        input = op.maximum(*promoted(t, input, low))
    return input if high is None else op.minimum(*promoted(t, input, high))


@function("gelu")
def gelu(t: Translator, input: E.Expr, approximate: str = "none") -> E.Expr:
    return op.nn.gelu_tanh(input) if approximate == "tanh" else op.nn.gelu(input)


@function("leaky_relu")
def leaky_relu(
    t: Translator, input: E.Expr, negative_slope: float = 0.01, inplace: bool = False
) -> E.Expr:
    return op.nn.leakyrelu(input, negative_slope)


@function("elu")
def elu(t: Translator, input: E.Expr, alpha: float = 1.0, inplace: bool = False) -> E.Expr:
    dtype = t.dtype(input)
    below = op.exp(op.minimum(input, t.const(0, dtype)))
    below = op.multiply(op.subtract(below, t.const(1, dtype)), t.const(alpha, dtype))
    return op.add(op.nn.relu(input), below)


@function("softplus")
def softplus(t: Translator, input: E.Expr, beta: float = 1.0, threshold: float = 20.0) -> E.Expr:
    return op.nn.softplus(input, beta, threshold)


@function("hardsigmoid")
def hardsigmoid(t: Translator, input: E.Expr, inplace: bool = False) -> E.Expr:
    dtype = t.dtype(input)
    gate = op.clip(op.add(input, t.const(3, dtype)), 0, 6)
    return op.divide(gate, t.const(6, dtype))


@function("hardswish")
def hardswish(t: Translator, input: E.Expr, inplace: bool = False) -> E.Expr:
    return op.multiply(input, hardsigmoid(t, input))


@function("where")
def where(t: Translator, condition: E.Expr, input: Operand, other: Operand) -> E.Expr:
    if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
        dtype = "float32" if isinstance(input, float) or isinstance(other, float) else "int64"
        return op.where(condition, t.const(_number(input), dtype), t.const(_number(other), dtype))
    return op.where(condition, *promoted(t, input, other))


@function("masked_fill")
def masked_fill(t: Translator, input: E.Expr, mask: E.Expr, value: E.Expr | Number) -> E.Expr:
    fill = value if isinstance(value, E.Expr) else t.const(value, t.dtype(input))
    return op.where(mask, fill, input)


@function("to", "type", "_to_copy", "type_as")
def convert(t: Translator, input: E.Expr, *args: object, **kwargs: object) -> E.Expr:
    """A conversion to the element type among the arguments; devices are not told apart."""
    dtype = kwargs.get("dtype")
    for argument in args:
        if isinstance(argument, E.Expr):
            dtype = t.dtype(argument)
        elif str(argument).startswith("torch.") and "." not in str(argument)[6:]:
            dtype = argument
    return (
        _as(t, input, dtype_name(dtype)) if dtype in _ORDER or str(dtype)[6:] in _ORDER else input
    )


def _conversion(name: str, dtype: str) -> None:
    @function(name)
    def convert(t: Translator, input: E.Expr) -> E.Expr:
        return _as(t, input, dtype)


for _name, _dtype in (
    ("float", "float32"), ("half", "float16"), ("double", "float64"), ("long", "int64"),
    ("int", "int32"), ("bool", "bool"),
):  # fmt: skip
    _conversion(_name, _dtype)


@function("contiguous", "clone", "detach", "alias", "lift_fresh_copy", "dropout", "feature_dropout")
def same(t: Translator, input: E.Expr, *args: object, **kwargs: object) -> E.Expr:
    """What is no computation where a model is only run."""
    return input


@function("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size")
def nothing(t: Translator, *args: object, **kwargs: object) -> None:
    return None
