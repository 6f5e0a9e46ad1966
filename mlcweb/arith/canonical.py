"""The canonical form of integer expressions: sums of scaled digits, made from the operands up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.arith.digits import Digit, Product, Sum, write
from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import ConstIntBound, is_index_type, type_bound
from mlcweb.arith.linear import LinearForm
from mlcweb.arith.rewrite import apply_rule, rebuilt
from mlcweb.arith.rules_integer import product
from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.folding import integer

Value = Sum | E.PrimExpr
"""What the canonical form of a subexpression is: a sum, or any other expression."""


def canonical_sum(expression: E.PrimExpr, analyzer: Facts) -> Sum:
    """The expression, an integer, as a sum."""
    return _sum(_value(expression, analyzer), analyzer)


def affine_form(expression: E.PrimExpr, analyzer: Facts) -> tuple[E.PrimExpr, bool]:
    """The canonical form, and whether it is finished: a sum of digits of different variables, none
    subtracted, to which no other rule applies."""
    value = _value(expression, analyzer)
    if not isinstance(value, LinearForm):
        return value, isinstance(value, (E.Var, E.IntImm))
    digits = value.items()
    finished = all(type(digit.source) is E.Var and scale > 0 for digit, scale in digits)
    return write(value), finished and len({digit.source for digit, _ in digits}) == len(digits)


def canonical(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    """The expression with every integer sum in it in canonical form."""
    return _expression(_value(expression, analyzer))


def _value(expression: E.PrimExpr, analyzer: Facts) -> Value:
    cls = type(expression)
    if cls is E.Var:
        return analyzer.known_value(expression)  # type: ignore[arg-type]
    if cls in _CONSTANTS:
        return expression
    cached = analyzer.canonical_values.get(expression)
    if cached is not None:
        return cached
    rule = _RULES.get(cls)
    try:
        if rule is not None:
            value = rule(expression, analyzer)
        else:
            value = apply_rule(rebuilt(expression, canonical, analyzer), analyzer)
    except TOO_DEEP:
        raise nests_too_deep("simplified") from None
    analyzer.canonical_values[expression] = value
    return value


def _expression(value: Value) -> E.PrimExpr:
    return write(value) if isinstance(value, LinearForm) else value


def _sum(value: Value, analyzer: Facts) -> Sum:
    if isinstance(value, LinearForm):
        return value
    if isinstance(value, E.IntImm):
        return LinearForm({}, value.value, value.dtype)
    return _digit(value, analyzer)


def _digit(
    index: E.PrimExpr,
    analyzer: Facts,
    lower: int = 1,
    upper: int | None = None,
    truncated: bool = False,
) -> Product:
    """`index % upper // lower` by itself."""
    return Product({Digit(analyzer.interned(index), lower, upper, truncated): 1}, 0, index.dtype)


def _product(total: Sum, analyzer: Facts) -> Product:
    """A sum as a single digit and its scale; a proper sum becomes the index."""
    if len(total.terms) == 1 and total.constant == 0:
        return Product(total.terms, 0, total.dtype)
    return _digit(write(total), analyzer)


def _positive_product(total: Sum) -> Sum:
    """A sum of one scaled digit as a product, except that `0 - x` stays as it is written."""
    scales = list(total.terms.values())
    alone = len(scales) == 1 and scales[0] > 0 and total.constant == 0
    return Product(total.terms, 0, total.dtype) if alone else total


def _add(expression: Any, analyzer: Facts) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    sign = 1 if type(expression) is E.Add else -1
    return _sum(a, analyzer).plus(_sum(b, analyzer), sign)


def _multiply(expression: E.Mul, analyzer: Facts) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    if (factor := _constant(b)) is not None:
        return _sum(a, analyzer).times(factor)
    if (factor := _constant(a)) is not None:
        return _sum(b, analyzer).times(factor)
    multiplied = product(_expression(a), _expression(b))
    return expression if same_expression(multiplied, expression) else multiplied


def _constant(value: Value) -> int | None:
    if isinstance(value, LinearForm):
        return None if value.terms else value.constant
    return value.value if isinstance(value, E.IntImm) else None


def _with_operands(expression: Any, a: Value, b: Value) -> Any:
    a, b = _expression(a), _expression(b)
    if a is expression.a and b is expression.b:
        return expression
    return type(expression)(a, b)


def _divide(expression: E.FloorDiv | E.FloorMod | E.Div | E.Mod, analyzer: Facts) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    divisor = _constant(b) if is_index_type(expression.dtype) else None
    if divisor is None or divisor <= 0:
        return apply_rule(_with_operands(expression, a, b), analyzer)
    division = _Division(divisor, isinstance(expression, (E.Div, E.Mod)), analyzer)
    if isinstance(expression, (E.FloorDiv, E.Div)):
        return division.quotient(_sum(a, analyzer))
    return division.remainder(_sum(a, analyzer))


class _Division:
    """Division by a positive constant that rounds down, or towards zero where it is `truncated`."""

    def __init__(self, divisor: int, truncated: bool, analyzer: Facts) -> None:
        self.divisor = divisor
        self.truncated = truncated
        self.analyzer = analyzer

    def quotient(self, total: Sum) -> Sum:
        """`total // divisor`"""
        total = _positive_product(total)
        if isinstance(total, Product):
            if self.is_rest(write(total)):
                return total.times(0)
            return self.quotient_of_digit(total)
        quotient, rest = self.separate(total)
        if not rest.terms:
            return quotient.with_constant(quotient.constant + self.of_constant(rest.constant))
        remainder = write(rest)
        if self.is_rest(remainder):
            return quotient
        digit = self.quotient_of_digit(_digit(remainder, self.analyzer))
        return quotient.plus(digit) if quotient.terms or quotient.constant else digit

    def remainder(self, total: Sum) -> Value:
        """`total % divisor`"""
        total = _positive_product(total)
        rest = total if isinstance(total, Product) else self.separate(total)[1]
        if not rest.terms:
            left = rest.constant - self.of_constant(rest.constant) * self.divisor
            return integer(left, total.dtype)
        remainder = write(rest)
        if self.is_rest(remainder):
            return rest if rest is total else remainder
        if not self.truncated:
            rest = rest.with_constant(rest.constant % self.divisor)
        elif self.analyzer.const_int_bound(remainder).min_value >= 0:
            smaller = rest.with_constant(
                rest.constant - self.of_constant(rest.constant) * self.divisor
            )
            if self.analyzer.const_int_bound(write(smaller)).min_value >= 0:
                rest = smaller
        return self.remainder_of_digit(_product(rest, self.analyzer))

    def of_constant(self, value: int) -> int:
        quotient = abs(value) // self.divisor
        return -quotient if self.truncated and value < 0 else value // self.divisor

    def is_rest(self, value: E.PrimExpr) -> bool:
        """Whether nothing is left of `value` after the division."""
        least = 1 - self.divisor if self.truncated else 0
        return self.analyzer.is_within(value, least, self.divisor)

    def separate(self, total: Sum) -> tuple[Sum, Sum]:
        """(quotient, rest) of which each may be divided by itself. Towards zero that takes parts
        that are both not negative, or both not positive."""
        quotient, rest = total.separate(self.divisor)
        if self.truncated and (rest.terms or rest.constant):
            parts = [self.analyzer.const_int_bound(write(part)) for part in (quotient, rest)]
            if not (all(low >= 0 for low, _ in parts) or all(high <= 0 for _, high in parts)):
                return total.times(0), total
        return quotient, rest

    def quotient_of_digit(self, product: Product) -> Product:
        ((digit, scale),) = product.items()
        index, lower, upper, truncated = digit
        if scale % self.divisor == 0:
            return Product({digit: scale // self.divisor}, 0, index.dtype)
        other = truncated != self.truncated and (lower != 1 or upper is not None)
        if scale <= 0 or self.divisor % scale or other:
            return self.digit(write(product), self.divisor)
        factor = lower * (self.divisor // scale)
        is_sum = isinstance(index, (E.Add, E.Sub))
        if is_sum and upper is not None and upper % factor == 0 and not truncated:
            # Of (x * 16 + y) % 64 // 8, where y < 8, x * 2 % 8 is left.
            inner = _Division(factor, False, self.analyzer)
            parts = inner.separate(_sum(_value(index, self.analyzer), self.analyzer))
            if parts[0].terms and inner.is_rest(write(parts[1])):
                outer = _Division(upper // factor, False, self.analyzer)
                return _product(_sum(outer.remainder(parts[0]), self.analyzer), self.analyzer)
        if upper is None or upper % factor == 0:
            return self.digit(index, factor, upper)
        if upper <= factor:
            return product.times(0)
        return self.digit(write(self.digit(index, 1, upper)), factor)

    def remainder_of_digit(self, product: Product) -> Product:
        ((digit, scale),) = product.items()
        index, lower, upper, truncated = digit
        if scale % self.divisor == 0:
            return product.times(0)
        same = truncated == self.truncated or (lower == 1 and upper is None)
        if same and scale > 0 and self.divisor % scale == 0:
            limit = lower * (self.divisor // scale)
            if upper is None:
                return self.digit(index, lower, limit).times(scale)
            if limit % upper == 0:
                return product
            if upper % limit == 0:
                # A smaller remainder of the index may simplify further.
                smaller = _Division(limit, self.truncated, self.analyzer)
                remainder = smaller.remainder(_sum(_value(index, self.analyzer), self.analyzer))
                unit = _Division(lower, self.truncated, self.analyzer)
                kept = _product(_sum(remainder, self.analyzer), self.analyzer)
                return unit.quotient_of_digit(kept).times(scale)
        return self.digit(write(product), 1, self.divisor)

    def digit(self, index: E.PrimExpr, lower: int, upper: int | None = None) -> Product:
        return _digit(index, self.analyzer, lower, upper, self.truncated)


def _cast(expression: E.Cast, analyzer: Facts) -> Value:
    """A sum of indices in another type of index is the sum in it, where all of it fits."""
    value, dtype = _value(expression.value, analyzer), expression.dtype
    both = dtype, expression.value.dtype
    if isinstance(value, LinearForm) and all(map(is_index_type, both)):
        if dtypes.bits(dtype) >= dtypes.bits(both[1]) or _fits(value, dtype, analyzer):
            terms = {
                digit._replace(source=analyzer.interned(E.Cast(dtype, digit.source))): scale
                for digit, scale in value.items()
            }
            return type(value)(terms, value.constant, dtype)
    operand = _expression(value)
    return apply_rule(
        expression if operand is expression.value else E.Cast(dtype, operand), analyzer
    )


def _fits(total: Sum, dtype: str, analyzer: Facts) -> bool:
    """Whether a type holds what terms are digits of, and the terms, in whatever order they are
    summed."""
    bound = type_bound(dtype)
    low = high = total.constant
    for digit, scale in total.items():
        if not analyzer.const_int_bound(digit.source).is_within(bound):
            return False
        least, greatest = analyzer.const_int_bound(digit.written(scale))
        low, high = min(low, 0) + min(least, 0), max(high, 0) + max(greatest, 0)
    return ConstIntBound(low, high).is_within(bound)


_CONSTANTS = (E.IntImm, E.FloatImm)

_RULES: dict[type, Callable[[Any, Facts], Value]] = {
    E.Add: _add,
    E.Sub: _add,
    E.Mul: _multiply,
    E.FloorDiv: _divide,
    E.FloorMod: _divide,
    E.Div: _divide,
    E.Mod: _divide,
    E.Cast: _cast,
}
