"""Rules of integer arithmetic beyond sums: symbolic products, quotients and remainders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import is_index_type
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.folding import (
    add,
    const,
    floordiv,
    floormod,
    integer,
    multiply,
    subtract,
    truncdiv,
    truncmod,
)  # fmt: skip

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer


def factors(expression: E.PrimExpr) -> Iterator[E.PrimExpr]:
    """The operands of a product of products, left to right."""
    if isinstance(expression, E.Mul):
        yield from factors(expression.a)
        yield from factors(expression.b)
    else:
        yield expression


def product(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    """The product with its constant factors gathered at the end."""
    scale = 1
    result: E.PrimExpr | None = None
    for side in (a, b):
        for factor in factors(side):
            if isinstance(factor, E.IntImm):
                scale *= factor.value
            else:
                result = factor if result is None else multiply(result, factor)
    if result is None:
        return integer(scale, a.dtype)
    return multiply(result, integer(scale, a.dtype)) if scale != 1 else result


def quotient_of_product(numerator: E.PrimExpr, denominator: E.PrimExpr) -> E.PrimExpr | None:
    """`numerator / denominator` where every factor of the latter is one of the former."""
    remaining = list(factors(numerator))
    for factor in factors(denominator):
        for position, candidate in enumerate(remaining):
            if same_expression(candidate, factor):
                del remaining[position]
                break
            if isinstance(candidate, E.IntImm) and isinstance(factor, E.IntImm):
                if factor.value and candidate.value % factor.value == 0:
                    quotient = candidate.value // factor.value
                    remaining[position] = integer(quotient, candidate.dtype)
                    break
        else:
            return None
    result = integer(1, numerator.dtype)
    for factor in remaining:
        result = multiply(result, factor)
    return result


def _fold(build: Callable[[Any, Any], E.PrimExpr]) -> Callable[[Any, Analyzer], E.PrimExpr]:
    """A rule that only folds constants and neutral operands."""

    def rule(expression: Any, analyzer: Analyzer) -> E.PrimExpr:
        if isinstance(expression.a, (E.IntImm, E.FloatImm)) or isinstance(
            expression.b, (E.IntImm, E.FloatImm)
        ):
            made = build(expression.a, expression.b)
            if type(made) is not type(expression):
                return made
        return expression

    return rule


_fold_add, _fold_subtract = _fold(add), _fold(subtract)
_fold_multiply = _fold(multiply)
_fold_floordiv, _fold_floormod = _fold(floordiv), _fold(floormod)


def _add(expression: E.Add, analyzer: Analyzer) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if is_index_type(a.dtype):
        if isinstance(a, E.Mul) and isinstance(b, E.FloorMod):
            # (x // y) * y + x % y
            for quotient, divisor in ((a.a, a.b), (a.b, a.a)):
                if (
                    isinstance(quotient, E.FloorDiv)
                    and same_expression(quotient.a, b.a)
                    and same_expression(quotient.b, b.b)
                    and same_expression(divisor, b.b)
                ):
                    return b.a
        shared = _common_factor(a, b, add)
        if shared is not None:
            return shared
    return _fold_add(expression, analyzer)


def _common_factor(
    a: E.PrimExpr, b: E.PrimExpr, combine: Callable[..., E.PrimExpr]
) -> E.PrimExpr | None:
    """x * z + y * z is (x + y) * z, and x * z + z is (x + 1) * z; with `combine` for the +."""
    one = integer(1, a.dtype)
    if isinstance(a, E.IntImm) and isinstance(b, E.Mul):
        return multiply(combine(one, b.a), a) if same_expression(a, b.b) else None
    if not isinstance(a, E.Mul):
        return None
    if isinstance(b, E.Mul):
        for x, z in ((a.a, a.b), (a.b, a.a)):
            for y, w in ((b.a, b.b), (b.b, b.a)):
                if same_expression(z, w):
                    return multiply(combine(x, y), z)
    elif same_expression(a.b, b):
        return multiply(combine(a.a, one), b)
    return None


def _subtract(expression: E.Sub, analyzer: Analyzer) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not dtypes.is_float(a.dtype) and same_expression(a, b):
        return const(0, a.dtype)
    if is_index_type(a.dtype):
        shared = _common_factor(a, b, subtract)
        if shared is not None:
            return shared
        for rule in (_without_rounding, _lowest_digit, _quotient_difference):
            found = rule(a, b, analyzer)
            if found is not None:
                return found
    return _fold_subtract(expression, analyzer)


def rounded_down(expression: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr] | None:
    """(x, c) of x // c * c."""
    if isinstance(expression, E.Mul) and isinstance(expression.a, E.FloorDiv):
        if isinstance(expression.b, E.IntImm) and same_expression(expression.a.b, expression.b):
            return expression.a.a, expression.b
    return None


