"""Lowering of operators that work element by element."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import Legalize, by, enter, number


def _binary(name: str) -> Legalize:
    """A scalar constant is written into the function; at least one operand stays a tensor."""
    function = getattr(topi, name)

    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        first, second = call.args
        right = number(second)
        left = first if right is not second else number(first)
        return builder.call_te(function, left, right, primfunc_name_hint=name)

    return legalize


_BINARY = (
    "add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "power", "maximum",
    "minimum", "atan2", "log_add_exp", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor", "left_shift", "right_shift",
)  # fmt: skip
_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "floor",
    "log", "negative", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan",
    "tanh", "trunc", "isfinite", "isinf", "isnan", "logical_not", "bitwise_not",
)  # fmt: skip


def _fma(x1: te.Tensor, x2: te.Tensor, x3: te.Tensor) -> te.Tensor:
    return topi.add(topi.multiply(x1, x2), x3)


enter({name: _binary(name) for name in _BINARY})
enter({name: by(getattr(topi, name), hint=f"tir_{name}") for name in _UNARY})
enter({
    "erf": by(topi.erf),
    "clip": by(topi.clip, hint="tir_clip"),
    "ewise_fma": by(_fma, hint="ewise_fma"),
    "astype": by(topi.cast, "dtype"),
    "where": by(topi.where),
})  # fmt: skip
