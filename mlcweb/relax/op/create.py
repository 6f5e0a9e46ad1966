"""Tensors from numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlcweb.relax.expr import Call, Expr, PrimValue, const
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import as_shape, call, register
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import FloatImm, PrimExpr


def _filled(call: Call, context: Any, dtype: str) -> StructInfo:
    info = infer.shape(call, 0, context)
    return TensorStructInfo(
        call.args[0] if info.values is not None else None, dtype, ndim=info.ndim
    )


def _scalar(call: Call, index: int, context: Any) -> TensorStructInfo:
    info = infer.tensor(call, index, context)
    if info.ndim not in (-1, 0):
        raise infer.shape_error(call, f"{infer.described(call, index, info)} must be a scalar")
    return info


def _infer_full(call: Call, context: Any) -> StructInfo:
    value = _scalar(call, 1, context)
    return _filled(call, context, infer.dtype_or(call, value.dtype))


def _infer_like(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if len(call.args) > 1:
        _scalar(call, 1, context)
    return TensorStructInfo(info.shape, infer.dtype_or(call, info.dtype), ndim=info.ndim)


_FULL = register("relax.full", ("shape", "fill_value"), _infer_full)
_FULL_LIKE = register("relax.full_like", ("x", "fill_value"), _infer_like)


def full(shape: Any, fill_value: Any, dtype: str | None = None) -> Call:
    """A tensor of one value: a scalar tensor, or a number."""
    value = fill_value if isinstance(fill_value, Expr) else const(fill_value, dtype)
    return call(_FULL, as_shape(shape), value, dtype=str(dtype or "void"))


def full_like(x: Any, fill_value: Any, dtype: str | None = None) -> Call:
    """One value in the shape (and without `dtype` the element type) of `x`."""
    value = fill_value if isinstance(fill_value, Expr) else const(fill_value, dtype)
    return call(_FULL_LIKE, x, value, dtype=str(dtype or "void"))


def _constant_tensor(name: str) -> Callable[..., Call]:
    op = register(
        f"relax.{name}",
        ("shape",),
        lambda call, context: _filled(call, context, infer.attribute(call, "dtype")),
    )

    def build(shape: Any, dtype: str) -> Call:
        return call(op, as_shape(shape), dtype=str(dtype))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A tensor of {name}."
    return build


def _constant_tensor_like(name: str) -> Callable[..., Call]:
    op = register(f"relax.{name}", ("x",), _infer_like)

    def build(x: Any, dtype: str | None = None) -> Call:
        return call(op, x, dtype=str(dtype or "void"))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A tensor of {name[:-5]} in the shape (and element type) of another."
    return build


zeros = _constant_tensor("zeros")
ones = _constant_tensor("ones")
zeros_like = _constant_tensor_like("zeros_like")
ones_like = _constant_tensor_like("ones_like")


def _prim_values(call: Call) -> list[PrimExpr]:
    found = []
    for index, argument in enumerate(call.args):
        if not isinstance(argument, PrimValue):
            name = infer.argument_name(call, index)
            raise infer.dtype_error(call, f"{name} must be a number, but it is {argument}")
        found.append(argument.value)
    return found


def arange_size(start: PrimExpr, end: PrimExpr, step: PrimExpr) -> Any:
    """How many elements start, start + step, … lie before end."""
    numbers = [constant_value(value) for value in (start, end, step)]
    if all(number is not None for number in numbers):
        low, high, stride = numbers
        assert low is not None and high is not None and stride is not None
        if all(isinstance(number, int) for number in numbers):
            return max(0, -((low - high) // stride))
        return max(0, math.ceil((high - low) / stride))
    return (end - start + step - 1) // step


def _infer_arange(call: Call, context: Any) -> StructInfo:
    start, end, step = _prim_values(call)
    if constant_value(step) == 0:
        raise infer.shape_error(call, "step must not be 0")
    return TensorStructInfo([arange_size(start, end, step)], infer.attribute(call, "dtype"))


_ARANGE = register("relax.arange", ("start", "end", "step"), _infer_arange)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: str | None = None) -> Call:
    """start, start + step, … before end; of int64 where all are whole numbers, else float32."""
    if end is None:
        start, end = 0, start
    values = [value if isinstance(value, PrimValue) else PrimValue(value)
              for value in (start, end, step)]  # fmt: skip
    whole = not any(isinstance(value.value, FloatImm) for value in values)
    return call(_ARANGE, *values, dtype=str(dtype or ("int64" if whole else "float32")))


def _infer_eye(call: Call, context: Any) -> StructInfo:
    rows, columns, _ = _prim_values(call)
    return TensorStructInfo([rows, columns], infer.attribute(call, "dtype"))


_EYE = register("relax.eye", ("n", "m", "k"), _infer_eye)


def eye(n: Any, m: Any = None, k: Any = 0, dtype: str = "float32") -> Call:
    """An n by m matrix (m = n without `m`) of ones on the k-th diagonal, zeros elsewhere."""
    return call(_EYE, n, n if m is None else m, k, dtype=str(dtype))


def _infer_eye_like(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    infer.need_rank(call, 0, info, 2, "a matrix")
    return TensorStructInfo(info.shape, infer.dtype_or(call, info.dtype), ndim=2)


_EYE_LIKE = register("relax.eye_like", ("x", "k"), _infer_eye_like)


def eye_like(x: Any, k: Any = 0, dtype: str | None = None) -> Call:
    """A matrix as large as `x` of ones on the k-th diagonal, zeros elsewhere."""
    return call(_EYE_LIKE, x, k, dtype=str(dtype or "void"))


def _infer_triangle(call: Call, context: Any) -> StructInfo:
    info = infer.tensor(call, 0, context)
    if info.ndim in (0, 1):
        raise infer.shape_error(call, f"{infer.described(call, 0, info)} is no matrix")
    return info


_TRIL = register("relax.tril", ("x", "k"), _infer_triangle)
_TRIU = register("relax.triu", ("x", "k"), _infer_triangle)


def tril(x: Any, k: Any = 0) -> Call:
    """The last two dimensions with zeros above the k-th diagonal."""
    return call(_TRIL, x, k)


def triu(x: Any, k: Any = 0) -> Call:
    """The last two dimensions with zeros below the k-th diagonal."""
    return call(_TRIU, x, k)
