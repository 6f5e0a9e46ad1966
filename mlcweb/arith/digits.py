"""Sums of digits, the canonical form of integer expressions, and how they are written.

A digit of an index is `source % upper // lower`, rounded down or towards zero. Splitting and fusing
loops only ever takes digits apart and puts them together, so that adding sums and merging
neighbouring digits (`x // 4 * 4 + x % 4` is `x`) undoes it. The method, and the order in which a
sum is written, are those of TVM's canonical simplifier, so that texts agree.
"""

from __future__ import annotations

from typing import NamedTuple

from mlcweb.arith.linear import LinearForm
from mlcweb.tir import expr as E
from mlcweb.tir.folding import (
    add,
    floordiv,
    floormod,
    integer,
    multiply,
    subtract,
    truncdiv,
    truncmod,
)  # fmt: skip


class Digit(NamedTuple):
    """`source % upper // lower`; no remainder is taken where `upper` is None. Equal sources have to
    be one object. Where it is `truncated`, both round towards zero."""

    source: E.PrimExpr
    lower: int
    upper: int | None
    truncated: bool = False

    def written(self, scale: int) -> E.PrimExpr:
        """The digit times a scale as an expression."""
        result = self.source
        dtype = result.dtype
        if self.upper is not None:
            remainder = truncmod if self.truncated else floormod
            result = remainder(result, integer(self.upper, dtype))
        if self.lower != 1:
            quotient = truncdiv if self.truncated else floordiv
            result = quotient(result, integer(self.lower, dtype))
        return multiply(result, integer(scale, dtype)) if scale != 1 else result


Sum = LinearForm[Digit, int]
_ScaledDigit = tuple[Digit, int]


class Product(Sum):
    """One digit times a scale. It is written as a product also where the scale is negative: both
    `x * -1` and `0 - x` are simple."""

    __slots__ = ()


def write(total: Sum) -> E.PrimExpr:
    """The sum as an expression: larger scales first, then the constant, then what is subtracted."""
    terms = list(total.items())
    if isinstance(total, Product) and terms:
        return terms[0][0].written(terms[0][1])
    if len(terms) > 1:
        terms = sorted(_merge_digits(terms), key=_writing_order)
    zero = result = integer(0, total.dtype)
    for digit, scale in terms:
        if scale > 0:
            written = digit.written(scale)
            result = written if result is zero else add(result, written)
    if total.constant > 0:
        constant = integer(total.constant, total.dtype)
        if constant.value > 0:
            result = constant if result is zero else add(result, constant)
        else:  # The opposite of the least integer does not fit.
            result = subtract(result, integer(-total.constant, total.dtype))
    for digit, scale in terms:
        if scale < 0:
            result = subtract(result, digit.written(-scale))
    if total.constant < 0:
        size = integer(-total.constant, total.dtype)
        result = subtract(result, size) if size.value > 0 else add(result, size)
    return result


def _writing_order(term: _ScaledDigit) -> tuple[int, int, float]:
    digit, scale = term
    return -scale, -digit.lower, -(digit.upper or float("inf"))


def _merge_digits(terms: list[_ScaledDigit]) -> list[_ScaledDigit]:
    """Neighbouring digits of one source in one: x // 4 * 4 + x % 4 is x."""
    of_source: dict[E.PrimExpr, list[_ScaledDigit]] = {}
    for term in terms:
        of_source.setdefault(term[0].source, []).append(term)
    if len(of_source) == len(terms):
        return terms
    merged: list[_ScaledDigit] = []
    for digits in of_source.values():
        digits.sort(key=lambda term: -term[0].lower)
        for position, (high, scale) in enumerate(digits):
            for below in range(position + 1, len(digits)):
                low, unit = digits[below]
                step, rest = divmod(scale, unit)
                adjacent = high.lower == low.upper == step * low.lower and rest == 0
                if adjacent and high.truncated == low.truncated:
                    digits[below] = low._replace(upper=high.upper), unit
                    break
            else:
                merged.append((high, scale))
    return merged
