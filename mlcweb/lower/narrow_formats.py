"""The float types of 16 and 8 bits as float32 and as integers: expressions that convert between
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.intrinsics import reinterpret


@dataclass(frozen=True)
class NarrowFormat:
    """A float type that is computed in float32.

    Attributes:
        name: The element type.
        bits: The integer type of its bits.
        widened: The float32 of its bits.
        rounded: The float32 of the value that is nearest to a float32, the even one of two. Those
            of its bits that the type lacks are zero, in NaNs, too.
        rounded_sum: The same of a sum or difference of two such values.
        narrowed: The bits of a float32 that is such a value.
    """

    name: str
    bits: str
    widened: Callable[[E.PrimExpr], E.PrimExpr]
    rounded: Callable[[E.PrimExpr], E.PrimExpr]
    rounded_sum: Callable[[E.PrimExpr], E.PrimExpr]
    narrowed: Callable[[E.PrimExpr], E.PrimExpr]


def _as(element: str, value: E.PrimExpr) -> str:
    """A type of other elements with as many lanes."""
    return dtypes.like(element, value.dtype)


def _bits(value: E.PrimExpr) -> E.PrimExpr:
    return reinterpret(_as("uint32", value), value)


def _float(bits: E.PrimExpr) -> E.PrimExpr:
    return reinterpret(_as("float32", bits), bits)


def _number(value: float, like: E.PrimExpr) -> E.PrimExpr:
    return const(value, like.dtype)


def _widened_bfloat16(bits: E.PrimExpr) -> E.PrimExpr:
    """The bits are the upper half."""
    wide = E.Cast(_as("uint32", bits), bits)
    return _float(wide << _number(16, wide))


def carried(bits: E.PrimExpr, dropped: int) -> E.PrimExpr:
    """Bits with a carry out of the last `dropped` where the nearest number without these, the even
    one of two, is the next one."""
    odd = (bits >> _number(dropped, bits)) & _number(1, bits)
    return bits + (odd + _number((1 << dropped - 1) - 1, bits))


def _without_last(bits: E.PrimExpr, dropped: int) -> E.PrimExpr:
    return bits & _number((1 << 32) - (1 << dropped), bits)


def _rounded_bfloat16(value: E.PrimExpr) -> E.PrimExpr:
    bits = E.Var("bits", _as("uint32", value))
    is_nan = (bits & _number(0x7FFFFFFF, bits)) > _number(0x7F800000, bits)
    # A NaN stays one: without the carry it cannot run over.
    changed = E.Select(is_nan, bits | _number(0x400000, bits), carried(bits, 16))
    return E.Let(bits, _bits(value), _float(_without_last(changed, 16)))


def _rounded_sum_bfloat16(value: E.PrimExpr) -> E.PrimExpr:
    """A NaN among such values has no last bits, and so no carry."""
    bits = E.Var("bits", _as("uint32", value))
    return E.Let(bits, _bits(value), _float(_without_last(carried(bits, 16), 16)))


def _narrowed_bfloat16(value: E.PrimExpr) -> E.PrimExpr:
    bits = _bits(value)
    return E.Cast(_as("uint16", value), bits >> _number(16, bits))


def _widened_float16(bits: E.PrimExpr) -> E.PrimExpr:
    """Sign, exponent and fraction go where a float32 has them; a product makes up for the
    difference of the biases, for numbers below the normal ones, too. Infinities and NaNs, whose
    exponent is all ones, get one of all ones."""
    moved = E.Var("bits", _as("int32", bits))
    signed = E.Cast(moved.dtype, reinterpret(_as("int16", bits), bits))
    value = _float(moved) * _number(2.0**112, _float(moved))
    ones = _number(0x0F800000, moved)
    exponent = E.Select(E.EQ(moved & ones, ones), _number(0x7F800000, moved), _number(0, moved))
    result = _float(reinterpret(moved.dtype, value) | exponent)
    # The copies of the sign between its place and the exponent go.
    kept = _number(0x8FFFE000 - (1 << 32), moved)
    return E.Let(moved, (signed << _number(13, moved)) & kept, result)


def _rounded_to(
    dropped: int, least_exponent: int, limit: float, beyond: int, value: E.PrimExpr
) -> E.PrimExpr:
    """A float32 that is 2^n times as large as the number's power of two, or as the smallest normal
    one, has its last place where the number has the last digit before n dropped ones: to add it and
    take it off again rounds there. From `limit` on, the bits are `beyond`."""
    bits = E.Var("bits", _as("uint32", value))
    magnitude = E.Var("magnitude", _as("float32", value))
    power = E.Max(bits & _number(0x7F800000, bits), _number((127 + least_exponent) << 23, bits))
    large = E.Var("large", magnitude.dtype)
    nearest = E.Select(
        magnitude >= _number(limit, magnitude),
        _number(beyond, bits),
        _bits((magnitude + large) - large),
    )
    sign = bits & _number(0x80000000, bits)
    rounded = _without_last(nearest, dropped) | sign
    result = E.Let(large, _float(power + _number(dropped << 23, bits)), _float(rounded))
    result = E.Let(magnitude, _float(bits & _number(0x7FFFFFFF, bits)), result)
    return E.Let(bits, _bits(value), result)


def _rounded_sum_float16(value: E.PrimExpr) -> E.PrimExpr:
    """Below the normal numbers a sum is exact. A product that makes 2^16 and more infinite, and
    another one back, leave rounding to the last bits."""
    scale, back = (_number(2.0**power, value) for power in (112, -112))
    bits = E.Var("bits", _as("uint32", value))
    return E.Let(bits, _bits(value * scale), _float(_without_last(carried(bits, 13), 13)) * back)


def _narrowed_float16(value: E.PrimExpr) -> E.PrimExpr:
    """The way of `_widened_float16` back. The exponent of infinities and NaNs loses its first
    digits."""
    bits = E.Var("bits", _as("uint32", value))
    magnitude = (bits >> _number(13, bits)) & _number(0x7FFF, bits)
    sign = (bits >> _number(16, bits)) & _number(0x8000, bits)
    narrow = E.Cast(_as("uint16", value), magnitude | sign)
    return E.Let(bits, _bits(value * _number(2.0**-112, value)), narrow)


def _widened_e4m3fn(bits: E.PrimExpr) -> E.PrimExpr:
    """As float16's, but that the greatest magnitude alone is no number."""
    moved = E.Var("bits", _as("uint32", bits))
    magnitude = moved & _number(0x7F, moved)
    value = _bits(_float(magnitude << _number(20, moved)) * _number(2.0**120, _float(moved)))
    nan = E.EQ(magnitude, _number(0x7F, moved))
    sign = (moved & _number(0x80, moved)) << _number(24, moved)
    result = _float(E.Select(nan, _number(0x7FC00000, moved), value) | sign)
    return E.Let(moved, E.Cast(moved.dtype, bits), result)


