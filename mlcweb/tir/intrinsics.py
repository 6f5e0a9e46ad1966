"""Intrinsic calls: mathematical functions and the few calls with an effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mlcweb.ir.dialect import also_named
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import Op, register_op
from mlcweb.tir import arithmetic as A
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import folding
from mlcweb.tir.arithmetic import cast, const, convert, match_types, multiply
from mlcweb.tir.builtins import OPS
from mlcweb.tir.expr import Call, IntImm, PrimExpr, StringImm
from mlcweb.tir.operators import Family, keys, register_column

if TYPE_CHECKING:
    from mlcweb.tir.buffer import Buffer

READ_ACCESS, WRITE_ACCESS = 1, 2
"""Bits of the mask of `tvm_access_ptr`."""

_ACCESS_LETTERS = {"r": READ_ACCESS, "w": WRITE_ACCESS}


def call(dtype: str, name: str, *args: Any) -> Call:
    """A call of the operator or builtin `tir.<name>`."""
    op = OPS.get(name) or register_op(f"tir.{name}")
    return Call(dtype, op, tuple(convert(arg) for arg in args))


def call_intrin(dtype: str, func_name: str | Op, *args: Any) -> Call:
    """A call of an operator or builtin, by name ("tir.exp")."""
    name = func_name if isinstance(func_name, str) else func_name.name
    return call(dtype, name.removeprefix("tirx.").removeprefix("tir."), *args)


def _rounding(name: str, to_integer: Callable[[float], float]) -> Callable[[Any], PrimExpr]:
    op = register_op(f"tir.{name}")

    def build(x: Any) -> PrimExpr:
        x = convert(x)
        if not dtypes.is_float(x.dtype):
            return x
        if isinstance(x, E.FloatImm) and math.isfinite(x.value):
            return const(float(to_integer(folding.value_of(x))), x.dtype)
        return Call(x.dtype, op, (x,))

    build.__name__ = name
    build.__doc__ = f"Elementwise `{name}`; integers are what they are."
    return build


def _unary(name: str) -> Callable[[Any], PrimExpr]:
    op = register_op(f"tir.{name}")

    def build(x: Any) -> PrimExpr:
        x = convert(x)
        if not dtypes.is_float(x.dtype):
            x = cast(dtypes.like("float32", x.dtype), x)
        return Call(x.dtype, op, (x,))

    build.__name__ = name
    build.__doc__ = f"Elementwise `{name}`; integers are cast to float32 first."
    return build


unary_functions: dict[str, Callable[[Any], PrimExpr]] = {
    **{name: _unary(name) for name in keys(Family.FUNCTION, arity=1)},
    **{
        name: _rounding(name, to_integer)
        for name, to_integer in {
            "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
            "round": round, "nearbyint": round,
        }.items()
    },
}  # fmt: skip
exp, log, sqrt, tanh, sigmoid, erf, floor = (
    unary_functions[name] for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "erf", "floor")
)


def absolute(x: Any) -> PrimExpr:
    """The absolute value; of unsigned integers the value itself."""
    x = convert(x)
    if dtypes.kind(x.dtype) == "uint":
        return x
    if isinstance(x, (IntImm, E.FloatImm)):
        return const(abs(x.value), x.dtype)
    return call(x.dtype, "fabs" if dtypes.is_float(x.dtype) else "abs", x)


def popcount(x: Any) -> PrimExpr:
    """How many bits of an integer are 1, as an integer of its type."""
    x = convert(x)
    if not dtypes.is_integer(x.dtype):
        raise DiagnosticError(f"popcount counts the bits of an integer, not of a {x.dtype}")
    if isinstance(x, IntImm):
        return const((x.value & (1 << dtypes.bits(x.dtype)) - 1).bit_count(), x.dtype)
    return call(x.dtype, "popcount", x)


def _binary(name: str) -> Callable[[Any, Any], PrimExpr]:
    @also_named(x="x1", y="x2")
    def build(x1: Any, x2: Any) -> PrimExpr:
        a, b = match_types(x1, x2)
        return call(a.dtype, name, a, b)

    build.__name__ = name
    build.__doc__ = f"Elementwise `{name}` of two values of one type."
    return build


binary_functions: dict[str, Callable[[Any, Any], PrimExpr]] = {
    name: _binary(name) for name in keys(Family.FUNCTION, arity=2)
}
power = binary_functions["pow"]


def isnan(x: Any) -> PrimExpr:
    """Whether a float is NaN; integers never are. A float16 is asked for as the float32 it is."""
    x = convert(x)
    if dtypes.element_of(x.dtype) == "float16":
        x = cast(dtypes.like("float32", x.dtype), x)
    return _of_floats("isnan", x)


def isinf(x: Any) -> PrimExpr:
    """Whether a float is infinite; integers never are."""
    return _of_floats("isinf", convert(x))


def isfinite(x: Any) -> PrimExpr:
    """Whether a float is neither infinite nor NaN; integers always are."""
    return A.logical_and(A.logical_not(isinf(x)), A.logical_not(isnan(x)))


def _of_floats(name: str, x: PrimExpr) -> PrimExpr:
    dtype = dtypes.like("bool", x.dtype)
    return call(dtype, name, x) if dtypes.is_float(x.dtype) else const(False, dtype)


def if_then_else(cond: Any, t: Any, f: Any) -> PrimExpr:
    """One of two values; the other is not computed, so that it may be out of bounds."""
    cond = cast("bool", A.checked_condition(cond, "The condition of if_then_else"))
    t, f = match_types(t, f)
    if isinstance(cond, IntImm):
        return t if cond.value else f
    return call(t.dtype, "if_then_else", cond, t, f)


def likely(cond: Any) -> PrimExpr:
    """A condition that nearly always holds."""
    cond = convert(cond)
    return call(cond.dtype, "likely", cond)


def min_value(dtype: str) -> PrimExpr:
    """The least finite value of a type."""
    name = dtypes.full_name(dtype)
    return const(dtypes.min_value(name), name)


def max_value(dtype: str) -> PrimExpr:
    """The greatest finite value of a type."""
    name = dtypes.full_name(dtype)
    return const(dtypes.max_value(name), name)


def reinterpret(dtype: str, value: Any) -> PrimExpr:
    """The same bits as another type of the same width."""
    value = convert(value)
    if _width(dtype) != _width(value.dtype):
        raise DiagnosticError(f"Cannot read the bits of {value.dtype} as {dtype}: widths differ")
    return value if value.dtype == dtype else call(dtype, "reinterpret", value)


def _width(dtype: str) -> int:
    return dtypes.bits(dtype) * dtypes.lane_count(dtype)


BUILDERS: Mapping[Any, Callable[..., PrimExpr]] = register_column(
    "builder",
    {
        E.Add: A.add, E.Sub: A.subtract, E.Mul: A.multiply, E.Div: A.truncdiv, E.Mod: A.truncmod,
        E.FloorDiv: A.floordiv, E.FloorMod: A.floormod, E.Min: A.minimum, E.Max: A.maximum,
        E.EQ: A.equal, E.NE: A.not_equal, E.LT: A.less, E.LE: A.less_equal, E.GT: A.greater,
        E.GE: A.greater_equal, E.And: A.logical_and, E.Or: A.logical_or, E.Not: A.logical_not,
        **{name: getattr(A, name) for name in keys(Family.BITWISE)},
        **unary_functions, **binary_functions, "abs": absolute, "fabs": absolute,
        "popcount": popcount, "isnan": isnan, "isinf": isinf, E.Select: A.select,
        "if_then_else": if_then_else,
        "likely": likely, E.Cast: cast, "reinterpret": reinterpret,
    },
)  # fmt: skip
"""What builds an operator from its operands (conversions, from a type and its operand), folded
where they are constant."""


def call_extern(dtype: str, func_name: str, *args: Any) -> Call:
    """A call of an external function by name."""
    return call(dtype, "call_extern", StringImm(func_name), *args)


def call_packed(*args: Any) -> Call:
    """A call of a registered Python function: its name, then arguments. Buffers are passed as
    arrays."""
    name, *rest = args
    arguments = (_packed_argument(arg) for arg in rest)
    return call("int32", "tvm_call_packed", convert(name), *arguments)


def tvm_storage_sync(storage_scope: str) -> Call:
    """A barrier: the threads of a block wait here for each other, and then see what they wrote."""
    return call("int32", "tvm_storage_sync", StringImm(storage_scope))


def _packed_argument(value: Any) -> PrimExpr:
    if not hasattr(value, "elem_offset"):
        return convert(value)
    strides = call("handle", "tvm_stack_make_shape", *value.strides) if value.strides else 0
    return call(
        "handle",
        "tvm_stack_make_array",
        value.data,
        call("handle", "tvm_stack_make_shape", *value.shape),
        strides,
        len(value.shape),
        const(0, value.dtype),
        value.elem_offset,
    )


def type_annotation(dtype: str) -> Call:
    """A type as an argument of a call."""
    return call(dtype, "type_annotation")


def access_ptr(
    buffer: Buffer,
    access_mask: int | str = "rw",
    ptr_type: str = "handle",
    content_lanes: int = 1,
    offset: Any = 0,
    extent: Any = None,
) -> PrimExpr:
    """A pointer to a buffer's elements, with the number of elements that it reaches."""
    if isinstance(access_mask, str):
        mask = 0
        for letter in access_mask:
            if letter not in _ACCESS_LETTERS:
                raise ValueError(f'An access is of "r" and "w", not of "{letter}"')
            mask |= _ACCESS_LETTERS[letter]
        access_mask = mask
    if extent is None:
        if buffer.strides:
            extent = multiply(buffer.strides[0], buffer.shape[0])
        else:
            extent = const(1)
            for size in reversed(buffer.shape):
                extent = multiply(size, extent)
        extent = extent - convert(offset)
    return call(
        ptr_type,
        "tvm_access_ptr",
        type_annotation(buffer.dtype),
        buffer.data,
        buffer.elem_offset + convert(offset),
        extent,
        access_mask,
    )
