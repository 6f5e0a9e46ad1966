"""When two expressions are written alike: same nodes, same constants, same variable objects."""

from __future__ import annotations

from collections.abc import Callable
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


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, E.PrimExpr):
        return isinstance(b, E.PrimExpr) and same_expression(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_value, a, b))
    return a is b or a == b


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
