"""Rules of comparisons of integers: decided by bounds, or brought to TVM's form."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd, inf
from typing import Any

from mlcweb.arith.digits import Sum, write
from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import ConstIntBound, is_index_type
from mlcweb.arith.rules_integer import rounded_down
from mlcweb.tir import expr as E
from mlcweb.tir.folding import (
    add,
    equal,
    floormod,
    integer,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    subtract,
)  # fmt: skip

TRUE, FALSE = E.IntImm("bool", 1), E.IntImm("bool", 0)


def truth(value: bool) -> E.IntImm:
    return TRUE if value else FALSE


def _numbers(expression: Any) -> tuple[Any, Any] | None:
    a, b = expression.a, expression.b
    if isinstance(a, (E.IntImm, E.FloatImm)) and isinstance(b, (E.IntImm, E.FloatImm)):
        return a.value, b.value
    return None


def _less(expression: E.LT, analyzer: Facts) -> E.PrimExpr:
    if numbers := _numbers(expression):
        return truth(numbers[0] < numbers[1])
    a, b = expression.a, expression.b
    if not is_index_type(a.dtype):
        return expression
    difference = analyzer.canonical_sum(subtract(a, b))
    low, high = _bound(difference, analyzer)
    if high < 0:
        return TRUE
    if low >= 0:
        return FALSE
    if analyzer.compares_products and (holds := _product_and_sum(difference, analyzer)) is not None:
        return truth(holds)
    for rule in (_distributed, _without_division):
        smaller = rule(a, b, analyzer)
        if smaller is not None:
            return analyzer.rewrite(smaller)
    reduced = _without_common_factor(difference, analyzer)
    if reduced is not None and not same_expression(reduced, expression):
        return reduced
    smaller = _without_common_operand(a, b, analyzer)
    if smaller is not None:
        return analyzer.rewrite(smaller)
    return _with_constants_moved(expression)


def _bound(difference: Sum, analyzer: Facts) -> ConstIntBound:
    """The bound of a sum, whose constant need not fit in its type: that of x + 2**31, say."""
    if -(2**31) <= difference.constant < 2**31:
        return analyzer.const_int_bound(write(difference))
    low, high = analyzer.const_int_bound(write(difference.with_constant(0)))
    return ConstIntBound(low + difference.constant, high + difference.constant)


def _product_and_sum(difference: Sum, analyzer: Facts) -> bool | None:
    """Whether x * y * c < (x + y) * d for positive x and y: whether c < d / x + d / y."""
    scales = {digit.source: scale for digit, scale in difference.items() if digit[1:3] == (1, None)}
    products = [source for source in scales if isinstance(source, E.Mul)]
    if difference.constant or len(scales) != 3 or len(products) != 1:
        return None
    (product,) = products
    factors = product.a, product.b
    size, scale = scales.pop(product), -next(iter(scales.values()))
    if any(scales.get(factor) != -scale for factor in factors) or scale <= 0:
        return None
    limits = [analyzer.const_int_bound(factor) for factor in factors]
    if any(low <= 0 for low, _ in limits):
        return None
    least = sum(Fraction(scale, int(high)) for _, high in limits if high < inf)
    greatest = sum(Fraction(scale, int(low)) for low, _ in limits)
    return True if size < least else False if size >= greatest else None


def _without_common_factor(difference: Sum, analyzer: Facts) -> E.PrimExpr | None:
    """x * s + y < c * s, where 0 <= y < s, is x < c; x * s < c is x < c / s rounded up."""
    scales = [abs(scale) for scale in difference.terms.values()]
    negative = len(scales) == 1 and max(difference.terms.values()) < 0
    large = [scale for scale in scales if scale > 1]
    if not large and not negative:
        return None
    if large and (step := gcd(*large, difference.constant)) > 1:
        quotient, rest = difference.separate(step)
        if analyzer.is_within(write(rest), 0, step):
            smaller = _without_common_factor(quotient, analyzer)
            return _below_zero(quotient) if smaller is None else smaller
        if (digit := _higher_digit(rest, step)) is not None:
            # x * s + y < c * s is x + y // s < c
            return analyzer.canonical(_below_zero(quotient.plus(digit)))
    if len(set(scales)) == 1 and (scales[0] > 1 or negative):
        limit = -difference.constant // -scales[0]
        quotient, _ = difference.with_constant(0).separate(scales[0])
        return _below_zero(quotient.with_constant(limit))
    return None


def _higher_digit(total: Sum, step: int) -> Sum | None:
    """`total // step`, where it is one remainder of a multiple of `step`."""
    if len(total.terms) != 1 or total.constant:
        return None
    ((digit, scale),) = total.items()
    if scale != 1 or digit.upper is None or digit.truncated or digit.upper % (digit.lower * step):
        return None
    return Sum({digit._replace(lower=digit.lower * step): 1}, 0, total.dtype)


def _below_zero(difference: Sum) -> E.PrimExpr:
    """`difference < 0` with the constant on the right; -x - y < c is written -c < x + y."""
    dtype, constant = difference.dtype, difference.constant
    difference = difference.with_constant(0)
    if all(scale < 0 for scale in difference.terms.values()):
        return less(integer(constant, dtype), write(difference.times(-1)))
    return less(write(difference), integer(-constant, dtype))


def _distributed(a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    """min(x, y) < z is x < z or y < z, and so on."""
    if isinstance(a, (E.Min, E.Max)):
        join = logical_or if isinstance(a, E.Min) else logical_and
        return join(less(a.a, b), less(a.b, b))
    if isinstance(b, (E.Min, E.Max)):
        join = logical_and if isinstance(b, E.Min) else logical_or
        return join(less(a, b.a), less(a, b.b))
    return None


def _constant_divisor(expression: E.PrimExpr) -> int:
    """c of x // c, or of a division towards zero; else 0."""
    if isinstance(expression, (E.FloorDiv, E.Div)) and isinstance(expression.b, E.IntImm):
        return max(expression.b.value, 0)
    return 0


