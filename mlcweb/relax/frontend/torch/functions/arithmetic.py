"""Functions that work element by element, and the rules for mixing element types."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.frontend.torch.translator import (
    Number,
    Operand,
    TorchError,
    Translator,
    function,
)
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import floordiv, floormod, maximum, minimum
from mlcweb.tir.expr import PrimExpr

_KINDS = (
    ("bool",),
    ("uint8", "int8", "int16", "int32", "int64"),
    ("float16", "bfloat16", "float32", "float64"),
)
"""Element types, in ascending order."""

DTYPES = tuple(dtype for kind in _KINDS for dtype in kind)


def promoted(t: Translator, *values: Operand) -> list[E.Expr]:
    """Operands as tensors of one element type, by PyTorch's rules: that of the tensors with
    dimensions; those without any, and numbers after them, count only where they are of a higher
    kind, as a float among integers is."""
    values = tuple(t.bound(value) for value in values)
    tensors = [value for value in values if isinstance(value, E.Expr)]
    levels = [
        [t.dtype(value) for value in tensors if t.ndim(value)],
        [t.dtype(value) for value in tensors if not t.ndim(value)],
        [_of_number(value) for value in values if not isinstance(value, E.Expr)],
    ]
    dtype = ""
    for level in filter(None, levels):
        other = _common(level)
        dtype = other if not dtype or _kind(other) > _kind(dtype) else dtype
    return [as_type(t, value, dtype) for value in values]


def _kind(dtype: str) -> int:
    return next(place for place, kind in enumerate(_KINDS) if dtype in kind)


def _of_number(value: Operand) -> str:
    if isinstance(value, bool):
        return "bool"
    return "float32" if isinstance(value, float) else "int64"


def _common(operand_dtypes: Sequence[str]) -> str:
    """The least element type that has the values of all."""
    for pair, both in ((("uint8", "int8"), "int16"), (("float16", "bfloat16"), "float32")):
        if all(dtype in operand_dtypes for dtype in pair):
            operand_dtypes = [*operand_dtypes, both]
    return max(operand_dtypes, key=DTYPES.index)


def as_type(t: Translator, value: Operand, dtype: str) -> E.Expr:
    """A tensor, or a number or extent as a scalar, of an element type."""
    if isinstance(value, PrimExpr):
        value = op.reshape(op.shape_to_tensor(E.ShapeExpr([value])), [])
    if not isinstance(value, E.Expr):
        return t.const(value, dtype)
    tensor: E.Expr = t.bound(value)
    return tensor if t.dtype(tensor) == dtype else op.astype(tensor, dtype)


def floating(t: Translator, value: E.Expr) -> E.Expr:
    """A tensor of floats: integers become float32."""
    value = t.bound(value)
    return value if dtypes.is_float(t.dtype(value)) else op.astype(value, "float32")


def _number(value: Operand) -> Number:
    if not isinstance(value, (int, float)):
        raise TorchError(f"{value} is not a number")
    return value


_BINARY: dict[str, tuple[Callable[..., E.Expr], Callable[..., Number | PrimExpr]]] = {
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
    "lshift": (op.left_shift, operator.lshift),
    "rshift": (op.right_shift, operator.rshift),
}
"""What is done to tensors, and to numbers (extents are computed with as well)."""

_ALSO_NAMED = {
    "lshift": ("bitwise_left_shift",), "rshift": ("bitwise_right_shift",), "mul": ("multiply",),
    "maximum": ("sym_max",), "minimum": ("sym_min",),
}  # fmt: skip


_OF_EXTENTS = {
    max: maximum, min: minimum, operator.floordiv: floordiv, operator.mod: floormod,
}  # fmt: skip


def _computed(compute: Callable[..., Number | PrimExpr], *values: Operand) -> Number | PrimExpr:
    if any(isinstance(value, PrimExpr) for value in values):
        compute = _OF_EXTENTS.get(compute, compute)
    return compute(*values)


def _binary(name: str) -> None:
    build, compute = _BINARY[name]

    @function(name, f"i{name}", *_ALSO_NAMED.get(name, ()))
    def convert(t: Translator, input: Operand, other: Operand) -> Operand:
        if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
            return _computed(compute, input, other)
        return build(*promoted(t, input, other))


for _name in _BINARY:
    _binary(_name)


def _bits(name: str, of_bits: Callable[..., E.Expr], of_truth: Callable[..., E.Expr]) -> None:
    compute = getattr(operator, f"{name}_" if name != "xor" else name)

    @function(name, f"{name}_", f"i{name}", f"bitwise_{name}")
    def convert(t: Translator, input: Operand, other: Operand) -> Operand:
        """Of the bits of integers, and of truth values."""
        if not isinstance(input, E.Expr) and not isinstance(other, E.Expr):
            return compute(input, other)
        return of_bits(*promoted(t, input, other))

    @function(f"logical_{name}")
    def convert_truth(t: Translator, input: E.Expr, other: E.Expr) -> E.Expr:
        return of_truth(as_type(t, input, "bool"), as_type(t, other, "bool"))


_bits("and", op.bitwise_and, op.logical_and)
_bits("or", op.bitwise_or, op.logical_or)
_bits("xor", op.bitwise_xor, op.logical_xor)


def _of_floats(name: str, build: Callable[..., E.Expr]) -> None:
    @function(name)
    def convert(t: Translator, input: Operand, other: Operand) -> E.Expr:
        return build(*(floating(t, value) for value in promoted(t, input, other)))


for _name, _build in (
    ("atan2", op.atan2), ("arctan2", op.atan2), ("logaddexp", op.log_add_exp),
):  # fmt: skip
    _of_floats(_name, _build)


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
        return a // b
    if not dtypes.is_float(t.dtype(a)):
        if rounding_mode == "trunc":
            return a / b
        a, b = op.astype(a, "float32"), op.astype(b, "float32")
    return op.trunc(a / b) if rounding_mode else a / b


@function("pow")
def power(t: Translator, input: Operand, exponent: Operand) -> Operand:
    if not isinstance(input, E.Expr) and not isinstance(exponent, E.Expr):
        return operator.pow(input, exponent)
    if exponent == 2:
        return input * input
    if exponent == 0.5:
        return op.sqrt(input)
    return op.power(*promoted(t, input, exponent))


_UNARY: dict[str, Callable[..., E.Expr]] = {
    "relu": op.nn.relu, "abs": op.abs, "absolute": op.abs, "floor": op.floor, "ceil": op.ceil,
    "trunc": op.trunc, "fix": op.trunc, "square": op.square, "sign": op.sign, "relu6": op.nn.relu6,
    "isnan": op.isnan, "isinf": op.isinf, "isfinite": op.isfinite,
}  # fmt: skip

_UNARY_OF_FLOATS: dict[str, Callable[..., E.Expr]] = {
    "sigmoid": op.sigmoid, "tanh": op.tanh, "exp": op.exp, "log": op.log, "sqrt": op.sqrt,
    "rsqrt": op.rsqrt, "erf": op.erf, "sin": op.sin, "cos": op.cos, "tan": op.tan,
    "sinh": op.sinh, "cosh": op.cosh, "asin": op.asin, "acos": op.acos, "atan": op.atan,
    "asinh": op.asinh, "acosh": op.acosh, "atanh": op.atanh, "silu": op.nn.silu,
    "selu": op.nn.selu, "expit": op.sigmoid,
}  # fmt: skip
"""Those that make floats of integers, too."""


def _unary(name: str, build: Callable[..., E.Expr], of_floats: bool) -> None:
    @function(name)
    def convert(t: Translator, input: E.Expr, inplace: bool = False) -> E.Expr:
        return build(floating(t, input) if of_floats else input)


for _name, _build in _UNARY.items():
    _unary(_name, _build, False)
for _name, _build in _UNARY_OF_FLOATS.items():
    _unary(_name, _build, True)


@function("neg", "negative")
def neg(t: Translator, input: Operand) -> Operand:
    return -input


@function("invert", "bitwise_not")
def invert(t: Translator, input: E.Expr) -> E.Expr:
    return op.logical_not(input) if t.dtype(input) == "bool" else op.bitwise_not(input)


@function("logical_not")
def logical_not(t: Translator, input: E.Expr) -> E.Expr:
    return op.logical_not(as_type(t, input, "bool"))


@function("round")
def round_(t: Translator, input: E.Expr, *, decimals: int = 0) -> E.Expr:
    """To the nearest number of so many decimals, halves to even; by a whole power of 10, whose
    inverse is no float."""
    if decimals == 0 or not dtypes.is_float(t.dtype(input)):
        return op.round(input)
    dtype = t.dtype(input)
    wide = "float64" if dtype == "float64" else "float32"
    scale = t.const(10.0 ** abs(decimals), wide)
    there, back = (op.multiply, op.divide) if decimals > 0 else (op.divide, op.multiply)
    return as_type(t, back(op.round(there(as_type(t, input, wide), scale)), scale), dtype)


@function("reciprocal")
def reciprocal(t: Translator, input: E.Expr) -> E.Expr:
    input = floating(t, input)
    return t.const(1, t.dtype(input)) / input


def _logarithm(name: str, base: float, shift: int = 0) -> None:
    @function(name)
    def convert(t: Translator, input: E.Expr) -> E.Expr:
        input = floating(t, input)
        dtype = t.dtype(input)
        value = op.log(input + t.const(shift, dtype) if shift else input)
        return value if base == math.e else value / t.const(math.log(base), dtype)


_logarithm("log2", 2)
_logarithm("log10", 10)
_logarithm("log1p", math.e, 1)


@function("expm1")
def expm1(t: Translator, input: E.Expr) -> E.Expr:
    input = floating(t, input)
    return op.exp(input) - t.const(1, t.dtype(input))


@function("exp2")
def exp2(t: Translator, input: E.Expr) -> E.Expr:
    input = floating(t, input)
    return t.const(2, t.dtype(input)) ** input


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
    if dtypes.is_float(t.dtype(input)):  # so that infinity is no bound
        if low is None and isinstance(high, (int, float)):
            return op.clip(input, -math.inf, high)
        if high is None and isinstance(low, (int, float)):
            return op.clip(input, low, math.inf)
    if low is not None:
        input = op.maximum(*promoted(t, input, low))
    return input if high is None else op.minimum(*promoted(t, input, high))


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


@function("clamp_min")
def clamp_min(t: Translator, input: E.Expr, min: Operand) -> E.Expr:
    return clamp(t, input, min)


@function("clamp_max")
def clamp_max(t: Translator, input: E.Expr, max: Operand) -> E.Expr:
    return clamp(t, input, None, max)


@function("lerp")
def lerp(t: Translator, input: E.Expr, end: E.Expr, weight: Operand) -> E.Expr:
    start, end = promoted(t, input, end)
    step = op.multiply(*promoted(t, end - start, weight))
    return start + step


@function("isin")
def isin(
    t: Translator, elements: Operand, test_elements: Operand, *, assume_unique: bool = False,
    invert: bool = False,
) -> E.Expr:  # fmt: skip
    a, b = promoted(t, elements, test_elements)
    same = op.equal(op.expand_dims(a, -1), op.reshape(b, [-1]))
    is_member = as_type(t, op.max(op.astype(same, "int8"), -1), "bool")
    return op.logical_not(is_member) if invert else is_member


def _added(name: str, build: Callable[..., E.Expr]) -> None:
    @function(name)
    def convert(
        t: Translator, input: E.Expr, tensor1: E.Expr, tensor2: E.Expr, *, value: Number = 1
    ) -> E.Expr:
        part = build(*promoted(t, tensor1, tensor2))
        return op.add(*promoted(t, input, _scaled(t, part, value)))


_added("addcmul", op.multiply)
_added("addcdiv", op.divide)
