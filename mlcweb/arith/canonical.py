"""The canonical form of integer expressions: sums of scaled digits, made from the operands up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.arith.digits import Digit, Product, Sum, write
from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import is_index_type
from mlcweb.arith.linear import LinearForm
from mlcweb.arith.rewrite import apply_rule, rebuilt
from mlcweb.arith.rules_integer import product
from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.tir import expr as E
from mlcweb.tir.folding import floormod, integer

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer

Value = Sum | E.PrimExpr
"""What the canonical form of a subexpression is: a sum, or any other expression."""


def canonical_sum(expression: E.PrimExpr, analyzer: Analyzer) -> Sum:
    """The expression, an integer, as a sum."""
    return _sum(_value(expression, analyzer), analyzer)


def affine_form(expression: E.PrimExpr, analyzer: Analyzer) -> tuple[E.PrimExpr, bool]:
    """The canonical form, and whether it is finished: a sum of digits of different variables, none
    subtracted, to which no other rule applies."""
    value = _value(expression, analyzer)
    if not isinstance(value, LinearForm):
        return value, isinstance(value, (E.Var, E.IntImm))
    digits = value.items()
    finished = all(type(digit.source) is E.Var and scale > 0 for digit, scale in digits)
    return write(value), finished and len({digit.source for digit, _ in digits}) == len(digits)


def canonical(expression: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    """The expression with every integer sum in it in canonical form."""
    return _expression(_value(expression, analyzer))


def _value(expression: E.PrimExpr, analyzer: Analyzer) -> Value:
    cls = type(expression)
    if cls is E.Var:
        return analyzer.value_of(expression)  # type: ignore[arg-type]
    if cls in _CONSTANTS:
        return expression
    known = analyzer.canonical_values.get(expression)
    if known is not None:
        return known
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


def _sum(value: Value, analyzer: Analyzer) -> Sum:
    if isinstance(value, LinearForm):
        return value
    if isinstance(value, E.IntImm):
        return LinearForm({}, value.value, value.dtype)
    return _digit(value, analyzer)


def _digit(
    index: E.PrimExpr, analyzer: Analyzer, lower: int = 1, upper: int | None = None
) -> Product:
    """`index % upper // lower` by itself."""
    return Product({Digit(analyzer.interned(index), lower, upper): 1}, 0, index.dtype)


def _product(total: Sum, analyzer: Analyzer) -> Product:
    """A sum as a single digit and its scale; a proper sum becomes the index."""
    if len(total.terms) == 1 and total.constant == 0:
        return Product(total.terms, 0, total.dtype)
    return _digit(write(total), analyzer)


def _add(expression: Any, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    sign = 1 if type(expression) is E.Add else -1
    return _sum(a, analyzer).plus(_sum(b, analyzer), sign)


def _multiply(expression: E.Mul, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    if (factor := _constant(b)) is not None:
        return _sum(a, analyzer).times(factor)
    if (factor := _constant(a)) is not None:
        return _sum(b, analyzer).times(factor)
    made = product(_expression(a), _expression(b))
    return expression if same_expression(made, expression) else made


def _constant(value: Value) -> int | None:
    if isinstance(value, LinearForm):
        return None if value.terms else value.constant
    return value.value if isinstance(value, E.IntImm) else None


def _with_operands(expression: Any, a: Value, b: Value) -> Any:
    a, b = _expression(a), _expression(b)
    if a is expression.a and b is expression.b:
        return expression
    return type(expression)(a, b)


def _divide(expression: E.FloorDiv | E.FloorMod, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    divisor = _constant(b) if is_index_type(expression.dtype) else None
    if divisor is None or divisor <= 0:
        return apply_rule(_with_operands(expression, a, b), analyzer)
    rule = _quotient if isinstance(expression, E.FloorDiv) else _remainder
    return rule(_sum(a, analyzer), divisor, analyzer)


def _quotient(total: Sum, divisor: int, analyzer: Analyzer) -> Sum:
    """`total // divisor`"""
    if isinstance(total, Product):
        if analyzer.is_within(write(total), 0, divisor):
            return total.times(0)
        return _quotient_of_digit(total, divisor, analyzer)
    quotient, rest = total.separate(divisor)
    if not rest.terms:
        return quotient.with_constant(quotient.constant + rest.constant // divisor)
    remainder = write(rest)
    if analyzer.is_within(remainder, 0, divisor):
        return quotient
    return quotient.plus(_quotient_of_digit(_digit(remainder, analyzer), divisor, analyzer))


def _remainder(total: Sum, divisor: int, analyzer: Analyzer) -> Value:
    """`total % divisor`"""
    rest = total if isinstance(total, Product) else total.separate(divisor)[1]
    if not rest.terms:
        return integer(rest.constant % divisor, total.dtype)
    remainder = write(rest)
    if analyzer.is_within(remainder, 0, divisor):
        return rest if rest is total else remainder
    rest = rest.with_constant(rest.constant % divisor)
    return _remainder_of_digit(_product(rest, analyzer), divisor, analyzer)


def _quotient_of_digit(product: Product, divisor: int, analyzer: Analyzer) -> Product:
    (((index, lower, upper), scale),) = product.items()
    if scale % divisor == 0:
        return Product({Digit(index, lower, upper): scale // divisor}, 0, index.dtype)
    if scale <= 0 or divisor % scale:
        return _digit(write(product), analyzer, divisor)
    factor = lower * (divisor // scale)
    if upper is None or upper % factor == 0:
        return _digit(index, analyzer, factor, upper)
    if upper <= factor:
        return product.times(0)
    return _digit(floormod(index, integer(upper, index.dtype)), analyzer, factor)


def _remainder_of_digit(product: Product, divisor: int, analyzer: Analyzer) -> Product:
    (((index, lower, upper), scale),) = product.items()
    if scale % divisor == 0:
        return product.times(0)
    if scale > 0 and divisor % scale == 0:
        limit = lower * (divisor // scale)
        if upper is None:
            return _digit(index, analyzer, lower, limit).times(scale)
        if limit % upper == 0:
            return product
        if upper % limit == 0:
            # A smaller remainder of the index may simplify further.
            remainder = _value(floormod(index, integer(limit, index.dtype)), analyzer)
            digit = _product(_sum(remainder, analyzer), analyzer)
            return _quotient_of_digit(digit, lower, analyzer).times(scale)
    return _digit(write(product), analyzer, 1, divisor)


_CONSTANTS = (E.IntImm, E.FloatImm)

_RULES: dict[type, Callable[[Any, Analyzer], Value]] = {
    E.Add: _add,
    E.Sub: _add,
    E.Mul: _multiply,
    E.FloorDiv: _divide,
    E.FloorMod: _divide,
}