def _narrowed_e4m3fn(value: E.PrimExpr) -> E.PrimExpr:
    bits = E.Var("bits", _as("uint32", value))
    magnitude = bits & _number(0x7FFFFFFF, bits)
    scaled = _bits(_float(magnitude) * _number(2.0**-120, value)) >> _number(20, bits)
    nan = magnitude > _number(0x7F800000, bits)
    sign = (bits >> _number(24, bits)) & _number(0x80, bits)
    narrow = E.Cast(_as("uint8", value), E.Select(nan, _number(0x7F, bits), scaled) | sign)
    return E.Let(bits, _bits(value), narrow)


def _widened_e5m2(bits: E.PrimExpr) -> E.PrimExpr:
    """The bits are the upper half of a float16."""
    wide = E.Cast(_as("uint16", bits), bits)
    return _widened_float16(wide << _number(8, wide))


def _narrowed_e5m2(value: E.PrimExpr) -> E.PrimExpr:
    wide = _narrowed_float16(value)
    return E.Cast(_as("uint8", value), wide >> _number(8, wide))


_rounded_float16 = partial(_rounded_to, 13, -14, 65520.0, 0x7F800000)
_rounded_e5m2 = partial(_rounded_to, 21, -14, 61440.0, 0x7F800000)
_rounded_e4m3fn = partial(_rounded_to, 20, -6, 464.00003, 0x7FC00000)  # 464 is rounded to 448

BFLOAT16 = NarrowFormat(
    "bfloat16",
    "uint16",
    _widened_bfloat16,
    _rounded_bfloat16,
    _rounded_sum_bfloat16,
    _narrowed_bfloat16,
)
FLOAT16 = NarrowFormat(
    "float16", "uint16", _widened_float16, _rounded_float16, _rounded_sum_float16, _narrowed_float16
)
FLOAT8_E4M3FN = NarrowFormat(
    "float8_e4m3fn", "uint8", _widened_e4m3fn, _rounded_e4m3fn, _rounded_e4m3fn, _narrowed_e4m3fn
)
FLOAT8_E5M2 = NarrowFormat(
    "float8_e5m2", "uint8", _widened_e5m2, _rounded_e5m2, _rounded_e5m2, _narrowed_e5m2
)
FLOATS_OF_8_BITS = FLOAT8_E4M3FN, FLOAT8_E5M2
WITHOUT_NUMPY = *FLOATS_OF_8_BITS, BFLOAT16
"""Those that NumPy lacks."""
