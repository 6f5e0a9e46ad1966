"""Rules of integer arithmetic beyond sums: symbolic products, quotients and remainders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from math import gcd, prod
from typing import Any

from mlcweb.arith.digits import Sum, write
from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type
from mlcweb.ir.visitor import walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast, is_const_int
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


def _fold(build: Callable[[Any, Any], E.PrimExpr]) -> Callable[[Any, Facts], E.PrimExpr]:
    """A rule that only folds constants and neutral operands."""

    def rule(expression: Any, analyzer: Facts) -> E.PrimExpr:
        if isinstance(expression.a, (E.IntImm, E.FloatImm)) or isinstance(
            expression.b, (E.IntImm, E.FloatImm)
        ):
            folded = build(expression.a, expression.b)
            if type(folded) is not type(expression):
                return folded
        return expression

    return rule


_fold_add, _fold_subtract = _fold(add), _fold(subtract)
fold_multiply = _fold(multiply)
_fold_floordiv, _fold_floormod = _fold(floordiv), _fold(floormod)


def _add(expression: E.Add, analyzer: Facts) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if is_index_type(a.dtype):
        shared = _common_factor(a, b, add)
        if shared is not None:
            return shared
        remaining = _cancelled(a, b, 1)
        if remaining is not None:
            return remaining
        if isinstance(b, (E.Min, E.Max)) and not isinstance(a, (E.Min, E.Max, E.IntImm)):
            return E.Add(b, a)
    return _fold_add(expression, analyzer)


def _cancelled(a: E.PrimExpr, b: E.PrimExpr, sign: int) -> E.PrimExpr | None:
    """`a + b`, or `a - b` for the sign -1, without the operands of both that cancel; None where
    none do. Operands are looked for one level deep, as TVM's rules do."""
    terms: list[tuple[E.PrimExpr, int]] = []
    signed = [*_signed_operands(a, 1), *_signed_operands(b, sign)]
    for operand, direction in signed:
        for index, (other, opposite) in enumerate(terms):
            if direction == -opposite and same_expression(operand, other):
                del terms[index]
                break
        else:
            terms.append((operand, direction))
    if len(terms) == len(signed):
        return None
    total: E.PrimExpr = integer(0, a.dtype)
    for operand, direction in sorted(terms, key=lambda term: -term[1]):
        total = (add if direction > 0 else subtract)(total, operand)
    return total


def _signed_operands(expression: E.PrimExpr, sign: int) -> tuple[tuple[E.PrimExpr, int], ...]:
    if isinstance(expression, (E.Add, E.Sub)):
        second = sign if isinstance(expression, E.Add) else -sign
        return (expression.a, sign), (expression.b, second)
    return ((expression, sign),)


def _common_factor(
    a: E.PrimExpr, b: E.PrimExpr, combine: Callable[..., E.PrimExpr]
) -> E.PrimExpr | None:
    """x * z + y * z is (x + y) * z, and x * z + z is (x + 1) * z; with `combine` for the +."""
    for x, z in _as_products(a):
        for y, w in _as_products(b):
            if same_expression(z, w):
                scale = combine(x, y)
                return multiply(z, scale) if isinstance(scale, E.IntImm) else multiply(scale, z)
    return None


def _as_products(expression: E.PrimExpr) -> tuple[tuple[E.PrimExpr, E.PrimExpr], ...]:
    if isinstance(expression, E.Mul):
        return (expression.a, expression.b), (expression.b, expression.a)
    return ((integer(1, expression.dtype), expression),)


