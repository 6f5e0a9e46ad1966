"""The float types of 16 bits as float32 and as integers: expressions that convert between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.intrinsics import reinterpret


@dataclass(frozen=True)
class NarrowFormat:
    """A float type that is computed in float32.

    Attributes:
        name: The element type.
        widened: The float32 of its bits, which are a uint16.
        rounded: The float32 of the value that is nearest to a float32, the even one of two.
        narrowed: The bits, as uint16, of a float32 that is such a value.
    """

    name: str
    widened: Callable[[E.PrimExpr], E.PrimExpr]
    rounded: Callable[[E.PrimExpr], E.PrimExpr]
    narrowed: Callable[[E.PrimExpr], E.PrimExpr]


def _as(element: str, value: E.PrimExpr) -> str:
    """A type of other elements with as many lanes."""
    return dtypes.with_lanes(element, dtypes.lanes(value.dtype))


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


def _rounded_bfloat16(value: E.PrimExpr) -> E.PrimExpr:
    bits = E.Var("bits", _as("uint32", value))
    bias = ((bits >> _number(16, bits)) & _number(1, bits)) + _number(0x7FFF, bits)
    is_nan = (bits & _number(0x7FFFFFFF, bits)) > _number(0x7F800000, bits)
    # A NaN stays one: without the bias it cannot run over.
    changed = E.Select(is_nan, bits | _number(0x400000, bits), bits + bias)
    return E.Let(bits, _bits(value), _float(changed & _number(0xFFFF0000, bits)))


def _narrowed_bfloat16(value: E.PrimExpr) -> E.PrimExpr:
    bits = _bits(value)
    return E.Cast(_as("uint16", value), bits >> _number(16, bits))


def _widened_float16(bits: E.PrimExpr) -> E.PrimExpr:
    """Exponent and fraction go where a float32 has them; a product makes up for the difference of
    the biases, for numbers below the normal ones, too. Infinities and NaNs come out as 2^16 and
    more."""
    wide = E.Var("bits", _as("uint32", bits))
    moved = (wide & _number(0x7FFF, wide)) << _number(13, wide)
    magnitude = E.Var("magnitude", _as("float32", bits))
    of_all_ones = E.Select(
        magnitude >= _number(65536.0, magnitude), _number(0x7F800000, wide), _number(0, wide)
    )
    sign = (wide & _number(0x8000, wide)) << _number(16, wide)
    result = E.Let(
        magnitude,
        _float(moved) * _number(2.0**112, magnitude),
        _float(_bits(magnitude) | of_all_ones | sign),
    )
    return E.Let(wide, E.Cast(wide.dtype, bits), result)


def _rounded_float16(value: E.PrimExpr) -> E.PrimExpr:
    """A float32 that is 2^13 times as large as the number's power of two, or as the smallest normal
    one, has its last place where the number's 11th binary digit is: to add it and take it off again
    rounds there."""
    bits = E.Var("bits", _as("uint32", value))
    magnitude = E.Var("magnitude", _as("float32", value))
    power = E.Max(bits & _number(0x7F800000, bits), _number((127 - 14) << 23, bits))
    large = E.Var("large", magnitude.dtype)
    nearest = E.Select(
        magnitude >= _number(65520.0, magnitude),
        _number(0x7F800000, bits),
        _bits((magnitude + large) - large),
    )
    sign = bits & _number(0x80000000, bits)
    result = E.Let(large, _float(power) * _number(2.0**13, magnitude), _float(nearest | sign))
    result = E.Let(magnitude, _float(bits & _number(0x7FFFFFFF, bits)), result)
    return E.Let(bits, _bits(value), result)


def _narrowed_float16(value: E.PrimExpr) -> E.PrimExpr:
    """The way of `_widened_float16` back. The exponent of infinities and NaNs loses its first
    digits."""
    bits = E.Var("bits", _as("uint32", value))
    magnitude = (bits >> _number(13, bits)) & _number(0x7FFF, bits)
    sign = (bits >> _number(16, bits)) & _number(0x8000, bits)
    narrow = E.Cast(_as("uint16", value), magnitude | sign)
    return E.Let(bits, _bits(value * _number(2.0**-112, value)), narrow)


BFLOAT16 = NarrowFormat("bfloat16", _widened_bfloat16, _rounded_bfloat16, _narrowed_bfloat16)
FLOAT16 = NarrowFormat("float16", _widened_float16, _rounded_float16, _narrowed_float16)
