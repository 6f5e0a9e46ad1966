"""Small functions that generated code calls: integer divisions that no instruction does, and the
conversions of 16-bit floats. They are written in the text format of WebAssembly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import Function

NEEDS = {
    "i32_floordiv": ("i32_truncdiv",),
    "i64_floordiv": ("i64_truncdiv",),
    "round_float16": ("float16_bits", "float16_value"),
}
"""The helpers that a helper calls."""


def helper_functions(names: Iterable[str]) -> list[Function]:
    """The helpers of these names and those that they need, in a fixed order."""
    wanted = set(names)
    for name in tuple(wanted):
        wanted.update(NEEDS.get(name, ()))
    return [_helper(name) for name in sorted(wanted)]


@cache
def _helper(name: str) -> Function:
    return _MAKERS[name](name)


def _assembled(
    name: str,
    parameters: Mapping[str, ValueType],
    result: ValueType,
    text: str,
    locals_: Mapping[str, ValueType] = {},
) -> Function:
    """A function from the text of its body."""
    builder = FunctionBuilder(name, list(parameters.items()), [result])
    for local, type in locals_.items():
        builder.local(type, local)
    builder.code(text)
    return builder.build()


def _truncdiv(int_type: ValueType, name: str) -> Function:
    """a / b towards zero. The least integer over -1 is itself; the instruction traps there."""
    text = f"""
        local.get b  {int_type}.const -1  {int_type}.eq
        if {int_type}
            {int_type}.const 0  local.get a  {int_type}.sub
        else
            local.get a  local.get b  {int_type}.div_s
        end"""
    return _assembled(name, {"a": int_type, "b": int_type}, int_type, text)


def _floor(int_type: ValueType, wants_quotient: bool, name: str) -> Function:
    """Quotient or remainder of the division that rounds down: one less (one divisor more) than the
    division towards zero, where there is a remainder whose sign is not that of the divisor."""
    towards_zero, correction = "local.get remainder", "local.get b"
    if wants_quotient:
        towards_zero = f"local.get a  local.get b  call {int_type}_truncdiv"
        correction = f"{int_type}.const -1"
    text = f"""
        local.get a  local.get b  {int_type}.rem_s  local.set remainder
        {towards_zero}
        {correction}
        {int_type}.const 0
        local.get remainder  local.get b  {int_type}.xor  {int_type}.const 0  {int_type}.lt_s
        local.get remainder  {int_type}.const 0  {int_type}.ne
        i32.and
        select
        {int_type}.add"""
    parameters = {"a": int_type, "b": int_type}
    return _assembled(name, parameters, int_type, text, {"remainder": int_type})


def _float16_value(name: str) -> Function:
    """The float32 that 16 bits stand for.

    The exponent and fraction are moved to where a float32 has them, and the difference of the
    biases is made up by a multiplication, which also makes subnormal numbers right.
    """
    text = f"""
        local.get bits  i32.const 0x7FFF  i32.and  i32.const 13  i32.shl
        f32.reinterpret_i32  f32.const {2.0**112}  f32.mul  local.tee value
        f32.const 65536  f32.ge
        if i32  ;; exponents of all ones, infinities and NaNs, come out as 2^16 and more
            local.get value  i32.reinterpret_f32  i32.const 0x7F800000  i32.or
        else
            local.get value  i32.reinterpret_f32
        end
        local.get bits  i32.const 0x8000  i32.and  i32.const 16  i32.shl
        i32.or
        f32.reinterpret_i32"""
    return _assembled(name, {"bits": "i32"}, "f32", text, {"value": "f32"})


def _float16_bits(name: str) -> Function:
    """The 16 bits of the nearest 16-bit float, ties to even.

    Normal results are rounded in the integer that the bits are, where a carry into the exponent is
    right; subnormal ones by adding 1/2, whose last place is 2^-24.
    """
    text = f"""
        local.get value  f32.abs  local.set magnitude
        local.get magnitude  local.get magnitude  f32.ne
        if i32  ;; NaN
            i32.const 0x7E00
        else
            local.get magnitude  f32.const 65520  f32.ge
            if i32  ;; infinity
                i32.const 0x7C00
            else
                local.get magnitude  f32.const {2.0**-14}  f32.lt
                if i32  ;; subnormal
                    local.get magnitude  f32.const 0.5  f32.add
                    i32.reinterpret_f32  i32.const 0x3F000000  i32.sub
                else
                    local.get magnitude  i32.reinterpret_f32  local.tee bits
                    i32.const 13  i32.shr_u  i32.const 1  i32.and
                    local.get bits  i32.add  i32.const {0xFFF - (112 << 23)}  i32.add
                    i32.const 13  i32.shr_u
                end
            end
        end
        local.get value  i32.reinterpret_f32  i32.const 16  i32.shr_u  i32.const 0x8000  i32.and
        i32.or"""
    return _assembled(name, {"value": "f32"}, "i32", text, {"bits": "i32", "magnitude": "f32"})


def _round_float16(name: str) -> Function:
    """The nearest value that a 16-bit float can have."""
    text = "local.get value  call float16_bits  call float16_value"
    return _assembled(name, {"value": "f32"}, "f32", text)


_MAKERS: dict[str, Callable[[str], Function]] = {
    "i32_truncdiv": partial(_truncdiv, "i32"),
    "i64_truncdiv": partial(_truncdiv, "i64"),
    "i32_floordiv": partial(_floor, "i32", True),
    "i64_floordiv": partial(_floor, "i64", True),
    "i32_floormod": partial(_floor, "i32", False),
    "i64_floormod": partial(_floor, "i64", False),
    "float16_value": _float16_value,
    "float16_bits": _float16_bits,
    "round_float16": _round_float16,
}
