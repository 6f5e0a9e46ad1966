"""Expressions of TVMScript that are more than a builder of `tir`: nodes by name, casts, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.op import register_op
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import expr as E


def node_builder(cls: type) -> Callable[[Any, Any], E.PrimExpr]:
    def build(a: Any, b: Any) -> E.PrimExpr:
        return cls(*arithmetic.match_types(a, b))

    build.__name__ = cls.__name__
    return build


def not_node(a: Any) -> E.Not:
    return E.Not(arithmetic.convert(a))


def select_node(condition: Any, true_value: Any, false_value: Any) -> E.Select:
    """One of two values; both are computed."""
    condition = arithmetic.cast("bool", arithmetic.convert(condition))
    return E.Select(condition, *arithmetic.match_types(true_value, false_value))


def cast_node(dtype: Any, value: Any) -> E.Cast:
    return E.Cast(str(dtype), arithmetic.convert(value))


def cast(value: Any, dtype: Any) -> E.PrimExpr:
    """`value` converted to `dtype`; folded where it is constant."""
    return arithmetic.cast(str(dtype), value)


def ramp(base: Any, stride: Any, lanes: int) -> E.Ramp:
    """The vector base, base + stride, …"""
    base = arithmetic.convert(base)
    return E.Ramp(base, arithmetic.cast(base.dtype, stride), int(lanes))


def broadcast(value: Any, lanes: int) -> E.Broadcast:
    """The vector of `lanes` copies of a value."""
    return E.Broadcast(arithmetic.convert(value), int(lanes))


def infinity(dtype: Any) -> E.PrimExpr:
    return arithmetic.const(float("inf"), str(dtype))


def min_value(dtype: Any) -> E.PrimExpr:
    return intrinsics.min_value(str(dtype))


def max_value(dtype: Any) -> E.PrimExpr:
    return intrinsics.max_value(str(dtype))


def fold_left(build: Callable[[Any, Any], E.PrimExpr]) -> Callable[..., E.PrimExpr]:
    def apply(first: Any, *rest: Any) -> E.PrimExpr:
        result = arithmetic.convert(first)
        for item in rest:
            result = build(result, item)
        return result

    return apply


def call_extern(*args: Any, dtype: Any = None) -> E.Call:
    """An external function by name: `T.call_extern("int32", "f", …)`, or with the type last as
    `T.call_extern("f", …, dtype="int32")`."""
    if dtype is None:
        dtype, *args = args  # type: ignore[assignment]
    return intrinsics.call_extern(str(dtype), *args)


def call_pure_extern(*args: Any, dtype: Any = None) -> E.Call:
    """An external function without side effects."""
    if dtype is None:
        dtype, *args = args  # type: ignore[assignment]
    return intrinsics.call(str(dtype), "call_pure_extern", *args)


def call_intrin(dtype: Any, name: str, *args: Any) -> E.Call:
    """An operator by name."""
    op = register_op(without_prefix(name))
    return E.Call(str(dtype), op, tuple(arithmetic.convert(arg) for arg in args))


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> E.Call:
    return intrinsics.call("handle", "tvm_access_ptr", ptype, data, offset, extent, rw_mask)


def address_of(element: Any) -> E.Call:
    """The address of a buffer's element."""
    return intrinsics.call("handle", "address_of", element)


def ret(value: Any) -> E.Call:
    """Ends the function with a value."""
    value = arithmetic.convert(value)
    return E.Call(value.dtype, register_op("tir.ret", pure=False), (value,))


def type_annotation(dtype: Any) -> E.Call:
    return intrinsics.type_annotation(str(dtype))


def reinterpret(dtype: Any, value: Any) -> E.PrimExpr:
    return intrinsics.reinterpret(str(dtype), value)


def assume(condition: Any) -> E.Call:
    """A promise about the program that transformations may use."""
    return E.Call("bool", register_op("tir.assume", pure=False), (arithmetic.convert(condition),))


def index_map(
    mapping: Callable[..., Any], *, inverse_index_map: Callable[..., Any] | None = None
) -> IndexMap:
    """How indices of one layout become those of another: `T.index_map(lambda i, j: (j, i))`."""
    return IndexMap.from_func(mapping, inverse_index_map=inverse_index_map)
