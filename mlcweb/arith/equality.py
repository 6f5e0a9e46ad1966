"""When two expressions are written alike: same nodes, same constants, same variable objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.tir import expr as E
from mlcweb.tir.operators import BINARY_NODES


def same_expression(a: E.PrimExpr, b: E.PrimExpr) -> bool:
    """Whether two expressions are the same text about the same variables."""
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b):
        return False
    compare = _COMPARISONS.get(cls)
    if compare is not None:
        return compare(a, b)
    return all(_same_value(getattr(a, f), getattr(b, f)) for f in cls.structural_fields)


def same_expressions(a: Sequence[E.PrimExpr], b: Sequence[E.PrimExpr]) -> bool:
    """`same_expression` of as many expressions on both sides, one by one."""
    return len(a) == len(b) and all(map(same_expression, a, b))


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, E.PrimExpr):
        return isinstance(b, E.PrimExpr) and same_expression(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_value, a, b))
    return a is b or a == b


class Interning:
    """One object for all expressions that are written alike, of those that it is asked for."""

    def __init__(self) -> None:
        self._interned: dict[E.PrimExpr, E.PrimExpr] = {}
        self._by_parts: dict[tuple[Any, ...], E.PrimExpr] = {}

    def __call__(self, expression: E.PrimExpr) -> E.PrimExpr:
        interned = self._interned.get(expression)
        if interned is None:
            if isinstance(expression, E.Var):
                return expression
            cls = type(expression)
            if isinstance(expression, E.BinaryExpr):
                parts = (cls, self(expression.a), self(expression.b))
            else:
                values = [getattr(expression, name) for name in cls.structural_fields]
                parts = (cls, *map(self._part, values))
            interned = self._interned[expression] = self._by_parts.setdefault(parts, expression)
        return interned

    def _part(self, value: Any) -> Any:
        if isinstance(value, E.PrimExpr):
            return self(value)
        if isinstance(value, (tuple, list)):
            return tuple(map(self._part, value))
        return value.hex() if isinstance(value, float) else value


def _same_operands(a: Any, b: Any) -> bool:
    return same_expression(a.a, b.a) and same_expression(a.b, b.b)


def _same_constant(a: Any, b: Any) -> bool:
    return a.value == b.value and a.dtype == b.dtype


_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    E.Var: lambda a, b: False,
    E.IntImm: _same_constant,
    # 0.0 and -0.0 are equal, but not the same.
    E.FloatImm: lambda a, b: a.value.hex() == b.value.hex() and a.dtype == b.dtype,
    **dict.fromkeys(BINARY_NODES, _same_operands),
}
