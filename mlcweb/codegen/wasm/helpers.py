"""Small functions that generated code calls: integer divisions that no instruction does, and the
conversions of 16-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from mlcweb.codegen.wasm.builder import FunctionBuilder
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


def _truncdiv(kind: str) -> Callable[[str], Function]:
    """a / b towards zero. The least integer over -1 is itself; the instruction traps there."""

    def make(name: str) -> Function:
        builder = FunctionBuilder(name, [("a", kind), ("b", kind)], [kind])
        emit = builder.emit
        emit("local.get", 1)
        emit(f"{kind}.const", -1)
        emit(f"{kind}.eq")
        with builder.branch(result=kind):
            emit(f"{kind}.const", 0)
            emit("local.get", 0)
            emit(f"{kind}.sub")
            builder.otherwise()
            emit("local.get", 0)
            emit("local.get", 1)
            emit(f"{kind}.div_s")
        return builder.build()

    return make


def _floor(kind: str, wants_quotient: bool) -> Callable[[str], Function]:
    """Quotient or remainder of the division that rounds down: one less (one divisor more) than the
    division towards zero, where there is a remainder whose sign is not that of the divisor."""

    def make(name: str) -> Function:
        builder = FunctionBuilder(name, [("a", kind), ("b", kind)], [kind])
        emit = builder.emit
        remainder = builder.local(kind, "remainder")
        emit("local.get", 0)
        emit("local.get", 1)
        emit(f"{kind}.rem_s")
        emit("local.set", remainder)
        if wants_quotient:
            emit("local.get", 0)
            emit("local.get", 1)
            emit("call", f"{kind}_truncdiv")
            emit(f"{kind}.const", -1)
        else:
            emit("local.get", remainder)
            emit("local.get", 1)
        emit(f"{kind}.const", 0)
        emit("local.get", remainder)
        emit("local.get", 1)
        emit(f"{kind}.xor")
        emit(f"{kind}.const", 0)
        emit(f"{kind}.lt_s")
        emit("local.get", remainder)
        emit(f"{kind}.const", 0)
        emit(f"{kind}.ne")
        emit("i32.and")
        emit("select")
        emit(f"{kind}.add")
        return builder.build()

    return make


def _float16_value(name: str) -> Function:
    """The float32 that 16 bits stand for.

    The exponent and fraction are moved to where a float32 has them, and the difference of the
    biases is made up by a multiplication, which also makes subnormal numbers right.
    """
    builder = FunctionBuilder(name, [("bits", "i32")], ["f32"])
    emit = builder.emit
    emit("local.get", 0)
    emit("i32.const", 0x7FFF)
    emit("i32.and")
    emit("i32.const", 13)
    emit("i32.shl")
    emit("f32.reinterpret_i32")
    emit("f32.const", 2.0**112)
    emit("f32.mul")
    value = builder.local("f32", "value")
    emit("local.tee", value)
    # Exponents of all ones, infinities and NaNs, come out as 2^16 and more.
    emit("f32.const", 65536.0)
    emit("f32.ge")
    with builder.branch(result="i32"):
        emit("local.get", value)
        emit("i32.reinterpret_f32")
        emit("i32.const", 0x7F800000)
        emit("i32.or")
        builder.otherwise()
        emit("local.get", value)
        emit("i32.reinterpret_f32")
    emit("local.get", 0)
    emit("i32.const", 0x8000)
    emit("i32.and")
    emit("i32.const", 16)
    emit("i32.shl")
    emit("i32.or")
    emit("f32.reinterpret_i32")
    return builder.build()


def _float16_bits(name: str) -> Function:
    """The 16 bits of the nearest 16-bit float, ties to even.

    Normal results are rounded in the integer that the bits are, where a carry into the exponent is
    right; subnormal ones by adding 1/2, whose last place is 2^-24.
    """
    builder = FunctionBuilder(name, [("value", "f32")], ["i32"])
    emit = builder.emit
    bits = builder.local("i32", "bits")
    magnitude = builder.local("f32", "magnitude")
    emit("local.get", 0)
    emit("f32.abs")
    emit("local.set", magnitude)
    emit("local.get", magnitude)
    emit("local.get", magnitude)
    emit("f32.ne")
    with builder.branch(result="i32"):
        emit("i32.const", 0x7E00)
        builder.otherwise()
        emit("local.get", magnitude)
        emit("f32.const", 65520.0)
        emit("f32.ge")
        with builder.branch(result="i32"):
            emit("i32.const", 0x7C00)
            builder.otherwise()
            emit("local.get", magnitude)
            emit("f32.const", 2.0**-14)
            emit("f32.lt")
            with builder.branch(result="i32"):
                emit("local.get", magnitude)
                emit("f32.const", 0.5)
                emit("f32.add")
                emit("i32.reinterpret_f32")
                emit("i32.const", 0x3F000000)
                emit("i32.sub")
                builder.otherwise()
                emit("local.get", magnitude)
                emit("i32.reinterpret_f32")
                emit("local.tee", bits)
                emit("i32.const", 13)
                emit("i32.shr_u")
                emit("i32.const", 1)
                emit("i32.and")
                emit("local.get", bits)
                emit("i32.add")
                emit("i32.const", 0xFFF - (112 << 23))
                emit("i32.add")
                emit("i32.const", 13)
                emit("i32.shr_u")
    emit("local.get", 0)
    emit("i32.reinterpret_f32")
    emit("i32.const", 16)
    emit("i32.shr_u")
    emit("i32.const", 0x8000)
    emit("i32.and")
    emit("i32.or")
    return builder.build()


def _round_float16(name: str) -> Function:
    """The nearest value that a 16-bit float can have."""
    builder = FunctionBuilder(name, [("value", "f32")], ["f32"])
    builder.emit("local.get", 0)
    builder.emit("call", "float16_bits")
    builder.emit("call", "float16_value")
    return builder.build()


_MAKERS: dict[str, Callable[[str], Function]] = {
    "i32_truncdiv": _truncdiv("i32"),
    "i64_truncdiv": _truncdiv("i64"),
    "i32_floordiv": _floor("i32", True),
    "i64_floordiv": _floor("i64", True),
    "i32_floormod": _floor("i32", False),
    "i64_floormod": _floor("i64", False),
    "float16_value": _float16_value,
    "float16_bits": _float16_bits,
    "round_float16": _round_float16,
}
