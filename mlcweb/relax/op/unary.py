"""Elementwise operators of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import Infer, call, register


def unary(name: str, deduce: Infer = infer.elementwise) -> Callable[[Any], Call]:
    """The builder of calls of the operator `relax.{name}` of one tensor, newly registered."""
    op = register(f"relax.{name}", ("x",), deduce)

    def build(x: Any) -> Call:
        return call(op, x)

    build.__name__ = build.__qualname__ = name.split(".")[-1]
    build.__doc__ = f"{name}(x), element by element."
    return build


abs = unary("abs")
ceil = unary("ceil")
floor = unary("floor")
round = unary("round")
trunc = unary("trunc")
negative = unary("negative")
sign = unary("sign")
square = unary("square")

exp, log, sqrt, rsqrt, erf, sigmoid = (
    unary(name, infer.elementwise_float)
    for name in ("exp", "log", "sqrt", "rsqrt", "erf", "sigmoid")
)
sin, cos, tan, sinh, cosh, tanh = (
    unary(name, infer.elementwise_float) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
)
asin, acos, atan, asinh, acosh, atanh = (
    unary(name, infer.elementwise_float)
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
)

isnan, isinf, isfinite = (unary(name, infer.predicate) for name in ("isnan", "isinf", "isfinite"))
logical_not = unary("logical_not", infer.elementwise_bool)
bitwise_not = unary("bitwise_not", infer.elementwise_integer)

_CLIP = register("relax.clip", ("x", "min", "max"), infer.same)


def clip(x: Any, min: Any, max: Any) -> Call:
    """Every element kept between the numbers `min` and `max`."""
    return call(_CLIP, x, min, max)