def _without_division(a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    if (step := _constant_divisor(a)) and isinstance(b, E.IntImm):
        limit = b.value * step
        if isinstance(a, E.Div) and b.value <= 0:
            limit -= step - 1
        return less(a.a, integer(limit, b.dtype))  # type: ignore[attr-defined]
    if (step := _constant_divisor(b)) and isinstance(a, E.IntImm):
        last = (a.value + 1) * step - 1
        if isinstance(b, E.Div) and a.value < 0:
            last = a.value * step
        return less(integer(last, a.dtype), b.a)  # type: ignore[attr-defined]
    if (rounded := rounded_down(a)) is not None:
        # x // s * s is x - x % s.
        shift = analyzer.canonical(subtract(rounded[0], b))
        if isinstance(shift, E.IntImm):
            return less(shift, floormod(*rounded))
    if (rounded := rounded_down(b)) is not None:
        shift = analyzer.canonical(subtract(rounded[0], a))
        if isinstance(shift, E.IntImm):
            return less(floormod(*rounded), shift)
    return None


def _without_common_operand(a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    """x + y < x + z is y < z, where the common operand stands at the top."""
    zero = integer(0, a.dtype)
    if isinstance(a, E.Add) and isinstance(b, E.Add):
        for x, y in ((a.a, a.b), (a.b, a.a)):
            for w, z in ((b.a, b.b), (b.b, b.a)):
                if same_expression(x, w):
                    return less(y, z)
    if isinstance(a, E.Sub) and isinstance(b, E.Sub):
        if same_expression(a.b, b.b):
            return less(a.a, b.a)
        if same_expression(a.a, b.a):
            return less(b.b, a.b)
    if isinstance(b, E.Add):
        for x, rest in ((b.a, b.b), (b.b, b.a)):
            if same_expression(x, a):
                return less(zero, rest)
    if isinstance(b, E.Sub) and same_expression(a, b.a):
        return less(b.b, zero)
    return None


Parts = tuple[E.PrimExpr | None, E.PrimExpr | None, int]
"""x, y and c of `x - y + c`, where each may be left out."""


def _parts(expression: E.PrimExpr) -> Parts:
    """x + c, and c - y, taken apart."""
    if isinstance(expression, E.IntImm):
        return None, None, expression.value
    if isinstance(expression, (E.Add, E.Sub)) and isinstance(expression.b, E.IntImm):
        x, y, constant = _parts(expression.a)
        return x, y, constant + (1 if isinstance(expression, E.Add) else -1) * expression.b.value
    if isinstance(expression, E.Sub) and isinstance(expression.a, E.IntImm):
        return None, expression.b, expression.a.value
    return expression, None, 0


def _sum(a: E.PrimExpr | None, b: E.PrimExpr | None) -> E.PrimExpr | None:
    return add(a, b) if a is not None and b is not None else a if b is None else b


def _with_constants_moved(expression: E.LT) -> E.PrimExpr:
    """One constant, on the side where it is positive; x < y + 1 is x <= y."""
    dtype = expression.a.dtype
    # x - y + low < z - w + high
    (x, y, low), (z, w, high) = _parts(expression.a), _parts(expression.b)
    left, right, shift = _sum(x, w), _sum(z, y), high - low
    if left is None or right is None:
        left = integer(-shift, dtype) if left is None else left
        right = integer(shift, dtype) if right is None else right
        return _unless_same(expression, left, right)
    if shift == 1:
        return less_equal(left, right)
    if shift < 0:
        return _unless_same(expression, add(left, integer(-shift, dtype)), right)
    return _unless_same(expression, left, add(right, integer(shift, dtype)))


def _unless_same(expression: Any, a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if same_expression(a, expression.a) and same_expression(b, expression.b):
        return expression
    return type(expression)(a, b)


def _less_equal(expression: E.LE, analyzer: Facts) -> E.PrimExpr:
    """a <= b is not b < a."""
    if numbers := _numbers(expression):
        return truth(numbers[0] <= numbers[1])
    a, b = expression.a, expression.b
    if not is_index_type(a.dtype):
        return expression
    opposite = _less(E.LT(b, a), analyzer)
    if isinstance(opposite, E.LT):
        difference = analyzer.canonical(subtract(a, b))
        if analyzer.const_int_bound(difference).min_value >= 0:
            return _equal(E.EQ(a, b), analyzer)
        constant = isinstance(a, E.IntImm) or isinstance(b, E.IntImm)
        if not constant and not analyzer.modular_set(difference).contains(0):
            return _less(E.LT(a, b), analyzer)
        return _unless_same(expression, opposite.b, opposite.a)
    return negation(opposite)


def _swapped(rule: Callable[..., E.PrimExpr], cls: type) -> Callable[..., E.PrimExpr]:
    """a > b is b < a."""
    return lambda expression, analyzer: rule(cls(expression.b, expression.a), analyzer)


def _equal(expression: E.EQ, analyzer: Facts) -> E.PrimExpr:
    if numbers := _numbers(expression):
        return truth(numbers[0] == numbers[1])
    a, b = expression.a, expression.b
    if not is_index_type(a.dtype):
        always = isinstance(a, E.Var) and a is b and not a.dtype.startswith(("float", "bfloat"))
        return TRUE if always else expression
    difference = analyzer.canonical_sum(subtract(a, b))
    low, high = _bound(difference, analyzer)
    if low == high == 0:
        return TRUE
    remainders = analyzer.modular_set(write(difference.with_constant(0)))
    if low > 0 or high < 0 or not remainders.contains(-difference.constant):
        return FALSE
    if isinstance(a, E.IntImm):
        a, b = b, a
    if isinstance(b, E.IntImm):
        if b.value == 0 and isinstance(a, E.Mul):
            return analyzer.rewrite(logical_or(equal(a.a, b), equal(a.b, b)))
        x, y, shift = _parts(a)
        if x is None and y is not None:
            return _unless_same(expression, y, integer(shift - b.value, b.dtype))
        assert x is not None
        return _unless_same(expression, x, integer(b.value - shift, b.dtype))
    return expression


def _not_equal(expression: E.NE, analyzer: Facts) -> E.PrimExpr:
    opposite = _equal(E.EQ(expression.a, expression.b), analyzer)
    if isinstance(opposite, E.EQ):
        return _unless_same(expression, opposite.a, opposite.b)
    return negation(opposite)


_NEGATIONS: dict[type, Callable[[Any], E.PrimExpr]] = {
    E.IntImm: lambda e: truth(not e.value),
    E.Not: lambda e: e.a,
    E.LT: lambda e: less_equal(e.b, e.a),
    E.LE: lambda e: less(e.b, e.a),
    E.GT: lambda e: less_equal(e.a, e.b),
    E.GE: lambda e: less(e.a, e.b),
    E.EQ: lambda e: not_equal(e.a, e.b),
    E.NE: lambda e: equal(e.a, e.b),
    E.And: lambda e: logical_or(negation(e.a), negation(e.b)),
    E.Or: lambda e: logical_and(negation(e.a), negation(e.b)),
}


def negation(expression: E.PrimExpr) -> E.PrimExpr:
    """The opposite of a condition, with the negation moved inwards.

    Orders of floats keep their negation outside: both directions are false of a NaN.
    """
    make = _NEGATIONS.get(type(expression))
    if make is None:
        return E.Not(expression)
    ordered = isinstance(expression, (E.LT, E.LE, E.GT, E.GE))
    if ordered and not is_index_type(expression.a.dtype):
        return E.Not(expression)
    return make(expression)


RULES: dict[type, Callable[[Any, Facts], E.PrimExpr]] = {
    E.LT: _less,
    E.LE: _less_equal,
    E.GT: _swapped(_less, E.LT),
    E.GE: _swapped(_less_equal, E.LE),
    E.EQ: _equal,
    E.NE: _not_equal,
}
