"""Rules of minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.rules_integer import is_index_type
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import add, const, floordiv, maximum, minimum, multiply, subtract

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer

Extremum = E.Min | E.Max


def _build(cls: type) -> Callable[..., E.PrimExpr]:
    return minimum if cls is E.Min else maximum


def _opposite(cls: type) -> type:
    return E.Max if cls is E.Min else E.Min


def _extremum(expression: Extremum, analyzer: Analyzer) -> E.PrimExpr:
    cls, a, b = type(expression), expression.a, expression.b
    made = _build(cls)(a, b)
    if type(made) is not cls:
        return made
    if same_expression(a, b):
        return a
    if not is_index_type(a.dtype):
        return expression
    of_a, of_b = analyzer.const_int_bound(a), analyzer.const_int_bound(b)
    if of_a.max_value <= of_b.min_value:
        return a if cls is E.Min else b
    if of_b.max_value <= of_a.min_value:
        return b if cls is E.Min else a
    for rule in (_with_constant_difference, _absorbed, _nested, _common_operand, _common_scale):
        found = rule(cls, a, b, analyzer)
        if found is not None:
            return found
    return expression


def _with_constant_difference(
    cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer
) -> E.PrimExpr | None:
    difference = analyzer.canonical(subtract(a, b))
    if isinstance(difference, E.IntImm):
        return a if (difference.value <= 0) == (cls is E.Min) else b
    return None


def _absorbed(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr | None:
    """min(x, max(x, y)) is x; min(x, min(x, y)) is min(x, y)."""
    for x, other in ((a, b), (b, a)):
        if isinstance(other, (E.Min, E.Max)):
            if same_expression(other.a, x) or same_expression(other.b, x):
                return other if type(other) is cls else x
    return None


def _nested(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr | None:
    """Constants of nested extrema are merged, and stand last."""
    build = _build(cls)
    for inner, outer in ((a, b), (b, a)):
        if type(inner) is cls and isinstance(inner.b, E.IntImm):  # type: ignore[attr-defined]
            if isinstance(outer, E.IntImm):
                return build(inner.a, build(inner.b, outer))  # type: ignore[attr-defined]
            if inner is a:
                first = analyzer.rewrite(build(inner.a, outer))  # type: ignore[attr-defined]
                return build(first, inner.b)  # type: ignore[attr-defined]
    return None


def _common_operand(
    cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer
) -> E.PrimExpr | None:
    """min(x + y, x + z) is min(y, z) + x; min(x - y, x - z) is x - max(y, z)."""
    build = _build(cls)
    if isinstance(a, E.Add) and isinstance(b, E.Add):
        for x, y in ((a.a, a.b), (a.b, a.a)):
            for w, z in ((b.a, b.b), (b.b, b.a)):
                if same_expression(x, w):
                    return add(analyzer.rewrite(build(y, z)), x)
    if isinstance(a, E.Sub) and isinstance(b, E.Sub):
        if same_expression(a.a, b.a):
            return subtract(a.a, analyzer.rewrite(_build(_opposite(cls))(a.b, b.b)))
        if same_expression(a.b, b.b):
            return subtract(analyzer.rewrite(build(a.a, b.a)), a.b)
    return None


def _common_scale(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr | None:
    """min(x * c, y * c) is min(x, y) * c; a negative factor turns it round."""
    for operation, combine in ((E.Mul, multiply), (E.FloorDiv, floordiv)):
        if not (isinstance(a, operation) and isinstance(a.b, E.IntImm)):
            continue
        scale = a.b.value
        if scale == 0:
            return None
        made = _build(cls if scale > 0 else _opposite(cls))
        if isinstance(b, operation) and isinstance(b.b, E.IntImm) and b.b.value == scale:
            return combine(analyzer.rewrite(made(a.a, b.a)), a.b)
        if operation is E.Mul and isinstance(b, E.IntImm) and b.value % scale == 0:
            quotient = const(b.value // scale, b.dtype)
            return multiply(analyzer.rewrite(made(a.a, quotient)), a.b)
    return None


RULES: dict[type, Callable[[Any, Analyzer], E.PrimExpr]] = {E.Min: _extremum, E.Max: _extremum}
