"""Scalar expressions to instructions."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from mlcweb.codegen.processor.checks import FAULT_INDEX
from mlcweb.codegen.processor.math import Expansion
from mlcweb.codegen.processor.selection import (
    UnsupportedError,
    is_cheap,
    is_positive,
    is_unsigned,
)
from mlcweb.codegen.wasm.select_cast import cast_scalar, wrap
from mlcweb.codegen.wasm.select_operation import Rule, operation
from mlcweb.codegen.wasm.select_types import (
    LOADS,
    mask_bits,
    sign_suffix,
    stack_type,
    vector_shape,
)
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.dtype import wrap_integer
from mlcweb.tir.operators import operands_of

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector


def variable(selector: FunctionSelector, var: E.Var) -> None:
    selector.emit("local.get", selector.locals[var])


def _integer(selector: FunctionSelector, constant: E.IntImm) -> None:
    kind = stack_type(constant.dtype)
    signed = wrap_integer(constant.value, "int32" if kind == "i32" else "int64")
    selector.emit(f"{kind}.const", signed)


def _floating(selector: FunctionSelector, constant: E.FloatImm) -> None:
    selector.emit(f"{stack_type(constant.dtype)}.const", constant.value)


def _load(selector: FunctionSelector, load: E.BufferLoad) -> None:
    if load.buffer.scope() == REGISTER_SCOPE:
        local, lane = selector.register(load)
        selector.emit("local.get", local)
        if lane is not None:
            extract_lane(selector, load.buffer.dtype, *lane)
        return
    place = selector.addresses.place(load)
    selector.addresses.push(place)
    dtype = load.buffer.dtype
    if dtype not in LOADS:
        raise UnsupportedError(f"WebAssembly code cannot load {dtype}", load.span)
    selector.emit(LOADS[dtype], place.offset)


def extract_lane(selector: FunctionSelector, dtype: str, lane: int, lanes: int) -> None:
    """Leave one lane of the vector on the stack there."""
    if dtypes.is_bool(dtype):
        selector.emit(f"i{mask_bits(lanes)}x{lanes}.bitmask")
        selector.emit("i32.const", lane)
        selector.emit("i32.shr_u")
        selector.emit("i32.const", 1)
        selector.emit("i32.and")
        return
    suffix = sign_suffix(dtype) if dtypes.bits(dtype) < 32 else ""
    selector.emit(f"{vector_shape(dtype)}.extract_lane{suffix}", lane)


_float_division = operation("div", wraps=True)


def division(selector: FunctionSelector, expression: E.Div) -> None:
    dtype = expression.dtype
    if dtypes.is_float(dtype):
        _float_division(selector, expression)
        return
    kind = stack_type(dtype)
    selector.push(expression.a, expression.b)
    if is_unsigned(dtype):
        selector.emit(f"{kind}.div_u")
    elif is_positive(expression.b):
        selector.emit(f"{kind}.div_s")
    else:
        selector.call_helper(f"{kind}_truncdiv")
        wrap(selector, dtype)


def remainder(selector: FunctionSelector, expression: E.Mod) -> None:
    if dtypes.is_float(expression.dtype):
        raise UnsupportedError("The remainder of floats is T.fmod", expression.span)
    selector.push(expression.a, expression.b)
    selector.emit(f"{stack_type(expression.dtype)}.rem{sign_suffix(expression.dtype)}")


def floor_division(wants_quotient: bool) -> Rule:
    """Quotient or remainder of the division that rounds down."""
    name, helper = ("div_u", "floordiv") if wants_quotient else ("rem_u", "floormod")

    def rule(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
        a, b, dtype = expression.a, expression.b, expression.dtype
        kind = stack_type(dtype)
        selector.push(a)
        if isinstance(b, E.IntImm) and b.value > 0 and b.value & (b.value - 1) == 0:
            if not wants_quotient:
                selector.emit(f"{kind}.const", b.value - 1)
                selector.emit(f"{kind}.and")
            elif b.value > 1:
                selector.emit(f"{kind}.const", b.value.bit_length() - 1)
                selector.emit(f"{kind}.shr{sign_suffix(dtype)}")
            return
        selector.push(b)
        if is_unsigned(dtype) or (is_positive(b) and selector.indices.interval(a)[0] >= 0):
            selector.emit(f"{kind}.{name}")
            return
        selector.call_helper(f"{kind}_{helper}")
        if wants_quotient:
            wrap(selector, dtype)

    return rule


def extremum(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
    dtype = expression.dtype
    kind = stack_type(dtype)
    least = isinstance(expression, E.Min)
    a, b = expression.a, expression.b
    # `f32.min` would take the lesser of two zeros; the first is due, as in vectors. The comparison
    # fails for NaN, so that the result is one where `a` is.
    first = selector.builder.local(kind)
    second = selector.builder.local(kind)
    selector.push(b)
    selector.emit("local.tee", second)
    selector.push(a)
    selector.emit("local.tee", first)
    selector.emit("local.get", second)
    selector.emit("local.get", first)
    selector.emit(f"{kind}.{'lt' if least else 'gt'}{sign_suffix(dtype)}")
    if dtypes.is_float(dtype) and not (isinstance(b, E.FloatImm) and not isnan(b.value)):
        selector.emit("local.get", second)
        selector.emit("local.get", second)
        selector.emit(f"{kind}.ne")
        selector.emit("i32.or")
    selector.emit("select")
    selector.builder.release(first)
    selector.builder.release(second)


def comparison(name: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.ComparisonExpr) -> None:
        dtype = expression.a.dtype
        selector.push(expression.a, expression.b)
        suffix = "" if name in ("eq", "ne") else sign_suffix(dtype)
        selector.emit(f"{stack_type(dtype)}.{name}{suffix}")

    return rule


def logical(name: str) -> Rule:
    """`and` or `or`: where the first operand decides, a second one that is not cheap is skipped."""

    def rule(selector: FunctionSelector, expression: E.And | E.Or) -> None:
        selector.push(expression.a)
        if is_cheap(expression.b):
            selector.push(expression.b)
            selector.emit(f"i32.{name}")
            return
        with selector.builder.branch(result="i32"):
            if name == "or":
                selector.emit("i32.const", 1)
                selector.builder.otherwise()
            selector.push(expression.b)
            if name == "and":
                selector.builder.otherwise()
                selector.emit("i32.const", 0)

    return rule


def negation(selector: FunctionSelector, expression: E.Not) -> None:
    selector.push(expression.a)
    selector.emit("i32.eqz")


def choice(selector: FunctionSelector, expression: E.Select | E.Call) -> None:
    """Leave one of two values on the stack; the other is computed only if that is harmless."""
    condition, yes, no = operands_of(expression)
    if is_cheap(yes) and is_cheap(no):
        selector.push(yes, no, condition)
        selector.emit("select")
        return
    selector.push(condition)
    with selector.builder.branch(result=stack_type(yes.dtype)):
        selector.push(yes)
        selector.builder.otherwise()
        selector.push(no)


def let(selector: FunctionSelector, expression: E.Let) -> None:
    selector.define(expression.var, expression.value)
    selector.push(expression.body)
    selector.forget(expression.var)


def cast(selector: FunctionSelector, expression: E.Cast) -> None:
    selector.push(expression.value)
    cast_scalar(selector, expression.value.dtype, expression.dtype)


def function(expansion: Expansion) -> Rule:
    """A function in terms of arithmetic."""
    return lambda selector, call: selector.push(expansion.of(call))


def _checked_index(selector: FunctionSelector, call: E.Call) -> None:
    index, extent, number = call.args
    assert isinstance(number, E.IntImm)
    kind = stack_type(index.dtype)
    local = selector.builder.local(kind)
    selector.push(index)
    selector.emit("local.tee", local)
    selector.push(extent)
    selector.emit(f"{kind}.ge_u")
    with selector.builder.branch():
        selector.emit("local.get", local)
        if kind == "i64":
            selector.emit("i32.wrap_i64")
        selector.emit("global.set", FAULT_INDEX)
        selector.fail(number.value)
    selector.emit("local.get", local)
    selector.builder.release(local)


def _nothing(selector: FunctionSelector, call: E.Call) -> None:
    """A call that tells something, and does nothing."""
    selector.emit("i32.const", 0)


def likely(selector: FunctionSelector, call: E.Call) -> None:
    selector.push(call.args[0])


def bitwise_not(selector: FunctionSelector, call: E.Call) -> None:
    kind = stack_type(call.dtype)
    selector.push(call.args[0])
    selector.emit(f"{kind}.const", -1)
    selector.emit(f"{kind}.xor")
    wrap(selector, call.dtype)


def shift(selector: FunctionSelector, call: E.Call) -> None:
    left = call.op.name.endswith("left")  # type: ignore[union-attr]
    selector.push(*call.args)
    name = "shl" if left else f"shr{sign_suffix(call.dtype)}"
    selector.emit(f"{stack_type(call.dtype)}.{name}")
    if left:
        wrap(selector, call.dtype)


def reinterpret(selector: FunctionSelector, call: E.Call) -> None:
    value = call.args[0]
    start, end = stack_type(value.dtype), stack_type(call.dtype)
    selector.push(value)
    if start != end:
        selector.emit(f"{end}.reinterpret_{start}")
    else:
        wrap(selector, call.dtype if dtypes.is_integer(call.dtype) else "float32")


def absolute(selector: FunctionSelector, call: E.Call) -> None:
    value = call.args[0]
    if dtypes.is_float(call.dtype):
        selector.push(value)
        selector.emit(f"{stack_type(call.dtype)}.abs")
        return
    kind = stack_type(call.dtype)
    local = selector.builder.local(kind)
    selector.emit(f"{kind}.const", 0)
    selector.push(value)
    selector.emit("local.tee", local)
    selector.emit(f"{kind}.sub")
    selector.emit("local.get", local)
    selector.emit("local.get", local)
    selector.emit(f"{kind}.const", 0)
    selector.emit(f"{kind}.lt_s")
    selector.emit("select")
    wrap(selector, call.dtype)
    selector.builder.release(local)


LEAVES: dict[type, Rule] = {
    E.Var: variable,
    E.IntImm: _integer,
    E.FloatImm: _floating,
    E.BufferLoad: _load,
    E.Let: let,
}
"""What is no operator."""

STATEMENT_CALLS: dict[str, Rule] = {
    "checked_index": _checked_index,
    "assume": _nothing,
    "tvm_storage_sync": _nothing,
}
"""Calls that are no operators, as they have an effect or are only there to tell something."""
