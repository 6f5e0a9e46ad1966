"""Vector expressions to SIMD instructions.

A vector of type `float32x4` is one v128. Shorter vectors fill its lower lanes. Conditions are
masks, all ones or all zeros in each lane, whose lanes share the whole 128 bits among them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.wasm.math import Expansion
from mlcweb.codegen.wasm.select_cast import (
    cast_vector,
    constant_bytes,
    push_constant,
    resize_mask,
)
from mlcweb.codegen.wasm.select_memory import load_vector
from mlcweb.codegen.wasm.select_types import (
    UnsupportedError,
    check_vector,
    mask_bits,
    sign_suffix,
    stack_type,
    vector_shape,
)
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.dtype import wrap_integer

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector

Rule = Callable[["FunctionSelector", Any], None]


def _variable(selector: FunctionSelector, var: E.Var) -> None:
    selector.emit("local.get", selector.locals[var])


def _broadcast(selector: FunctionSelector, expression: E.Broadcast) -> None:
    value, dtype = expression.value, expression.value.dtype
    check_vector(expression.dtype)
    if isinstance(value, (E.IntImm, E.FloatImm)):
        push_constant(selector, constant_bytes(value.value, dtype, expression.lanes))
        return
    bits = dtypes.bits(dtype)
    if isinstance(value, E.BufferLoad) and selector.options.load_splat and bits >= 8:
        if value.buffer.scope() != REGISTER_SCOPE:
            place = selector.addresses.place(value)
            selector.addresses.push(place)
            selector.emit(f"v128.load{bits}_splat", place.offset)
            return
    selector.push(value)
    if dtypes.is_bool(dtype):
        _splat_mask(selector, expression.lanes)
    else:
        selector.emit(f"{vector_shape(dtype)}.splat")


def _splat_mask(selector: FunctionSelector, lanes: int) -> None:
    """The condition on the stack as a mask."""
    selector.emit("i32.const", -1)
    selector.emit("i32.mul")
    selector.emit("i32x4.splat")


def _ramp(selector: FunctionSelector, expression: E.Ramp) -> None:
    check_vector(expression.dtype)
    dtype = expression.base.dtype
    size = dtypes.size_in_bytes(dtype)
    mask = (1 << 8 * size) - 1
    step = expression.stride
    factor = step.value if isinstance(step, E.IntImm) else 1
    content = b"".join(
        (lane * factor & mask).to_bytes(size, "little") for lane in range(expression.lanes)
    )
    shape = vector_shape(dtype)
    push_constant(selector, content.ljust(16, b"\0"))
    if not isinstance(step, E.IntImm):
        selector.push(step)
        selector.emit(f"{shape}.splat")
        selector.emit(f"{shape}.mul")
    selector.push(expression.base)
    selector.emit(f"{shape}.splat")
    selector.emit(f"{shape}.add")


def arithmetic(operation: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
        check_vector(expression.dtype)
        shape = vector_shape(dtypes.element_of(expression.dtype))
        if shape == "i8x16" and operation == "mul":
            raise UnsupportedError("WebAssembly has no product of vectors of bytes")
        selector.push(expression.a)
        selector.push(expression.b)
        selector.emit(f"{shape}.{operation}")

    return rule


def add(selector: FunctionSelector, expression: E.Add) -> None:
    a, b = expression.a, expression.b
    product, other = (b, a) if isinstance(b, E.Mul) else (a, b)
    _with_product(selector, expression, product, other, "add", "relaxed_madd")


def subtract(selector: FunctionSelector, expression: E.Sub) -> None:
    _with_product(selector, expression, expression.b, expression.a, "sub", "relaxed_nmadd")


def _with_product(
    selector: FunctionSelector,
    expression: E.BinaryExpr,
    product: E.PrimExpr,
    other: E.PrimExpr,
    plain: str,
    fused: str,
) -> None:
    """A sum or difference, in one instruction with the product in it if that may be."""
    if not isinstance(product, E.Mul) or not selector.fuses(product, other):
        arithmetic(plain)(selector, expression)
        return
    check_vector(expression.dtype)
    for operand in (product.a, product.b, other):
        selector.push(operand)
    selector.emit(f"{vector_shape(dtypes.element_of(expression.dtype))}.{fused}")


def division(selector: FunctionSelector, expression: E.Div) -> None:
    if not dtypes.is_float(expression.dtype):
        raise UnsupportedError("WebAssembly has no division of vectors of integers")
    arithmetic("div")(selector, expression)


def extremum(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
    check_vector(expression.dtype)
    element = dtypes.element_of(expression.dtype)
    shape = vector_shape(element)
    name = "min" if isinstance(expression, E.Min) else "max"
    a, b = expression.a, expression.b
    if dtypes.is_float(element):
        # `pmin(a, b)` is `b < a ? b : a`, which is NaN where `a` is; where `b` is, NaN is put in.
        # That is much faster than `min`, which also looks at the signs of zeros.
        selector.push(a)
        selector.push(b)
        constant = b.value if isinstance(b, E.Broadcast) else None
        if isinstance(constant, E.FloatImm) and not isnan(constant.value):
            selector.emit(f"{shape}.p{name}")
            return
        local = selector.builder.local("v128")
        selector.emit("local.tee", local)
        selector.emit(f"{shape}.p{name}")
        selector.emit("local.get", local)
        selector.emit("local.get", local)
        selector.emit(f"{shape}.ne")
        selector.emit("v128.or")
        selector.builder.release(local)
    elif shape == "i64x2":
        operation = E.LT if name == "min" else E.GT
        _choose(selector, operation(a, b), a, b)
    else:
        selector.push(a)
        selector.push(b)
        selector.emit(f"{shape}.{name}{sign_suffix(element)}")


def comparison(operation: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.ComparisonExpr) -> None:
        element, lanes = dtypes.element_of(expression.a.dtype), dtypes.lanes(expression.dtype)
        selector.push(expression.a)
        selector.push(expression.b)
        if dtypes.is_bool(element):
            selector.emit("v128.xor")
            if operation == "eq":
                selector.emit("v128.not")
            return
        check_vector(expression.a.dtype)
        if element == "uint64" and operation not in ("eq", "ne"):
            raise UnsupportedError("WebAssembly cannot compare vectors of uint64")
        suffix = "" if operation in ("eq", "ne") else sign_suffix(element)
        selector.emit(f"{vector_shape(element)}.{operation}{suffix}")
        resize_mask(selector, dtypes.bits(element), mask_bits(lanes))

    return rule


def logical(operation: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.ComparisonExpr) -> None:
        selector.push(expression.a)
        selector.push(expression.b)
        selector.emit(f"v128.{operation}")

    return rule


def negation(selector: FunctionSelector, expression: E.Not) -> None:
    selector.push(expression.a)
    selector.emit("v128.not")


def select(selector: FunctionSelector, expression: E.Select) -> None:
    _choose(selector, expression.condition, expression.true_value, expression.false_value)


def _choose(
    selector: FunctionSelector, condition: E.PrimExpr, yes: E.PrimExpr, no: E.PrimExpr
) -> None:
    if dtypes.lanes(condition.dtype) == 1:
        selector.push(condition)
        with selector.builder.branch(result="v128"):
            selector.push(yes)
            selector.builder.otherwise()
            selector.push(no)
        return
    lanes = dtypes.lanes(condition.dtype)
    selector.push(yes)
    selector.push(no)
    selector.push(condition)
    if not dtypes.is_bool(yes.dtype):
        resize_mask(selector, mask_bits(lanes), dtypes.bits(yes.dtype))
    selector.emit("v128.bitselect")


def _let(selector: FunctionSelector, let: E.Let) -> None:
    selector.define(let.var, let.value)
    selector.push(let.body)
    selector.forget(let.var)


def cast(selector: FunctionSelector, expression: E.Cast) -> None:
    check_vector(expression.dtype)
    check_vector(expression.value.dtype)
    selector.push(expression.value)
    source = dtypes.element_of(expression.value.dtype)
    target = dtypes.element_of(expression.dtype)
    cast_vector(selector, source, target, dtypes.lanes(expression.dtype))


def instruction(name: str) -> Rule:
    """A function of floats that is one instruction."""

    def rule(selector: FunctionSelector, call: E.Call) -> None:
        check_vector(call.dtype)
        selector.push(call.args[0])
        selector.emit(f"{vector_shape(dtypes.element_of(call.dtype))}.{name}")

    return rule


def function(expansion: Expansion) -> Rule:
    """A function in terms of arithmetic."""

    def rule(selector: FunctionSelector, call: E.Call) -> None:
        selector.push(expansion.of(call))

    return rule


def if_then_else(selector: FunctionSelector, call: E.Call) -> None:
    _choose(selector, *call.args)


def bitwise(operation: str) -> Rule:
    def rule(selector: FunctionSelector, call: E.Call) -> None:
        for argument in call.args:
            selector.push(argument)
        selector.emit(f"v128.{operation}")

    return rule


def shift(selector: FunctionSelector, call: E.Call) -> None:
    value, amount = call.args
    element = dtypes.element_of(call.dtype)
    if not isinstance(amount, E.Broadcast):
        raise UnsupportedError("WebAssembly shifts all lanes of a vector alike", call.span)
    selector.push(value)
    selector.push(amount.value)
    if stack_type(amount.value.dtype) == "i64":
        selector.emit("i32.wrap_i64")
    left = call.op.name.endswith("left")  # type: ignore[union-attr]
    selector.emit(f"{vector_shape(element)}.{'shl' if left else 'shr' + sign_suffix(element)}")


def reinterpret(selector: FunctionSelector, call: E.Call) -> None:
    selector.push(call.args[0])


def absolute(selector: FunctionSelector, call: E.Call) -> None:
    selector.push(call.args[0])
    selector.emit(f"{vector_shape(dtypes.element_of(call.dtype))}.abs")


def copysign(selector: FunctionSelector, call: E.Call) -> None:
    element = dtypes.element_of(call.dtype)
    sign = wrap_integer(1 << (dtypes.bits(element) - 1), f"int{dtypes.bits(element)}")
    for argument in call.args:
        selector.push(argument)
    push_constant(selector, constant_bytes(~sign, f"int{dtypes.bits(element)}", 1))
    selector.emit("v128.bitselect")


LEAVES: dict[type, Rule] = {
    E.Var: _variable,
    E.Broadcast: _broadcast,
    E.Ramp: _ramp,
    E.BufferLoad: load_vector,
    E.Let: _let,
}
"""What is no operator."""