def _difference(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    return integer(0, a.dtype) if same_expression(a, b) else subtract(a, b)


def _subtract(expression: E.Sub, analyzer: Facts) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not dtypes.is_float(a.dtype) and same_expression(a, b):
        return const(0, a.dtype)
    if is_index_type(a.dtype):
        shared = _common_factor(a, b, _difference)
        if shared is not None:
            return shared
        unrounded = _without_rounding(a, b, analyzer)
        if unrounded is not None:
            return unrounded
        remaining = _cancelled(a, b, -1)
        if remaining is not None:
            return remaining
    return _fold_subtract(expression, analyzer)


def rounded_down(expression: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr] | None:
    """(x, c) of x // c * c."""
    if isinstance(expression, E.Mul) and isinstance(expression.a, E.FloorDiv):
        if isinstance(expression.b, E.IntImm) and same_expression(expression.a.b, expression.b):
            return expression.a.a, expression.b
    return None


def _without_rounding(a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
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


def _reduced(expression: Any) -> tuple[E.PrimExpr, E.PrimExpr, E.PrimExpr] | None:
    """(a, b, c) where the operands of a division are a * c and b * c, and c is not 1."""
    dtype = expression.dtype
    above, below, common = list(factors(expression.a)), [], integer(1, dtype)
    scales = [_scale(above), _scale(list(factors(expression.b)))]
    shared = gcd(*scales)
    above = [factor for factor in above if not isinstance(factor, E.IntImm)]
    for factor in factors(expression.b):
        if isinstance(factor, E.IntImm):
            continue
        position = next((i for i, x in enumerate(above) if same_expression(x, factor)), None)
        if position is None:
            below.append(factor)
        else:
            common = multiply(common, above.pop(position))
    if is_const_int(common, 1) or shared == 0:
        return None
    one = integer(1, dtype)
    a, b = (
        multiply(reduce(multiply, rest, one), integer(scale // shared, dtype))
        for rest, scale in ((above, scales[0]), (below, scales[1]))
    )
    return a, b, multiply(common, integer(shared, dtype))


def _scale(parts: list[E.PrimExpr]) -> int:
    """The product of the constants of factors."""
    return prod(part.value for part in parts if isinstance(part, E.IntImm))


def _floordiv(expression: E.FloorDiv, analyzer: Facts) -> E.PrimExpr:
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
    if (fraction := _reduced(expression)) is not None:
        return analyzer.rewrite(floordiv(*fraction[:2]))
    if analyzer.const_int_bound(b).min_value >= 0:
        return _divide_by_symbol(expression, analyzer)
    return expression


def _divide_by_symbol(expression: E.FloorDiv, analyzer: Facts) -> E.PrimExpr:
    """(x * n + y) // n is x + y // n where n is not negative (nothing is divided by 0);
    0 <= y < n leaves x."""
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


def _constant_factor(expression: E.PrimExpr) -> int:
    """c of x * c; 0 where it is none, or negative."""
    if isinstance(expression, E.Mul) and isinstance(expression.b, E.IntImm):
        return max(expression.b.value, 0)
    return 0


def _divide_by_constant(expression: E.FloorDiv, divisor: int, analyzer: Facts) -> E.PrimExpr:
    a, dtype = expression.a, expression.a.dtype
    if divisor == 1:
        return a
    if divisor <= 0 or isinstance(a, E.IntImm):
        return floordiv(a, expression.b) if divisor and isinstance(a, E.IntImm) else expression
    if isinstance(a, E.FloorDiv) and isinstance(a.b, E.IntImm) and a.b.value > 0:
        return _quotient(a.a, a.b.value * divisor, analyzer)
    if isinstance(a, (E.Add, E.Sub)) and isinstance(a.b, E.IntImm):
        # (x // c1 + c2) // c3 is (x + c1 * c2) // (c1 * c3)
        inner = a.a
        if isinstance(inner, E.FloorDiv) and isinstance(inner.b, E.IntImm) and inner.b.value > 0:
            step = inner.b.value
            shift = step * a.b.value * (1 if isinstance(a, E.Add) else -1)
            moved = analyzer.canonical(add(inner.a, integer(shift, dtype)))
            return _quotient(moved, step * divisor, analyzer)
    if isinstance(a, (E.Min, E.Max)):
        # min(x * c1, y) // c2 is min(x * (c1 / c2), y // c2)
        scales = [_constant_factor(x) for x in (a.a, a.b)]
        if any(scale and scale % divisor == 0 for scale in scales):
            return analyzer.rewrite(
                type(a)(floordiv(a.a, expression.b), floordiv(a.b, expression.b))
            )
    total = analyzer.canonical_sum(a)
    quotient, rest = total.divmod(divisor)
    if analyzer.is_within(write(rest), 0, divisor):
        return write(quotient)
    quotient, rest = total.separate(divisor)
    if digits := _split(rest, divisor, analyzer, any_lower=True):
        upper, _, unit = digits
        return add(_quotient(write(upper), divisor // unit, analyzer), write(quotient))
    return expression


def _quotient(a: E.PrimExpr, divisor: int, analyzer: Facts) -> E.PrimExpr:
    quotient = floordiv(a, integer(divisor, a.dtype))
    return _floordiv(quotient, analyzer) if isinstance(quotient, E.FloorDiv) else quotient


def _split(
    total: Sum, divisor: int, analyzer: Facts, any_lower: bool = False
) -> tuple[Sum, Sum, int] | None:
    """`total`, x * unit + y or (x + y) * unit, as `upper * unit + lower` with 0 <= lower < unit,
    where `unit` divides `divisor`; y is a sum only for `any_lower`, as in TVM."""
    scales = [*map(abs, total.terms.values()), *([abs(total.constant)] if total.constant else [])]
    is_long = len(scales) > 2 and len(set(scales)) > 1
    if is_long and not any_lower:
        return None
    for unit in scales:
        if unit > 1 and divisor % unit == 0:
            upper, lower = total.separate(unit)
            if is_long and (upper.constant or len(upper.terms) > 1):
                continue
            if abs(upper.constant) <= 1 and analyzer.is_within(write(lower), 0, unit):
                return upper, lower, unit
    return None


def _floormod(expression: E.FloorMod, analyzer: Facts) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not is_index_type(a.dtype):
        if _divides_wrapping_product(a, b):
            return const(0, a.dtype)
        return _fold_floormod(expression, analyzer)
    if isinstance(b, E.IntImm):
        return _remainder_of_constant(expression, b.value, analyzer)
    if isinstance(a, E.IntImm) and a.value == 0:
        return a
    if quotient_of_product(a, b) is not None:
        return integer(0, a.dtype)
    if (fraction := _reduced(expression)) is not None:
        return multiply(analyzer.rewrite(floormod(*fraction[:2])), fraction[2])
    if analyzer.const_int_bound(b).min_value >= 0:
        if analyzer.const_int_bound(a).min_value >= 0 and analyzer.is_less(a, b):
            return a
        if isinstance(a, E.Add):
            for x, y in ((a.a, a.b), (a.b, a.a)):
                if quotient_of_product(x, b) is not None:
                    return _floormod(E.FloorMod(y, b), analyzer)
    return expression


def _divides_wrapping_product(a: E.PrimExpr, b: E.PrimExpr) -> bool:
    """Whether a power of 2 divides a product even where it wraps around, modulo a larger one."""
    if not (isinstance(a, E.Mul) and isinstance(a.b, E.IntImm) and isinstance(b, E.IntImm)):
        return False
    return b.value > 0 and b.value & (b.value - 1) == 0 and a.b.value % b.value == 0


def _remainder_of_constant(expression: E.FloorMod, divisor: int, analyzer: Facts) -> E.PrimExpr:
    a, dtype = expression.a, expression.a.dtype
    if divisor <= 0 or isinstance(a, E.IntImm):
        return floormod(a, expression.b) if divisor and isinstance(a, E.IntImm) else expression
    if analyzer.is_within(a, 0, divisor):
        return a
    modular_set = analyzer.modular_set(a)
    if modular_set.coeff % divisor == 0:
        return integer(modular_set.base % divisor, dtype)
    total = analyzer.canonical_sum(a)
    if len(total.terms) == 1 and not total.constant:
        reduced = total.divmod(divisor)[1]
        if analyzer.is_within(write(reduced), 0, divisor):
            return write(reduced)
        if reduced.terms != total.terms:
            return E.FloorMod(write(reduced), expression.b)
    digits = _split(total.separate(divisor)[1], divisor, analyzer)
    if digits and (digits[1].terms or digits[1].constant):  # TVM leaves (x * 3 + y * 3) % 6
        upper, lower, unit = digits
        remainder = floormod(write(upper), integer(divisor // unit, dtype))
        return add(multiply(remainder, integer(unit, dtype)), write(lower))
    if isinstance(a, (E.Add, E.Sub)) and isinstance(a.b, E.IntImm):
        shift = a.b.value if isinstance(a, E.Add) else -a.b.value
        if not 0 <= shift < divisor:
            return E.FloorMod(add(a.a, integer(shift % divisor, dtype)), expression.b)
    return expression


def _truncdiv(expression: E.Div, analyzer: Facts) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if not dtypes.is_integer(a.dtype):
        return expression
    if isinstance(b, E.IntImm) and b.value > 0:
        if isinstance(a, E.IntImm) or b.value == 1:
            return truncdiv(a, b)
        low, high = analyzer.const_int_bound(a)
        if -b.value < low and high < b.value:
            return integer(0, a.dtype)
        return _as_canonical(expression, analyzer)
    if is_index_type(a.dtype) and not isinstance(b, E.IntImm):
        exact = quotient_of_product(a, b)
        if exact is not None:
            return exact
        if (fraction := _reduced(expression)) is not None:
            return analyzer.rewrite(truncdiv(*fraction[:2]))
    return expression


def _truncmod(expression: E.Mod, analyzer: Facts) -> E.PrimExpr:
    a, b = expression.a, expression.b
    if isinstance(b, E.IntImm) and b.value:
        divisor = integer(abs(b.value), b.dtype)  # the remainder has the sign of a
        if isinstance(a, E.IntImm) or abs(b.value) == 1:
            return truncmod(a, divisor)
        low, high = analyzer.const_int_bound(a)
        if -abs(b.value) < low and high < abs(b.value):
            return a
        return _as_canonical(expression if b.value > 0 else E.Mod(a, divisor), analyzer)
    if is_index_type(a.dtype):
        if quotient_of_product(a, b) is not None:
            return integer(0, a.dtype)
        if not isinstance(b, E.IntImm) and (fraction := _reduced(expression)) is not None:
            return multiply(analyzer.rewrite(truncmod(*fraction[:2])), fraction[2])
    return expression


def _as_canonical(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    """The canonical form of a division of indices, where it is shorter."""
    if not is_index_type(expression.dtype):
        return expression
    canonical = analyzer.canonical(expression)
    return canonical if _length(canonical) < _length(expression) else expression


def _length(expression: E.PrimExpr) -> int:
    return sum(1 for _ in walk(expression))


def _cast(expression: E.Cast, analyzer: Facts) -> E.PrimExpr:
    value = expression.value
    if isinstance(value, E.FloatImm) and dtypes.is_bool(expression.dtype):
        return integer(int(value.value != 0), expression.dtype)
    if isinstance(value, E.FloatImm) and dtypes.is_integer(expression.dtype):
        low, high = dtypes.min_value(expression.dtype), dtypes.max_value(expression.dtype)
        whole = value.value.is_integer() and low <= value.value <= high
        return integer(int(value.value), expression.dtype) if whole else expression
    if isinstance(value, (E.IntImm, E.FloatImm)) or value.dtype == expression.dtype:
        return cast(expression.dtype, value)
    return expression


RULES: dict[type, Callable[[Any, Facts], E.PrimExpr]] = {
    E.Add: _add,
    E.Sub: _subtract,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: _truncdiv,
    E.Mod: _truncmod,
    E.Cast: _cast,
}
