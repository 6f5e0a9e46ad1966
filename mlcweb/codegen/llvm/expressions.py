"""Expressions to instructions, those of scalars and of vectors alike.

Integers wrap around. No instruction is told that something cannot happen (`nsw`, `inbounds`, fast
arithmetic) unless that is known, so that nothing a program does is undefined but to reach outside
of its buffers; what has no result (a division by zero) stops the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.llvm.types import argument_type, constant, suffix, value_type
from mlcweb.codegen.processor.math import Expansion
from mlcweb.codegen.processor.selection import (
    UnsupportedError,
    is_cheap,
    is_positive,
    is_unsigned,
)
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.operators import operands_of

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector

Rule = Callable[["Selector", Any], str]

DIVIDED_BY_ZERO, CHECK_FAILED, PYTHON_FAILED = 1, 2, 3
"""What a kernel returns that stopped; and 4, where memory is lacking (`builder.OUT_OF_MEMORY`)."""


def typed(expression: E.PrimExpr) -> str:
    return value_type(expression.dtype)


def number(selector: Selector, expression: E.IntImm | E.FloatImm) -> str:
    return constant(expression.value, expression.dtype)


def variable(selector: Selector, var: E.Var) -> str:
    return selector.values[var]


def let(selector: Selector, expression: E.Let) -> str:
    selector.values[expression.var] = selector.value(expression.value)
    return selector.value(expression.body)


def broadcast(selector: Selector, expression: E.Broadcast) -> str:
    value = expression.value
    if isinstance(value, (E.IntImm, E.FloatImm)):
        return constant(value.value, expression.dtype)
    return splat(selector, selector.value(value), expression.dtype)


def splat(selector: Selector, value: str, dtype: str) -> str:
    """A scalar in all lanes."""
    kind, lanes = value_type(dtype), dtypes.lanes(dtype)
    element = value_type(dtypes.element_of(dtype))
    first = selector.builder.value(f"insertelement {kind} poison, {element} {value}, i64 0")
    return selector.builder.value(
        f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"
    )


def ramp(selector: Selector, expression: E.Ramp) -> str:
    dtype, kind = expression.dtype, typed(expression)
    element = value_type(expression.base.dtype)
    steps = ", ".join(f"{element} {lane}" for lane in range(dtypes.lanes(dtype)))
    base = splat(selector, selector.value(expression.base), dtype)
    stride = splat(selector, selector.value(expression.stride), dtype)
    moved = selector.builder.value(f"mul {kind} {stride}, <{steps}>")
    return selector.builder.value(f"add {kind} {base}, {moved}")


def arithmetic(name: str) -> Rule:
    def rule(selector: Selector, expression: E.BinaryExpr) -> str:
        return binary(selector, name, expression.a, expression.b)

    return rule


def binary(selector: Selector, name: str, a: E.PrimExpr, b: E.PrimExpr) -> str:
    """An instruction on two values; that of floats begins with "f"."""
    real = "f" if dtypes.is_float(dtypes.element_of(a.dtype)) else ""
    first, second = selector.value(a), selector.value(b)
    return selector.builder.value(f"{real}{name} {typed(a)} {first}, {second}")


def add(selector: Selector, expression: E.Add) -> str:
    a, b = expression.a, expression.b
    product, other = (b, a) if isinstance(b, E.Mul) else (a, b)
    if not (isinstance(product, E.Mul) and selector.fuses(product)):
        return binary(selector, "add", a, b)
    return _fused(selector, selector.value(product.a), product, selector.value(other))


def subtract(selector: Selector, expression: E.Sub) -> str:
    a, b = expression.a, expression.b
    if not (isinstance(b, E.Mul) and selector.fuses(b)):
        return binary(selector, "sub", a, b)
    minuend = selector.value(a)
    negated = selector.builder.value(f"fneg {typed(b)} {selector.value(b.a)}")
    return _fused(selector, negated, b, minuend)


def _fused(selector: Selector, first: str, product: E.Mul, other: str) -> str:
    """A product and a sum, rounded once."""
    arguments = [first, selector.value(product.b), other]
    return intrinsic(selector, "fma", product.dtype, *arguments)


def intrinsic(selector: Selector, name: str, dtype: str, *values: str) -> str:
    """A call of an intrinsic function on values of one type."""
    kind = value_type(dtype)
    return selector.builder.call(
        kind, f"llvm.{name}.{suffix(dtype)}", [(kind, value) for value in values]
    )


def instruction(selector: Selector, call: E.Call) -> str:
    """A call of the intrinsic function that is an instruction of this very processor."""
    name, *operands = call.args
    assert isinstance(name, E.StringImm)
    values = [(typed(operand), selector.value(operand)) for operand in operands]
    return selector.builder.call(typed(call), name.value, values)


def intrinsic_of(name: str) -> Rule:
    """A function of floats that is an intrinsic one."""

    def rule(selector: Selector, call: E.Call) -> str:
        return intrinsic(selector, name, call.dtype, *map(selector.value, call.args))

    return rule


def copy_sign(selector: Selector, call: E.Call) -> str:
    """The magnitude of one float with the sign of another.

    Not LLVM's function: for a float16 with the sign of a double, into which LLVM turns others, it
    calls another one that is in no library.
    """
    emit, lanes = selector.builder.value, dtypes.lanes(call.dtype)
    integer = dtypes.with_lanes(f"int{dtypes.bits(call.dtype)}", lanes)
    condition = dtypes.with_lanes("bool", lanes)
    kind, bits = typed(call), value_type(integer)
    magnitude, sign = map(selector.value, call.args)
    is_negative = emit(
        f"icmp slt {bits} {emit(f'bitcast {kind} {sign} to {bits}')}, {constant(0, integer)}"
    )
    positive = intrinsic(selector, "fabs", call.dtype, magnitude)
    negative = emit(f"fneg {kind} {positive}")
    return emit(
        f"select {value_type(condition)} {is_negative}, {kind} {negative}, {kind} {positive}"
    )


def division(name: str) -> Rule:
    """Division towards zero ("div") or its remainder ("rem"), or the same rounding down."""
    floors, name = name.startswith("floor"), name.removeprefix("floor")

    def rule(selector: Selector, expression: E.BinaryExpr) -> str:
        a, b = expression.a, expression.b
        if dtypes.is_float(dtypes.element_of(expression.dtype)):
            if name == "div" and not floors:
                return binary(selector, "div", a, b)
            raise UnsupportedError("The remainder of floats is T.fmod", expression.span)
        if dtypes.lanes(expression.dtype) > 1:
            return _lane_by_lane(selector, expression, rule)
        if is_unsigned(expression.dtype) or (
            floors and is_positive(b) and selector.indices.interval(a)[0] >= 0
        ):
            divisor = _not_zero(selector, b)
            kind = typed(expression)
            return selector.builder.value(f"u{name} {kind} {selector.value(a)}, {divisor}")
        return _signed_division(selector, expression, floors, name == "div")

    return rule


def _lane_by_lane(selector: Selector, expression: E.BinaryExpr, rule: Rule) -> str:
    """A vector whose lanes are computed one by one."""
    emit, kind, element = selector.builder.value, typed(expression), dtypes.element_of
    sides = [(side, selector.value(side)) for side in operands_of(expression)]
    result, lane_kind = "poison", value_type(element(expression.dtype))
    for lane in range(dtypes.lanes(expression.dtype)):
        operands: list[E.PrimExpr] = []
        for side, vector in sides:
            if isinstance(side, E.Broadcast) and isinstance(side.value, E.IntImm):
                operands.append(side.value)
                continue
            operand = E.Var("lane", element(side.dtype))
            selector.values[operand] = emit(f"extractelement {typed(side)} {vector}, i64 {lane}")
            operands.append(operand)
        value = rule(selector, type(expression)(*operands))
        result = emit(f"insertelement {kind} {result}, {lane_kind} {value}, i64 {lane}")
    return result


def _not_zero(selector: Selector, divisor: E.PrimExpr) -> str:
    """A divisor; the kernel stops where it is zero."""
    value = selector.value(divisor)
    if not (isinstance(divisor, E.IntImm) and divisor.value):
        good = selector.builder.value(f"icmp ne {typed(divisor)} {value}, 0")
        selector.builder.stop_unless(good, str(DIVIDED_BY_ZERO), lambda: None)
    return value


def _signed_division(
    selector: Selector, expression: E.BinaryExpr, floors: bool, wants_quotient: bool
) -> str:
    emit, kind = selector.builder.value, typed(expression)
    a, b = selector.value(expression.a), _not_zero(selector, expression.b)
    constant_divisor = expression.b.value if isinstance(expression.b, E.IntImm) else None
    if constant_divisor in (None, -1):
        # The least integer over -1 is itself; the instruction has no result there.
        negates = emit(f"icmp eq {kind} {b}, -1")
        divisor = emit(f"select i1 {negates}, {kind} 1, {kind} {b}")
        remainder = emit(f"srem {kind} {a}, {divisor}")
        quotient = emit(f"sdiv {kind} {a}, {divisor}")
        negated = emit(f"sub {kind} 0, {a}")
        quotient = emit(f"select i1 {negates}, {kind} {negated}, {kind} {quotient}")
    else:
        remainder = emit(f"srem {kind} {a}, {b}")
        quotient = emit(f"sdiv {kind} {a}, {b}") if wants_quotient else ""
    towards_zero = quotient if wants_quotient else remainder
    if not floors:
        return towards_zero
    signs = emit(f"xor {kind} {remainder}, {b}")
    differ = emit(f"icmp slt {kind} {signs}, 0")
    left = emit(f"icmp ne {kind} {remainder}, 0")
    down = emit(f"and i1 {differ}, {left}")
    step = emit(f"select i1 {down}, {kind} {-1 if wants_quotient else b}, {kind} 0")
    return emit(f"add {kind} {towards_zero}, {step}")


def extremum(selector: Selector, expression: E.BinaryExpr) -> str:
    """The least or greatest of two numbers; NaN if either is."""
    emit, kind, dtype = selector.builder.value, typed(expression), expression.dtype
    element = dtypes.element_of(dtype)
    condition = value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
    less = isinstance(expression, E.Min)
    a, b = selector.value(expression.a), selector.value(expression.b)
    if not dtypes.is_float(element):
        sign = "u" if is_unsigned(element) else "s"
        chosen = emit(f"icmp {sign}{'lt' if less else 'gt'} {kind} {b}, {a}")
        return emit(f"select {condition} {chosen}, {kind} {b}, {kind} {a}")
    # The comparison fails for NaN, so that the result is one where `a` is.
    chosen = emit(f"fcmp o{'lt' if less else 'gt'} {kind} {b}, {a}")
    result = emit(f"select {condition} {chosen}, {kind} {b}, {kind} {a}")
    right = expression.b.value if isinstance(expression.b, E.Broadcast) else expression.b
    if isinstance(right, E.FloatImm) and not isnan(right.value):
        return result
    missing = emit(f"fcmp uno {kind} {b}, {b}")
    return emit(f"select {condition} {missing}, {kind} {b}, {kind} {result}")


def comparison(name: str) -> Rule:
    equality = name in ("eq", "ne")

    def rule(selector: Selector, expression: E.ComparisonExpr) -> str:
        element = dtypes.element_of(expression.a.dtype)
        a, b = selector.value(expression.a), selector.value(expression.b)
        if dtypes.is_float(element):
            order = "u" if name == "ne" else "o"
            return selector.builder.value(f"fcmp {order}{name} {typed(expression.a)} {a}, {b}")
        sign = "" if equality else "u" if is_unsigned(element) else "s"
        return selector.builder.value(f"icmp {sign}{name} {typed(expression.a)} {a}, {b}")

    return rule


def logical(name: str) -> Rule:
    """`and` or `or`: where the first operand decides, a second one that is not cheap is skipped."""

    def rule(selector: Selector, expression: E.And | E.Or) -> str:
        if dtypes.lanes(expression.dtype) > 1 or is_cheap(expression.b):
            return binary(selector, name, expression.a, expression.b)
        first = selector.value(expression.a)
        if name == "and":
            return selector.either(
                first, "i1", lambda: selector.value(expression.b), lambda: "false"
            )
        return selector.either(first, "i1", lambda: "true", lambda: selector.value(expression.b))

    return rule


def negation(selector: Selector, expression: E.Not) -> str:
    true = constant(1, expression.dtype)
    return selector.builder.value(f"xor {typed(expression)} {selector.value(expression.a)}, {true}")


def choice(selector: Selector, expression: E.Select | E.Call) -> str:
    """One of two values; the other is computed only if that is harmless."""
    condition, yes, no = operands_of(expression)
    kind = typed(yes)
    chosen = selector.value(condition)
    if dtypes.lanes(condition.dtype) == 1 and not (is_cheap(yes) and is_cheap(no)):
        return selector.either(
            chosen, kind, lambda: selector.value(yes), lambda: selector.value(no)
        )
    first, second = selector.value(yes), selector.value(no)
    return selector.builder.value(
        f"select {typed(condition)} {chosen}, {kind} {first}, {kind} {second}"
    )


def bitwise(name: str) -> Rule:
    def rule(selector: Selector, call: E.Call) -> str:
        a, b = map(selector.value, call.args)
        return selector.builder.value(f"{name} {typed(call)} {a}, {b}")

    return rule


def bitwise_not(selector: Selector, call: E.Call) -> str:
    ones = constant(-1 if not dtypes.is_bool(call.dtype) else 1, call.dtype)
    return selector.builder.value(f"xor {typed(call)} {selector.value(call.args[0])}, {ones}")


def shift(selector: Selector, call: E.Call) -> str:
    """As many bits as the lower bits of the amount say; integers of fewer than 32 bits are shifted
    as ones of 32."""
    value, amount = call.args
    dtype = call.dtype
    kind, lanes = dtypes.kind(dtype), dtypes.lanes(dtype)
    width = max(dtypes.bits(dtype), 32)
    wide = dtypes.with_lanes(f"{'uint' if is_unsigned(dtype) else kind}{width}", lanes)
    first = convert(selector, selector.value(value), dtype, wide)
    second = convert(selector, selector.value(amount), amount.dtype, wide)
    masked = selector.builder.value(f"and {value_type(wide)} {second}, {constant(width - 1, wide)}")
    left = call.op.name.endswith("left")  # type: ignore[union-attr]
    name = "shl" if left else "lshr" if is_unsigned(dtype) else "ashr"
    shifted = selector.builder.value(f"{name} {value_type(wide)} {first}, {masked}")
    return convert(selector, shifted, wide, dtype)


def absolute(selector: Selector, call: E.Call) -> str:
    value, dtype = selector.value(call.args[0]), call.dtype
    if dtypes.is_float(dtypes.element_of(dtype)):
        return intrinsic(selector, "fabs", dtype, value)
    if is_unsigned(dtype):
        return value
    kind = typed(call)
    return selector.builder.call(
        kind, f"llvm.abs.{suffix(dtype)}", [(kind, value), ("i1", "false")]
    )


def function(expansion: Expansion) -> Rule:
    """A function in terms of arithmetic."""
    return lambda selector, call: selector.value(expansion.of(call))


def likely(selector: Selector, call: E.Call) -> str:
    return selector.value(call.args[0])


def reinterpret(selector: Selector, call: E.Call) -> str:
    value = call.args[0]
    before, after = typed(value), typed(call)
    bits = selector.value(value)
    return (
        bits if before == after else selector.builder.value(f"bitcast {before} {bits} to {after}")
    )


def cast(selector: Selector, expression: E.Cast) -> str:
    value = expression.value
    return convert(selector, selector.value(value), value.dtype, expression.dtype)


def convert(selector: Selector, value: str, source: str, target: str) -> str:
    """A value of one type in another."""
    before, after = value_type(source), value_type(target)
    start, end = dtypes.element_of(source), dtypes.element_of(target)
    emit = selector.builder.value
    if start == end:
        return value
    if dtypes.is_bool(end):
        compare = "fcmp une" if dtypes.is_float(start) else "icmp ne"
        return emit(f"{compare} {before} {value}, {constant(0, source)}")
    if "float16" in (start, end) and "float32" not in (start, end):
        # There is no other way in most processors, and the rest agree with those.
        middle = dtypes.with_lanes("float32", dtypes.lanes(source))
        return convert(selector, convert(selector, value, source, middle), middle, target)
    if dtypes.is_float(start) and dtypes.is_float(end):
        name = "fpext" if dtypes.bits(end) > dtypes.bits(start) else "fptrunc"
        return emit(f"{name} {before} {value} to {after}")
    if dtypes.is_float(end):
        name = "uitofp" if is_unsigned(start) else "sitofp"
        return emit(f"{name} {before} {value} to {after}")
    if dtypes.is_float(start):
        # Out of range gives the nearest end, and NaN zero.
        name = "fptoui" if is_unsigned(end) else "fptosi"
        full = f"llvm.{name}.sat.{suffix(target)}.{suffix(source)}"
        return selector.builder.call(after, full, [(before, value)])
    if before == after:
        return value
    narrower = dtypes.bits(end) < dtypes.bits(start)
    name = "trunc" if narrower else "zext" if is_unsigned(start) else "sext"
    return emit(f"{name} {before} {value} to {after}")


def passed(selector: Selector, value: str, dtype: str) -> tuple[str, str]:
    """A scalar as an argument: its type and value there."""
    return argument_type(dtype), convert(selector, value, dtype, _passed_type(dtype))


def received(selector: Selector, value: str, dtype: str) -> str:
    """An argument as a scalar of its type."""
    return convert(selector, value, _passed_type(dtype), dtype)


def _passed_type(dtype: str) -> str:
    if dtypes.is_float(dtype):
        return "float64" if dtype == "float64" else "float32"
    width = 64 if dtypes.bits(dtype) == 64 else 32
    return f"{'uint' if is_unsigned(dtype) else 'int'}{width}"