def _without_rounding(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr | None:
    """(x + k) // c * c - x is k - (x + k) % c; the other way round likewise."""
    first, more = a, 0
    if isinstance(a, E.Add) and isinstance(a.b, E.IntImm):
        first, more = a.a, a.b.value
    if (rounded := rounded_down(first)) is not None:
        shift = analyzer.canonical(subtract(rounded[0], b))
        if isinstance(shift, E.IntImm):
            return subtract(integer(shift.value + more, a.dtype), floormod(*rounded))
    if (rounded := rounded_down(b)) is not None:
        shift = analyzer.canonical(subtract(a, rounded[0]))
        if isinstance(shift, E.IntImm):
            return add(floormod(*rounded), shift)
    return None


def _lowest_digit(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr | None:
    """x * k - x // c * (c * k) is x % c * k."""
    if not (isinstance(a, E.Mul) and isinstance(a.b, E.IntImm)):
        return None
    if not (isinstance(b, E.Mul) and isinstance(b.b, E.IntImm) and isinstance(b.a, E.FloorDiv)):
        return None
    x, divisor = b.a.a, b.a.b
    if not isinstance(divisor, E.IntImm) or divisor.value * a.b.value != b.b.value:
        return None
    return multiply(floormod(x, divisor), a.b) if same_expression(a.a, x) else None


def _quotient_difference(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr | None:
    """(x + k) // c + m - x // c is (x % c + k) // c + m."""
    quotient, more = a, integer(0, a.dtype)
    if isinstance(a, E.Add) and isinstance(a.b, E.IntImm):
        quotient, more = a.a, a.b
    if not (isinstance(quotient, E.FloorDiv) and isinstance(b, E.FloorDiv)):
        return None
    total, divisor = quotient.a, quotient.b
    if not isinstance(divisor, E.IntImm) or not same_expression(divisor, b.b):
        return None
    if not (isinstance(total, E.Add) and isinstance(total.b, E.IntImm)):
        return None
    if not same_expression(total.a, b.a):
        return None
    return add(floordiv(add(floormod(b.a, divisor), total.b), divisor), more)


def _floordiv(expression: E.FloorDiv, analyzer: Analyzer) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not is_index_type(a.dtype):
        return _fold_floordiv(expression, analyzer)
    if isinstance(b, E.IntImm):
        return _divide_by_constant(expression, b.value, analyzer)
    if isinstance(a, E.IntImm) and a.value == 0:
        return a
    exact = quotient_of_product(a, b)
    if exact is not None:
        return exact
    if analyzer.const_int_bound(b).min_value > 0:
        return _divide_by_symbol(expression, analyzer)
    return expression


def _divide_by_symbol(expression: E.FloorDiv, analyzer: Analyzer) -> E.PrimExpr:
    """(x * n + y) // n is x + y // n for positive n; 0 <= y < n leaves x."""
    a, b = expression.a, expression.b
    dividend = analyzer.const_int_bound(a)
    if dividend.min_value >= 0 and analyzer.is_less(a, b):
        return integer(0, a.dtype)
    if isinstance(a, E.Add):
        for x, y in ((a.a, a.b), (a.b, a.a)):
            exact = quotient_of_product(x, b)
            if exact is not None:
                rest = _divide_by_symbol(E.FloorDiv(y, b), analyzer)
                return add(exact, rest)
    return expression


def _divide_by_constant(expression: E.FloorDiv, divisor: int, analyzer: Analyzer) -> E.PrimExpr:
    a, dtype = expression.a, expression.a.dtype
    if divisor == 1:
        return a
    if isinstance(a, E.IntImm):
        return floordiv(a, expression.b) if divisor else expression
    if divisor <= 0:
        return expression
    if analyzer.is_within(a, 0, divisor):
        return integer(0, dtype)
    if isinstance(a, E.FloorDiv) and isinstance(a.b, E.IntImm) and a.b.value > 0:
        return rule_floordiv(a.a, integer(a.b.value * divisor, dtype), analyzer)
    if isinstance(a, (E.Add, E.Sub)) and isinstance(a.b, E.IntImm):
        # (x // c1 + c2) // c3 is (x + c1 * c2) // (c1 * c3)
        inner = a.a
        if isinstance(inner, E.FloorDiv) and isinstance(inner.b, E.IntImm) and inner.b.value > 0:
            step = inner.b.value
            shift = step * a.b.value * (1 if isinstance(a, E.Add) else -1)
            moved = analyzer.canonical(add(inner.a, integer(shift, dtype)))
            return rule_floordiv(moved, integer(step * divisor, dtype), analyzer)
    if isinstance(a, E.Add):
        return _divide_out_scale(expression, a, divisor, analyzer)
    if isinstance(a, E.Mul) and isinstance(a.b, E.IntImm):
        return _divide_product(expression, a.a, a.b.value, divisor, analyzer)
    return expression


def _divide_product(
    expression: E.FloorDiv, factor: E.PrimExpr, scale: int, divisor: int, analyzer: Analyzer
) -> E.PrimExpr:
    """(factor * scale) // divisor, where one of the two numbers divides the other or the rest of
    the scale adds nothing."""
    dtype = factor.dtype
    if scale > 0 and divisor % scale == 0:
        return rule_floordiv(factor, integer(divisor // scale, dtype), analyzer)
    if scale % divisor == 0:
        return multiply(factor, integer(scale // divisor, dtype))
    if scale > divisor and _stays_below(factor, scale % divisor, None, divisor, analyzer):
        return multiply(factor, integer(scale // divisor, dtype))
    return expression


def rule_floordiv(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    """`a // b` of simplified operands, simplified."""
    made = floordiv(a, b)
    return _floordiv(made, analyzer) if isinstance(made, E.FloorDiv) else made


def _divide_out_scale(
    expression: E.FloorDiv, a: E.Add, divisor: int, analyzer: Analyzer
) -> E.PrimExpr:
    """(x * s + y) // d is x // (d // s) where s divides d and 0 <= y < s, and x * (s // d) where
    x * (s % d) + y stays below d."""
    for scaled, rest in ((a.a, a.b), (a.b, a.a)):
        if isinstance(scaled, E.Mul) and isinstance(scaled.b, E.IntImm):
            scale = scaled.b.value
            if scale > 1 and divisor % scale == 0 and analyzer.is_within(rest, 0, scale):
                return rule_floordiv(scaled.a, integer(divisor // scale, a.dtype), analyzer)
            if scale > divisor and _stays_below(scaled.a, scale % divisor, rest, divisor, analyzer):
                return multiply(scaled.a, integer(scale // divisor, a.dtype))
    return _divide_out_offset(expression, a, divisor, analyzer)


def _divide_out_offset(
    expression: E.FloorDiv, a: E.Add, divisor: int, analyzer: Analyzer
) -> E.PrimExpr:
    """(x * s + c) // d is x * (s // d) + c // d where x * (s % d) + c % d stays below d."""
    if not isinstance(a.b, E.IntImm):
        return expression
    x, scale = a.a, 1
    if isinstance(x, E.Mul) and isinstance(x.b, E.IntImm):
        x, scale = x.a, x.b.value
    times, factor = divmod(scale, divisor)
    offset, rest = divmod(a.b.value, divisor)
    if offset <= 0 or not _stays_below(x, factor, integer(rest, a.dtype), divisor, analyzer):
        return expression
    return add(multiply(x, integer(times, a.dtype)), integer(offset, a.dtype))


def _stays_below(
    x: E.PrimExpr, factor: int, rest: E.PrimExpr | None, limit: int, analyzer: Analyzer
) -> bool:
    """Whether 0 <= x * factor + rest < limit."""
    low, high = analyzer.const_int_bound(x)
    more = analyzer.const_int_bound(rest) if rest is not None else (0, 0)
    return low * factor + more[0] >= 0 and high * factor + more[1] < limit


def _floormod(expression: E.FloorMod, analyzer: Analyzer) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not is_index_type(a.dtype):
        return _fold_floormod(expression, analyzer)
    if isinstance(b, E.IntImm):
        return _remainder_of_constant(expression, b.value, analyzer)
    if isinstance(a, E.IntImm) and a.value == 0:
        return a
    if quotient_of_product(a, b) is not None:
        return integer(0, a.dtype)
    if analyzer.const_int_bound(b).min_value > 0:
        if analyzer.const_int_bound(a).min_value >= 0 and analyzer.is_less(a, b):
            return a
        if isinstance(a, E.Add):
            for x, y in ((a.a, a.b), (a.b, a.a)):
                if quotient_of_product(x, b) is not None:
                    return _floormod(E.FloorMod(y, b), analyzer)
    return expression


def _remainder_of_constant(expression: E.FloorMod, divisor: int, analyzer: Analyzer) -> E.PrimExpr:
    a = expression.a
    if divisor == 1:
        return integer(0, a.dtype)
    if isinstance(a, E.IntImm):
        return floormod(a, expression.b) if divisor else expression
    if divisor <= 0:
        return expression
    low, high = analyzer.const_int_bound(a)
    if low >= 0 and high < divisor:
        return a
    known = analyzer.modular_set(a)
    if known.coeff % divisor == 0:
        return integer(known.base % divisor, a.dtype)
    if isinstance(a, E.Mul) and isinstance(a.b, E.IntImm) and not 0 <= a.b.value < divisor:
        smaller = multiply(a.a, integer(a.b.value % divisor, a.dtype))
        return _floormod(E.FloorMod(smaller, expression.b), analyzer)
    if isinstance(a, E.Add):
        for scaled, rest in ((a.a, a.b), (a.b, a.a)):
            if isinstance(scaled, E.Mul) and isinstance(scaled.b, E.IntImm):
                scale = scaled.b.value
                if scale > 1 and divisor % scale == 0 and analyzer.is_within(rest, 0, scale):
                    digit = floormod(scaled.a, integer(divisor // scale, a.dtype))
                    return add(multiply(digit, scaled.b), rest)
    return expression


def _truncdiv(expression: E.Div, analyzer: Analyzer) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not dtypes.is_integer(a.dtype):
        return expression
    if isinstance(b, E.IntImm) and b.value > 0:
        if isinstance(a, E.IntImm) or b.value == 1:
            return truncdiv(a, b)
        low, high = analyzer.const_int_bound(a)
        if -b.value < low and high < b.value:
            return integer(0, a.dtype)
    return expression


def _truncmod(expression: E.Mod, analyzer: Analyzer) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if isinstance(b, E.IntImm) and b.value > 0:
        if isinstance(a, E.IntImm) or b.value == 1:
            return truncmod(a, b)
        low, high = analyzer.const_int_bound(a)
        if -b.value < low and high < b.value:
            return a
    return expression


def _cast(expression: E.Cast, analyzer: Analyzer) -> E.PrimExpr:
    value = expression.value
    if isinstance(value, (E.IntImm, E.FloatImm)) or value.dtype == expression.dtype:
        return cast(expression.dtype, value)
    return expression


RULES: dict[type, Callable[[Any, Analyzer], E.PrimExpr]] = {
    E.Add: _add,
    E.Sub: _subtract,
    E.Mul: _fold_multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: _truncdiv,
    E.Mod: _truncmod,
    E.Cast: _cast,
}
