"""Rules of vectors: what is computed of copies of a value, and of ramps, is one again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import is_index_type
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.folding import integer

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer

_DIVISIONS = (E.FloorDiv, E.FloorMod, E.Div, E.Mod)


def of_vectors(expression: Any, analyzer: Analyzer) -> E.PrimExpr | None:
    """A binary expression of ramps and broadcasts as one of them; None where it is none."""
    cls, a, b = type(expression), expression.a, expression.b
    if not (isinstance(a, (E.Ramp, E.Broadcast)) and isinstance(b, (E.Ramp, E.Broadcast))):
        return None
    if isinstance(a, E.Broadcast) and isinstance(b, E.Broadcast):
        return E.Broadcast(analyzer.rewrite(cls(a.value, b.value)), a.lanes)
    if cls in (E.Add, E.Sub):
        base, stride = map(cls, _line(a), _line(b))
        return _ramp(analyzer.rewrite(base), analyzer.rewrite(stride), a.lanes)
    if cls is E.Mul:
        ramp, scale = (a, b) if isinstance(a, E.Ramp) else (b, a)
        if isinstance(ramp, E.Ramp) and isinstance(scale, E.Broadcast):
            base, stride = (E.Mul(part, scale.value) for part in (ramp.base, ramp.stride))
            return _ramp(analyzer.rewrite(base), analyzer.rewrite(stride), a.lanes)
    if not is_index_type(dtypes.element_of(a.dtype)):
        return None
    if cls is E.LT and isinstance(a, E.Ramp) and isinstance(b, E.Ramp):
        if same_expression(a.stride, b.stride):
            return E.Broadcast(analyzer.rewrite(E.LT(a.base, b.base)), a.lanes)
    if cls in _DIVISIONS and isinstance(a, E.Ramp) and isinstance(b, E.Broadcast):
        return _divided(cls, a, b.value, analyzer)
    return None


def _line(vector: E.Ramp | E.Broadcast) -> tuple[E.PrimExpr, E.PrimExpr]:
    """The first element, and how much larger the next is."""
    if isinstance(vector, E.Ramp):
        return vector.base, vector.stride
    return vector.value, integer(0, vector.value.dtype)


def _ramp(base: E.PrimExpr, stride: E.PrimExpr, lanes: int) -> E.PrimExpr:
    if isinstance(stride, E.IntImm) and stride.value == 0:
        return E.Broadcast(base, lanes)
    return E.Ramp(base, stride, lanes)


def _divided(cls: Any, ramp: E.Ramp, divisor: Any, analyzer: Analyzer) -> E.PrimExpr | None:
    """A ramp by a constant that divides its stride, or that gives all elements one quotient."""
    stride, lanes = ramp.stride, ramp.lanes
    if not (isinstance(stride, E.IntImm) and isinstance(divisor, E.IntImm) and divisor.value > 0):
        return None
    is_quotient = cls in (E.FloorDiv, E.Div)
    if stride.value % divisor.value == 0 and cls is not E.Mod:
        if cls is E.Div and analyzer.const_int_bound(ramp.base).min_value < 0:
            return None
        base = analyzer.rewrite(cls(ramp.base, divisor))
        return _ramp(base, analyzer.rewrite(cls(stride, divisor)), lanes)
    known = analyzer.modular_set(ramp.base)
    if cls not in (E.FloorDiv, E.FloorMod) or known.coeff % divisor.value:
        return None
    first = known.base % divisor.value
    if not 0 <= first + (lanes - 1) * stride.value < divisor.value:
        return None
    if is_quotient:
        return E.Broadcast(analyzer.rewrite(E.FloorDiv(ramp.base, divisor)), lanes)
    return E.Ramp(integer(first, stride.dtype), stride, lanes)
