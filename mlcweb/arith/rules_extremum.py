"""Rules of minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type
from mlcweb.arith.rules_integer import fold_multiply, rounded_down
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir.folding import add, floordiv, integer, maximum, minimum, multiply, subtract

Extremum = E.Min | E.Max


def _build(cls: type) -> Callable[..., E.PrimExpr]:
    return minimum if cls is E.Min else maximum


def _opposite(cls: type) -> type:
    return E.Max if cls is E.Min else E.Min


def _extremum(expression: Extremum, analyzer: Facts) -> E.PrimExpr:
    cls, a, b = type(expression), expression.a, expression.b
    folded = _build(cls)(a, b)
    if type(folded) is not cls:
        return folded
    if same_expression(a, b):
        return a
    if not is_index_type(a.dtype):
        return expression
    of_a, of_b = analyzer.const_int_bound(a), analyzer.const_int_bound(b)
    if of_a.max_value <= of_b.min_value:
        return a if cls is E.Min else b
    if of_b.max_value <= of_a.min_value:
        return b if cls is E.Min else a
    for rule in (
        _with_constant_difference,
        _against_rounding,
        _absorbed,
        _of_extrema,
        _nested,
        _common_operand,
        _common_scale,
        _from_constant,
    ):
        simpler = rule(cls, a, b, analyzer)
        if simpler is not None:
            return simpler
    return expression


def _with_constant_difference(
    cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts
) -> E.PrimExpr | None:
    if _has_extremum(a) != _has_extremum(b):
        return None  # It would stay in the difference, which takes long to find in a long chain.
    difference = analyzer.canonical(subtract(a, b))
    if isinstance(difference, E.IntImm):
        return a if (difference.value <= 0) == (cls is E.Min) else b
    return None


def _has_extremum(expression: E.PrimExpr) -> bool:
    return any(isinstance(node, (E.Min, E.Max)) for node in walk(expression))


def _against_rounding(
    cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts
) -> E.PrimExpr | None:
    """max(x // c * c, x) is x; max((x + c - 1) // c * c, x) is the former."""
    for rounded, x in ((a, b), (b, a)):
        parts = rounded_down(rounded)
        if parts is None:
            continue
        shift = analyzer.canonical(subtract(parts[0], x))
        if isinstance(shift, E.IntImm):
            step = int(parts[1])  # type: ignore[call-overload]
            if shift.value <= 0:
                return rounded if cls is E.Min else x
            if shift.value >= step - 1:
                return x if cls is E.Min else rounded
    return None


def _from_constant(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    """min(c - x, d) is c - max(x, c - d), but for d = 0."""
    if isinstance(a, E.Sub) and isinstance(a.a, E.IntImm) and isinstance(b, E.IntImm) and b.value:
        return subtract(a.a, _build(_opposite(cls))(a.b, subtract(a.a, b)))
    return None


def _absorbed(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    """min(x, max(x, y)) is x; min(x, min(min(x, y), z)) is min(min(x, y), z)."""
    for x, other in ((a, b), (b, a)):
        if type(other) is cls and any(same_expression(x, y) for y in _chain(cls, other)):
            return other
        if type(other) is _opposite(cls):
            if same_expression(other.a, x) or same_expression(other.b, x):  # type: ignore
                return x
    return None


def _chain(cls: type, extremum: Any) -> Iterator[E.PrimExpr]:
    """The operands of nested minima, where they are nested on the left."""
    while type(extremum) is cls:
        yield extremum.b
        extremum = extremum.a
    yield extremum


def _of_extrema(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    """min(max(x, y), min(x, y)) is min(x, y); min(max(x, y), max(x, z)) is max(min(y, z), x)."""
    if not (isinstance(a, (E.Min, E.Max)) and isinstance(b, (E.Min, E.Max))):
        return None
    if type(a) is not type(b):
        return _build(cls)(a.a, a.b) if _same_pair(a, b) else None
    for x, y in ((a.a, a.b), (a.b, a.a)):
        for w, z in ((b.a, b.b), (b.b, b.a)):
            if same_expression(x, w):
                return _build(type(a))(analyzer.rewrite(_build(cls)(y, z)), x)
    return None


def _same_pair(a: Extremum, b: Extremum) -> bool:
    return any(
        same_expression(a.a, x) and same_expression(a.b, y) for x, y in ((b.a, b.b), (b.b, b.a))
    )


def of_opposites(a: E.PrimExpr, b: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr] | None:
    """x and y of min(x, y) and max(x, y), in either order."""
    if isinstance(a, (E.Min, E.Max)) and type(b) is _opposite(type(a)):
        if _same_pair(a, b):  # type: ignore[arg-type]
            return a.a, a.b
    return None


def _nested(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
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


def _common_operand(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
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


def _common_scale(cls: type, a: E.PrimExpr, b: E.PrimExpr, analyzer: Facts) -> E.PrimExpr | None:
    """min(x * c, y * c) is min(x, y) * c; a negative factor turns it round."""
    for operation, combine in ((E.Mul, multiply), (E.FloorDiv, floordiv)):
        if not (isinstance(a, operation) and isinstance(a.b, E.IntImm)):
            continue
        scale = a.b.value
        if scale == 0:
            return None
        build = _build(cls if scale > 0 else _opposite(cls))
        if isinstance(b, operation) and isinstance(b.b, E.IntImm) and b.b.value == scale:
            return combine(analyzer.rewrite(build(a.a, b.a)), a.b)
        if operation is E.Mul and isinstance(b, E.IntImm) and b.value % scale == 0:
            quotient = integer(b.value // scale, b.dtype)
            return multiply(analyzer.rewrite(build(a.a, quotient)), a.b)
    return None


def _is_extremum(expression: E.PrimExpr) -> bool:
    return isinstance(expression, (E.Min, E.Max))


def moved_inside(expression: E.Add | E.Sub, analyzer: Facts) -> E.PrimExpr | None:
    """min(x + z, y) - z is min(x, y - z), where z cancels at the top of an operand of the minimum;
    likewise z - min(…) and the sum with a negative term."""
    a, b = expression.a, expression.b
    if isinstance(expression, E.Sub):
        if _is_extremum(a) and _is_extremum(b) and type(a) is type(b):
            same = same_expression(a.a, b.b) and same_expression(a.b, b.a)  # type: ignore
            return integer(0, a.dtype) if same else None
        if _is_extremum(a):
            return _combined(a, lambda x: _cancelled(x, b), lambda x: _difference(x, b), type(a))
        if isinstance(a, E.Add) and isinstance(a.b, E.IntImm) and _is_extremum(a.a):
            inside = moved_inside(E.Sub(a.a, b), analyzer)
            return None if inside is None else add(inside, a.b)
        if _is_extremum(b):
            negated = _opposite(type(b))
            return _combined(
                b, lambda x: _negated(_cancelled(x, a)), lambda x: subtract(a, x), negated
            )
        return None
    if (pair := of_opposites(a, b)) is not None:
        return add(*pair)
    for extremum, other in ((a, b), (b, a)):
        if _is_extremum(extremum):
            moved = _combined(
                extremum,
                lambda x, z=other: _filled(x, z),
                lambda x, z=other: add(x, z),
                type(extremum),
            )
            if moved is not None:
                return moved
    return None


def _combined(
    extremum: Any,
    cancel: Callable[[E.PrimExpr], E.PrimExpr | None],
    otherwise: Callable[[E.PrimExpr], E.PrimExpr],
    cls: type,
) -> E.PrimExpr | None:
    """The extremum of both operands changed, where one of them cancels."""
    left, right = cancel(extremum.a), cancel(extremum.b)
    if left is None and right is None:
        return None
    left = otherwise(extremum.a) if left is None else left
    right = otherwise(extremum.b) if right is None else right
    return _build(cls)(left, right)


def _cancelled(x: E.PrimExpr, z: E.PrimExpr) -> E.PrimExpr | None:
    """`x - z` where z is an operand of the sum x, or x itself."""
    if same_expression(x, z):
        return integer(0, x.dtype)
    if isinstance(x, E.Add):
        if same_expression(x.a, z):
            return x.b
        if same_expression(x.b, z):
            return x.a
    if isinstance(x, E.Sub) and isinstance(x.b, E.IntImm) and same_expression(x.a, z):
        return _negated(x.b)
    return None


def _difference(x: E.PrimExpr, z: E.PrimExpr) -> E.PrimExpr:
    """x - z, with 0 - y * c written y * -c."""
    if isinstance(x, E.IntImm) and x.value == 0 and isinstance(z, E.Mul):
        if isinstance(z.b, E.IntImm):
            return multiply(z.a, integer(-z.b.value, x.dtype))
    return subtract(x, z)


def _negated(x: E.PrimExpr | None) -> E.PrimExpr | None:
    return None if x is None else subtract(integer(0, x.dtype), x)


def _filled(x: E.PrimExpr, z: E.PrimExpr) -> E.PrimExpr | None:
    """`x + z` where x is y - z."""
    return x.a if isinstance(x, E.Sub) and same_expression(x.b, z) else None


def _multiply(expression: E.Mul, analyzer: Facts) -> E.PrimExpr:
    """min(x, y) * max(x, y) is x * y."""
    pair = of_opposites(expression.a, expression.b) if is_index_type(expression.dtype) else None
    return fold_multiply(expression, analyzer) if pair is None else multiply(*pair)


RULES: dict[type, Callable[[Any, Facts], E.PrimExpr]] = {
    E.Min: _extremum,
    E.Max: _extremum,
    E.Mul: _multiply,
}
