"""Vector expressions and accesses to SIMD instructions.

A vector of type `float32x4` is one v128. Shorter vectors fill its lower lanes. Conditions are
masks, all ones or all zeros in each lane, whose lanes share the whole 128 bits among them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.wasm.math import expand
from mlcweb.codegen.wasm.select_scalar import UNARY_INSTRUCTIONS
from mlcweb.codegen.wasm.select_types import (
    UnsupportedError,
    check_vector,
    mask_bits,
    sign_suffix,
    stack_type,
    vector_shape,
)
from mlcweb.ir.op import Op
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.dtype import wrap_integer
from mlcweb.tir.transform.optimize.accesses import REGISTER_SCOPE

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector

Rule = Callable[["FunctionSelector", Any], None]

ALL_ONES = b"\xff" * 16
ALL_ZEROS = bytes(16)
_FORMATS = {"float32": "f", "float64": "d"}


def constant_bytes(value: float, dtype: str, lanes: int) -> bytes:
    """The 16 bytes of a vector with `value` in all lanes."""
    if dtypes.is_bool(dtype):
        return ALL_ONES if value else ALL_ZEROS
    if dtypes.is_float(dtype):
        one = struct.pack("<" + _FORMATS[dtype], value)
    else:
        size = dtypes.size_in_bytes(dtype)
        one = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return (one * 16)[:16]


def push_constant(selector: FunctionSelector, value: bytes) -> None:
    """A vector constant."""
    selector.emit("v128.const", value)


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


def _load(selector: FunctionSelector, load: E.BufferLoad) -> None:
    check_vector(load.dtype)
    if load.buffer.scope() == REGISTER_SCOPE:
        local, _ = selector.register(load)
        selector.emit("local.get", local)
        return
    index, dtype = load.indices[0], load.buffer.dtype
    size = dtypes.size_in_bytes(dtype)
    place = selector.addresses.place(load)
    lanes = dtypes.lanes(load.dtype)
    if _is_contiguous(index):
        selector.addresses.push(place)
        if lanes * size == 16:
            selector.emit("v128.load", place.offset)
        elif lanes * size >= 4:
            selector.emit(f"v128.load{lanes * size * 8}_zero", place.offset)
        else:
            selector.emit("v128.const", ALL_ZEROS)
            selector.emit("v128.load16_lane", place.offset, 0)
    else:
        _gather(selector, load, size, lanes)
    if dtypes.is_bool(dtype):
        selector.emit("v128.const", ALL_ZEROS)
        selector.emit("i8x16.ne")
        resize_mask(selector, 8, mask_bits(lanes))


def _is_contiguous(index: E.PrimExpr) -> bool:
    """Whether an index names elements next to each other."""
    step = index.stride if isinstance(index, E.Ramp) else None
    return isinstance(step, E.IntImm) and step.value == 1


def _gather(selector: FunctionSelector, load: E.BufferLoad, size: int, lanes: int) -> None:
    """Lanes from places that are not next to each other."""
    result = selector.builder.local("v128")
    selector.emit("v128.const", ALL_ZEROS)
    selector.emit("local.set", result)
    for lane, push_address in enumerate(_lane_addresses(selector, load)):
        offset = push_address()
        selector.emit("local.get", result)
        selector.emit(f"v128.load{size * 8}_lane", offset, lane)
        selector.emit("local.set", result)
    selector.emit("local.get", result)
    selector.builder.release(result)


def _lane_addresses(
    selector: FunctionSelector, access: E.BufferLoad | S.BufferStore
) -> list[Callable[[], int]]:
    """For each lane, what pushes its address and gives the offset that goes with it."""
    index = access.indices[0]
    if not isinstance(index, E.Ramp):
        raise UnsupportedError("WebAssembly has no gathering access", access.span)
    size = dtypes.size_in_bytes(access.buffer.dtype)
    place = selector.addresses.place(access)

    def pusher(lane: int) -> Callable[[], int]:
        def push() -> int:
            selector.addresses.push(place)
            step = index.stride
            if isinstance(step, E.IntImm) and step.value >= 0:
                return place.offset + lane * step.value * size
            selector.addresses.add_scaled(step, lane * size)
            return place.offset

        return push

    return [pusher(lane) for lane in range(index.lanes)]


def store_vector(selector: FunctionSelector, store: S.BufferStore) -> None:
    """A store of several elements."""
    index, dtype = store.indices[0], store.buffer.dtype
    size = dtypes.size_in_bytes(dtype)
    lanes = dtypes.lanes(index.dtype)
    check_vector(store.value.dtype)
    if _is_contiguous(index):
        place = selector.addresses.place(store)
        selector.addresses.push(place)
        _push_elements(selector, store.value)
        if lanes * size == 16:
            selector.emit("v128.store", place.offset)
        else:
            selector.emit(f"v128.store{lanes * size * 8}_lane", place.offset, 0)
        return
    value = selector.builder.local("v128")
    _push_elements(selector, store.value)
    selector.emit("local.set", value)
    for lane, push_address in enumerate(_lane_addresses(selector, store)):
        offset = push_address()
        selector.emit("local.get", value)
        selector.emit(f"v128.store{size * 8}_lane", offset, lane)
    selector.builder.release(value)


def _push_elements(selector: FunctionSelector, value: E.PrimExpr) -> None:
    """A value as it stands in memory: conditions are bytes of 0 or 1 there."""
    selector.push(value)
    if dtypes.is_bool(value.dtype):
        resize_mask(selector, mask_bits(dtypes.lanes(value.dtype)), 8)
        push_constant(selector, constant_bytes(1, "uint8", 16))
        selector.emit("v128.and")


def resize_mask(selector: FunctionSelector, source: int, target: int) -> None:
    """Change the width of the lanes of the mask on the stack; it fills the lower lanes."""
    while source < target:
        selector.emit(f"{_shape(source * 2)}.extend_low_{_shape(source)}_s")
        source *= 2
    if source > target:
        narrow(selector, source // 8, target // 8)


def _shape(bits: int) -> str:
    return f"i{bits}x{128 // bits}"


def narrow(selector: FunctionSelector, source: int, target: int) -> None:
    """Keep the lower `target` bytes of each lane of `source` bytes."""
    kept = [lane * source + byte for lane in range(16 // source) for byte in range(target)]
    selector.emit("v128.const", ALL_ZEROS)
    selector.emit("i8x16.shuffle", tuple(kept + [16] * (16 - len(kept))))


def _arithmetic(operation: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
        check_vector(expression.dtype)
        shape = vector_shape(dtypes.element_of(expression.dtype))
        if shape == "i8x16" and operation == "mul":
            raise UnsupportedError("WebAssembly has no product of vectors of bytes")
        selector.push(expression.a)
        selector.push(expression.b)
        selector.emit(f"{shape}.{operation}")

    return rule


def _add(selector: FunctionSelector, expression: E.Add) -> None:
    a, b = expression.a, expression.b
    if selector.options.relaxed_madd and dtypes.is_float(expression.dtype):
        product, other = (b, a) if isinstance(b, E.Mul) else (a, b)
        if isinstance(product, E.Mul):
            check_vector(expression.dtype)
            for operand in (product.a, product.b, other):
                selector.push(operand)
            selector.emit(f"{vector_shape(dtypes.element_of(expression.dtype))}.relaxed_madd")
            return
    _arithmetic("add")(selector, expression)


def _division(selector: FunctionSelector, expression: E.Div) -> None:
    if not dtypes.is_float(expression.dtype):
        raise UnsupportedError("WebAssembly has no division of vectors of integers")
    _arithmetic("div")(selector, expression)


def _extremum(selector: FunctionSelector, expression: E.BinaryExpr) -> None:
    check_vector(expression.dtype)
    element = dtypes.element_of(expression.dtype)
    shape = vector_shape(element)
    name = "min" if isinstance(expression, E.Min) else "max"
    a, b = expression.a, expression.b
    if dtypes.is_float(element):
        # `pmin(a, b)` is `b < a ? b : a`, which is NaN where `a` is; it is much faster.
        constant = isinstance(b, E.Broadcast) and isinstance(b.value, E.FloatImm)
        selector.push(a)
        selector.push(b)
        selector.emit(f"{shape}.{'p' if constant else ''}{name}")
    elif shape == "i64x2":
        operation = E.LT if name == "min" else E.GT
        _choose(selector, operation(a, b), a, b)
    else:
        selector.push(a)
        selector.push(b)
        selector.emit(f"{shape}.{name}{sign_suffix(element)}")


def _comparison(operation: str) -> Rule:
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


def _logical(operation: str) -> Rule:
    def rule(selector: FunctionSelector, expression: E.ComparisonExpr) -> None:
        selector.push(expression.a)
        selector.push(expression.b)
        selector.emit(f"v128.{operation}")

    return rule


def _not(selector: FunctionSelector, expression: E.Not) -> None:
    selector.push(expression.a)
    selector.emit("v128.not")


def _select(selector: FunctionSelector, expression: E.Select) -> None:
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


def _cast(selector: FunctionSelector, expression: E.Cast) -> None:
    check_vector(expression.dtype)
    check_vector(expression.value.dtype)
    selector.push(expression.value)
    source = dtypes.element_of(expression.value.dtype)
    target = dtypes.element_of(expression.dtype)
    cast_vector(selector, source, target, dtypes.lanes(expression.dtype))


def cast_vector(selector: FunctionSelector, source: str, target: str, lanes: int) -> None:
    """Convert the vector on the stack."""
    emit = selector.emit
    before, after = dtypes.bits(source), dtypes.bits(target)
    if source == target:
        return
    if dtypes.is_bool(source):
        resize_mask(selector, mask_bits(lanes), after)
        push_constant(selector, constant_bytes(1, target, lanes))
        emit("v128.and")
    elif dtypes.is_bool(target):
        emit("v128.const", ALL_ZEROS)
        emit(f"{vector_shape(source)}.ne")
        resize_mask(selector, before, mask_bits(lanes))
    elif dtypes.is_float(source) and dtypes.is_float(target):
        emit("f64x2.promote_low_f32x4" if after == 64 else "f32x4.demote_f64x2_zero")
    elif dtypes.is_float(target):
        if before > 32:
            raise UnsupportedError(f"WebAssembly cannot convert vectors of {source} to {target}")
        _resize_integers(selector, source, before, 32)
        suffix = sign_suffix(source)
        emit(f"f32x4.convert_i32x4{suffix}" if after == 32 else f"f64x2.convert_low_i32x4{suffix}")
    elif dtypes.is_float(source):
        if after > 32:
            raise UnsupportedError(f"WebAssembly cannot convert vectors of {source} to {target}")
        suffix = sign_suffix(target) if after == 32 else "_s"
        emit(
            f"i32x4.trunc_sat_f32x4{suffix}"
            if before == 32
            else f"i32x4.trunc_sat_f64x2{suffix}_zero"
        )
        if after < 32:
            push_constant(selector, constant_bytes(dtypes.min_value(target), "int32", 4))
            emit("i32x4.max_s")
            push_constant(selector, constant_bytes(dtypes.max_value(target), "int32", 4))
            emit("i32x4.min_s")
            narrow(selector, 4, after // 8)
    else:
        _resize_integers(selector, source, before, after)


def _resize_integers(selector: FunctionSelector, source: str, before: int, after: int) -> None:
    while before < after:
        suffix = sign_suffix(source)
        selector.emit(f"{_shape(before * 2)}.extend_low_{_shape(before)}{suffix}")
        before *= 2
    if before > after:
        narrow(selector, before // 8, after // 8)


def _call(selector: FunctionSelector, call: E.Call) -> None:
    if not isinstance(call.op, Op):
        raise UnsupportedError("Functions of the module cannot be called on vectors", call.span)
    name = call.op.name.removeprefix("tir.")
    rule = _CALLS.get(name)
    if rule is not None:
        rule(selector, call)
        return
    element = dtypes.element_of(call.dtype)
    instruction = UNARY_INSTRUCTIONS.get(name)
    if instruction is not None and dtypes.is_float(element):
        check_vector(call.dtype)
        selector.push(call.args[0])
        selector.emit(f"{vector_shape(element)}.{instruction}")
        return
    expansion = expand(name, call.args)
    if expansion is None:
        raise UnsupportedError(f"{call.op.name} has no WebAssembly form", call.span)
    selector.push(expansion)


def _if_then_else(selector: FunctionSelector, call: E.Call) -> None:
    _choose(selector, *call.args)


def _bitwise(operation: str) -> Rule:
    def rule(selector: FunctionSelector, call: E.Call) -> None:
        for argument in call.args:
            selector.push(argument)
        selector.emit(f"v128.{operation}")

    return rule


def _shift(selector: FunctionSelector, call: E.Call) -> None:
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


def _reinterpret(selector: FunctionSelector, call: E.Call) -> None:
    selector.push(call.args[0])


def _absolute(selector: FunctionSelector, call: E.Call) -> None:
    selector.push(call.args[0])
    selector.emit(f"{vector_shape(dtypes.element_of(call.dtype))}.abs")


def _copysign(selector: FunctionSelector, call: E.Call) -> None:
    element = dtypes.element_of(call.dtype)
    sign = wrap_integer(1 << (dtypes.bits(element) - 1), f"int{dtypes.bits(element)}")
    for argument in call.args:
        selector.push(argument)
    push_constant(selector, constant_bytes(~sign, f"int{dtypes.bits(element)}", 1))
    selector.emit("v128.bitselect")


_CALLS: dict[str, Rule] = {
    "if_then_else": _if_then_else,
    "bitwise_and": _bitwise("and"),
    "bitwise_or": _bitwise("or"),
    "bitwise_xor": _bitwise("xor"),
    "bitwise_not": _bitwise("not"),
    "shift_left": _shift,
    "shift_right": _shift,
    "reinterpret": _reinterpret,
    "abs": _absolute,
    "copysign": _copysign,
}

VECTOR_RULES: dict[type, Rule] = {
    E.Var: _variable,
    E.Broadcast: _broadcast,
    E.Ramp: _ramp,
    E.BufferLoad: _load,
    E.Add: _add,
    E.Sub: _arithmetic("sub"),
    E.Mul: _arithmetic("mul"),
    E.Div: _division,
    E.Min: _extremum,
    E.Max: _extremum,
    E.EQ: _comparison("eq"),
    E.NE: _comparison("ne"),
    E.LT: _comparison("lt"),
    E.LE: _comparison("le"),
    E.GT: _comparison("gt"),
    E.GE: _comparison("ge"),
    E.And: _logical("and"),
    E.Or: _logical("or"),
    E.Not: _not,
    E.Select: _select,
    E.Let: _let,
    E.Cast: _cast,
    E.Call: _call,
}
