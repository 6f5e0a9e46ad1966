"""Rules of boolean algebra and of choices between values."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, log2
from typing import Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import ConstIntBound, is_index_type
from mlcweb.arith.rules_comparison import FALSE, TRUE, negation
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.folding import integer, less_equal, logical_and, logical_or, subtract
from mlcweb.tir.operators import Key, operands_of, operator_name
from mlcweb.tir.substitute import substitute


def _connective(
    join: Callable[..., E.PrimExpr], refute: Callable[[E.PrimExpr], E.PrimExpr], decided: E.IntImm
) -> Callable[[Any, Facts], E.PrimExpr]:
    """The rule of `and` or `or`. Where what two operands `refute` cannot hold together, the result
    is `decided`."""

    def rule(expression: Any, analyzer: Facts) -> E.PrimExpr:
        a, b = expression.a, expression.b
        if isinstance(a, E.IntImm) or isinstance(b, E.IntImm):
            return join(a, b)
        if same_expression(a, b):
            return a
        if _exclude_each_other(refute(a), refute(b)):
            return decided
        for wider, narrower in ((a, b), (b, a)):
            if isinstance(wider, E.NE) and isinstance(narrower, E.EQ):
                if _other_constant(wider, narrower):
                    return narrower if decided is FALSE else wider
        if decided is TRUE and (joined := _less_or_equal(a, b)) is not None:
            return analyzer.rewrite(joined)
        if decided is FALSE and (tighter := _last_digit_bound(a, b)) is not None:
            return logical_and(tighter, b)
        if type(b) is type(expression):
            return analyzer.rewrite(join(join(a, b.a), b.b))
        return expression

    return rule


def _less_or_equal(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr | None:
    """x < y or x == y is x <= y."""
    order, other = (a, b) if isinstance(a, E.LT) else (b, a)
    if isinstance(order, E.LT) and isinstance(other, E.EQ) and is_index_type(order.a.dtype):
        for x, y in ((other.a, other.b), (other.b, other.a)):
            if same_expression(order.a, x) and same_expression(order.b, y):
                return less_equal(x, y)
    return None


def _last_digit_bound(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr | None:
    """x < n and x % c < d is x < m and x % c < d, where m ends with the last x that both allow."""
    if not (isinstance(a, (E.LT, E.LE)) and isinstance(b, E.LT) and isinstance(b.a, E.FloorMod)):
        return None
    end, base, digit = a.b, b.a.b, b.b
    if not same_expression(a.a, b.a.a) or not isinstance(end, E.IntImm):
        return None
    if not isinstance(base, E.IntImm) or not isinstance(digit, E.IntImm):
        return None
    last = end.value - (1 if isinstance(a, E.LT) else 0)
    if not 0 < digit.value <= last % max(base.value, 1):
        return None
    return E.LT(a.a, integer(last - last % base.value + digit.value, end.dtype))


def _other_constant(a: E.NE, b: E.EQ) -> bool:
    """Whether a value is compared with two constants; equal to one, it is not the other."""
    return (
        same_expression(a.a, b.a)
        and isinstance(a.b, E.IntImm)
        and isinstance(b.b, E.IntImm)
        and a.b.value != b.b.value
    )


def _exclude_each_other(a: E.PrimExpr, b: E.PrimExpr) -> bool:
    """Whether two conditions never hold together: opposites, or disjoint bounds of one value."""
    if same_expression(negation(a), b):
        return True
    of_a, of_b = bound_by_constant(a), bound_by_constant(b)
    if of_a is None or of_b is None or not same_expression(of_a[0], of_b[0]):
        return False
    low, high = of_a[1].intersect(of_b[1])
    return low > high


def bound_by_constant(condition: E.PrimExpr) -> tuple[E.PrimExpr, ConstIntBound] | None:
    """(x, bound) of a comparison of x with a constant."""
    if not isinstance(condition, (E.LT, E.LE, E.EQ)):
        return None
    strict = 1 if isinstance(condition, E.LT) else 0
    exact = isinstance(condition, E.EQ)
    a, b = condition.a, condition.b
    if isinstance(b, E.IntImm):
        return a, ConstIntBound(b.value if exact else -inf, b.value - strict)
    if isinstance(a, E.IntImm):
        return b, ConstIntBound(a.value + strict, a.value if exact else inf)
    return None


def _not(expression: E.Not, analyzer: Facts) -> E.PrimExpr:
    negated = negation(expression.a)
    if isinstance(negated, E.Not):
        return expression if negated.a is expression.a else negated
    return negated if isinstance(negated, E.IntImm) else analyzer.rewrite(negated)


def _choice(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    condition, true_value, false_value = operands_of(expression)
    if isinstance(condition, E.IntImm):
        return true_value if condition.value else false_value
    return expression


def _if_then_else(expression: E.Call, analyzer: Facts) -> E.PrimExpr:
    """Where two conditions must hold for one value, they are joined: if c: (if d: x else y) else y.
    The inner one is then asked only of variables, since it may be worked out where c is false."""
    chosen = _choice(expression, analyzer)
    if chosen is not expression:
        return chosen
    condition, inner, otherwise = expression.args
    if isinstance(inner, E.Call) and operator_name(inner) == "if_then_else":
        if same_expression(inner.args[2], otherwise) and _asks_of_variables(inner.args[0]):
            both = analyzer.rewrite(logical_and(condition, inner.args[0]))
            return replace(expression, args=(both, inner.args[1], otherwise))
    return expression


def _asks_of_variables(condition: E.PrimExpr) -> bool:
    """Whether a condition can be worked out anywhere: nothing is loaded, called or divided."""
    kinds = (E.ComparisonExpr, E.And, E.Or, E.Not, E.Add, E.Sub, E.Mul, E.Var, E.IntImm)
    return all(isinstance(node, kinds) for node in walk(condition))


def _select(expression: E.Select, analyzer: Facts) -> E.PrimExpr:
    same = same_expression(expression.true_value, expression.false_value)
    return expression.true_value if same else _choice(expression, analyzer)


def of_choices(expression: Any, analyzer: Facts) -> E.PrimExpr | None:
    """Two choices by one condition, added, subtracted or compared for the larger, are one; so is a
    choice less one of its values."""
    a, b = expression.a, expression.b
    if not isinstance(a, E.Select) or not isinstance(expression, (E.Add, E.Sub, E.Min, E.Max)):
        return None
    if isinstance(b, E.Select):
        if not same_expression(a.condition, b.condition):
            return None
        pairs = zip(_chosen(a), _chosen(b), strict=True)
    else:
        if not isinstance(expression, E.Sub) or not is_index_type(b.dtype):
            return None
        if not any(same_expression(value, b) for value in _chosen(a)):
            return None
        pairs = ((value, b) for value in _chosen(a))
    values = (type(expression)(*pair) for pair in pairs)
    return analyzer.rewrite(E.Select(a.condition, *values))


def _chosen(choice: E.Select) -> tuple[E.PrimExpr, E.PrimExpr]:
    return choice.true_value, choice.false_value


def _likely(expression: E.Call, analyzer: Facts) -> E.PrimExpr:
    return expression.args[0] if isinstance(expression.args[0], E.IntImm) else expression


def _leading_zeros(expression: E.Call, analyzer: Facts) -> E.PrimExpr:
    value = expression.args[0]
    if not isinstance(value, E.IntImm) or value.value < 0:
        return expression
    return integer(dtypes.bits(value.dtype) - value.value.bit_length(), expression.dtype)


def _absolute(expression: E.Call, analyzer: Facts) -> E.PrimExpr:
    value = expression.args[0]
    if isinstance(value, E.FloatImm):
        return E.FloatImm(value.dtype, abs(value.value))
    if is_index_type(value.dtype):
        low, high = analyzer.const_int_bound(value)
        if low >= 0:
            return value
        if high <= 0:
            return analyzer.rewrite(subtract(integer(0, value.dtype), value))
    return expression


def _let(expression: E.Let, analyzer: Facts) -> E.PrimExpr:
    """A constant, or a variable, in the place of its name."""
    if isinstance(expression.value, (E.IntImm, E.FloatImm, E.Var)):
        body = substitute(expression.body, {expression.var: expression.value})
        return analyzer.rewrite(body)
    return expression


def _ceil(expression: E.Call, analyzer: Facts) -> E.PrimExpr:
    """The logarithm of a constant, rounded up."""
    value = expression.args[0]
    if not (isinstance(value, E.Call) and operator_name(value) == "log2"):
        return expression
    power = value.args[0]
    if not isinstance(power, E.FloatImm) or power.value <= 0:
        return expression
    return E.FloatImm(expression.dtype, float(ceil(log2(power.value))))


RULES: dict[Key, Callable[[Any, Facts], E.PrimExpr]] = {
    E.And: _connective(logical_and, lambda a: a, FALSE),
    E.Or: _connective(logical_or, negation, TRUE),
    E.Not: _not,
    E.Select: _select,
    E.Let: _let,
    "if_then_else": _if_then_else,
    "likely": _likely,
    "clz": _leading_zeros,
    "abs": _absolute,
    "fabs": _absolute,
    "ceil": _ceil,
}
