"""Lowering of operators that make tensors of numbers."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import Legalize, enter, known, number
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.arithmetic import constant_value


def _full(shape: Any, dtype: str, value: Any) -> te.Tensor:
    return topi.full(shape, dtype, value() if isinstance(value, te.Tensor) else value)


def _filled(name: str, value: int | None) -> Legalize:
    """A tensor of the deduced shape; of the value, or of that of the second argument."""

    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        info = known(builder, call)
        filling = number(call.args[1]) if value is None else arithmetic.const(value, info.dtype)
        shape = list(info.values)
        return builder.call_te(_full, shape, info.dtype, filling, primfunc_name_hint=name)

    return legalize


def _arange(builder: BlockBuilder, call: E.Call) -> Any:
    """A constant where all numbers are known."""
    info = known(builder, call)
    start, _, step = (argument.value for argument in call.args)
    (size,) = (constant_value(extent) for extent in info.values)
    low, stride = constant_value(start), constant_value(step)
    if size is not None and low is not None and stride is not None:
        return E.const([low + i * stride for i in range(int(size))], info.dtype)

    def arange(count: Any, first: Any, by: Any) -> te.Tensor:
        def element(i: Any) -> Any:
            return arithmetic.cast(info.dtype, first) + arithmetic.cast(
                info.dtype, i
            ) * arithmetic.cast(info.dtype, by)  # fmt: skip

        return te.compute((count,), element, "T_arange")

    return builder.call_te(arange, info.values[0], start, step)


def _eye(builder: BlockBuilder, call: E.Call) -> Any:
    info = known(builder, call)

    def eye(rows: Any, columns: Any, k: Any) -> te.Tensor:
        one, zero = (arithmetic.const(value, info.dtype) for value in (1, 0))
        return te.compute(
            (rows, columns),
            lambda i, j: intrinsics.if_then_else(arithmetic.equal(i, j - k), one, zero),
            "eye",
        )

    return builder.call_te(eye, *call.args)


def _eye_like(builder: BlockBuilder, call: E.Call) -> Any:
    info = known(builder, call)
    rows, columns = info.values
    return op.eye(rows, columns, call.args[1], info.dtype)


def _triangle(function: Any) -> Legalize:
    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        return builder.call_te(function, *call.args)

    return legalize


enter({
    "full": _filled("full", None),
    "full_like": _filled("full", None),
    "zeros": _filled("zeros", 0),
    "zeros_like": _filled("zeros", 0),
    "ones": _filled("ones", 1),
    "ones_like": _filled("ones", 1),
    "arange": _arange,
    "eye": _eye,
    "eye_like": _eye_like,
    "tril": _triangle(topi.tril),
    "triu": _triangle(topi.triu),
})  # fmt: skip
