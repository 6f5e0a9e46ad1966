"""Where integer expressions lie, by interval arithmetic: enough to leave out needless checks."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E

Interval = tuple[int, int]


class Ranges:
    """Bounds of integer expressions, from the bounds of their variables (both ends included)."""

    def __init__(self) -> None:
        self._of_variable: dict[int, tuple[E.Var, Interval]] = {}

    def bind(self, var: E.Var, low: int, high: int) -> None:
        self._of_variable[id(var)] = (var, (low, high))

    def of(self, expression: E.PrimExpr) -> Interval:
        """Bounds of the value, wrap-around included."""
        exact, full = self.exact(expression), _all_of(expression.dtype)
        return exact if full[0] <= exact[0] and exact[1] <= full[1] else full

    def can_overflow(self, expression: E.PrimExpr) -> bool:
        """Whether the exact result of an operation may lie outside its type."""
        if type(expression) not in _RULES:
            return True
        exact, full = self.exact(expression), _all_of(expression.dtype)
        return exact[0] < full[0] or full[1] < exact[1]

    def exact(self, expression: E.PrimExpr) -> Interval:
        """Bounds of the result before it is wrapped into its type."""
        if isinstance(expression, E.IntImm):
            return expression.value, expression.value
        if isinstance(expression, E.Var):
            known = self._of_variable.get(id(expression))
            return known[1] if known else _all_of(expression.dtype)
        rule = _RULES.get(type(expression))
        if rule is None:
            return _all_of(expression.dtype)
        return rule(self.of(expression.a), self.of(expression.b)) or _all_of(expression.dtype)  # type: ignore[attr-defined]


def _all_of(dtype: str) -> Interval:
    return int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval | None:
    # The divisors nearest to zero, which itself is none, give the largest quotients.
    divisors = [y for y in (b[0], -1, 1, b[1]) if y and b[0] <= y <= b[1]]
    corners = [x // y for x in a for y in divisors]
    return (min(corners), max(corners)) if corners else None


def _remainder(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0:
        return None
    return a if 0 <= a[0] and a[1] < b[0] else (0, b[1] - 1)


_RULES: dict[type, Callable[[Interval, Interval], Interval | None]] = {
    E.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    E.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    E.Mul: _product,
    E.FloorDiv: _quotient,
    E.FloorMod: _remainder,
    E.Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    E.Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
