"""Vector expressions to SIMD instructions.

A vector of type `float32x4` is one v128. Shorter vectors fill its lower lanes. Conditions are
masks, all ones or all zeros in each lane, whose lanes share the whole 128 bits among them.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.codegen.wasm.select_cast import (
    cast_vector,
    constant_bytes,
    push_constant,
    resize,
)
from mlcweb.codegen.wasm.select_memory import load_vector
from mlcweb.codegen.wasm.select_operation import Rule, operation
from mlcweb.codegen.wasm.select_scalar import let, variable
from mlcweb.codegen.wasm.select_types import (
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
from mlcweb.tir.operators import operands_of

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector


def _broadcast(selector: FunctionSelector, expression: E.Broadcast) -> None:
    value, dtype = expression.value, expression.value.dtype
    lanes = dtypes.lanes(expression.dtype)
    check_vector(expression.dtype)
    if isinstance(value, (E.IntImm, E.FloatImm)):
        push_constant(selector, constant_bytes(value.value, dtype, lanes))
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
        _splat_mask(selector, lanes)
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
        (lane * factor & mask).to_bytes(size, "little")
        for lane in range(dtypes.lanes(expression.dtype))
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
        operation(plain)(selector, expression)
        return
    check_vector(expression.dtype)
    selector.push(product.a, product.b, other)
    selector.emit(f"{vector_shape(dtypes.element_of(expression.dtype))}.{fused}")


def extremum(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
    check_vector(expression.dtype)
    element = dtypes.element_of(expression.dtype)
    shape = vector_shape(element)
    name = "min" if isinstance(expression, E.Min) else "max"
    a, b = expression.a, expression.b
    if dtypes.is_float(element):
        # `pmin(a, b)` is `b < a ? b : a`, which is NaN where `a` is; where `b` is, NaN is put in.
        # That is much faster than `min`, which also looks at the signs of zeros.
        selector.push(a, b)
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
        comparison = E.LT if name == "min" else E.GT
        _choose(selector, comparison(a, b), a, b)
    else:
        selector.push(a, b)
        selector.emit(f"{shape}.{name}{sign_suffix(element)}")


def comparison(name: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.ComparisonExpr) -> None:
        element, lanes = dtypes.element_of(expression.a.dtype), dtypes.lanes(expression.dtype)
        selector.push(expression.a, expression.b)
        if dtypes.is_bool(element):
            selector.emit("v128.xor")
            if name == "eq":
                selector.emit("v128.not")
            return
        check_vector(expression.a.dtype)
        if element == "uint64" and name not in ("eq", "ne"):
            raise UnsupportedError("WebAssembly cannot compare vectors of uint64")
        suffix = "" if name in ("eq", "ne") else sign_suffix(element)
        selector.emit(f"{vector_shape(element)}.{name}{suffix}")
        resize(selector, dtypes.bits(element), mask_bits(lanes))

    return rule


def choice(selector: FunctionSelector, expression: E.Select | E.Call) -> None:
    _choose(selector, *operands_of(expression))


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
    no_is_zero = (
        isinstance(no, E.Broadcast) and isinstance(no.value, E.IntImm) and not no.value.value
    )
    selector.push(*((yes, condition) if no_is_zero else (yes, no, condition)))
    if not dtypes.is_bool(yes.dtype):
        resize(selector, mask_bits(lanes), dtypes.bits(yes.dtype))
    selector.emit("v128.and" if no_is_zero else "v128.bitselect")


def cast(selector: FunctionSelector, expression: E.Cast) -> None:
    check_vector(expression.dtype)
    check_vector(expression.value.dtype)
    selector.push(expression.value)
    source = dtypes.element_of(expression.value.dtype)
    target = dtypes.element_of(expression.dtype)
    cast_vector(selector, source, target, dtypes.lanes(expression.dtype))


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


def instruction(selector: FunctionSelector, call: E.Call) -> None:
    """The one instruction that is not expanded, "llvm.wasm.dot" to LLVM: products of int16,
    neighbours added."""
    name, *operands = call.args
    types = (call.dtype, *(operand.dtype for operand in operands))
    if types != ("int32x4", "int16x8", "int16x8"):
        raise UnsupportedError(f"WebAssembly has no instruction {name} of {types}", call.span)
    selector.push(*operands)
    selector.emit("i32x4.dot_i16x8_s")


def copysign(selector: FunctionSelector, call: E.Call) -> None:
    element = dtypes.element_of(call.dtype)
    sign = wrap_integer(1 << (dtypes.bits(element) - 1), f"int{dtypes.bits(element)}")
    selector.push(*call.args)
    push_constant(selector, constant_bytes(~sign, f"int{dtypes.bits(element)}", 1))
    selector.emit("v128.bitselect")


LEAVES: dict[type, Rule] = {
    E.Var: variable,
    E.Broadcast: _broadcast,
    E.Ramp: _ramp,
    E.BufferLoad: load_vector,
    E.Let: let,
}
"""What is no operator."""
