"""Rules of vectors: what is computed of copies of a value, and of ramps, is one again."""

from __future__ import annotations

from math import gcd
from typing import Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.folding import integer
from mlcweb.tir.operators import DIVISIONS


def of_vectors(expression: Any, analyzer: Facts) -> E.PrimExpr | None:
    """A binary expression of ramps and broadcasts as one of them; None where it is none."""
    cls, a, b = type(expression), expression.a, expression.b
    if not (isinstance(a, (E.Ramp, E.Broadcast)) and isinstance(b, (E.Ramp, E.Broadcast))):
        return _of_extrema(expression, analyzer)
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
    if cls in DIVISIONS and isinstance(a, E.Ramp) and isinstance(b, E.Broadcast):
        return _divided(cls, a, b.value, analyzer)
    return None


def _of_extrema(expression: Any, analyzer: Facts) -> E.PrimExpr | None:
    """The minimum of a vector and of copies of two values is that of it and their minimum."""
    cls, a, b = type(expression), expression.a, expression.b
    if cls in (E.Min, E.Max) and type(a) is cls:
        if isinstance(a.b, E.Broadcast) and isinstance(b, E.Broadcast):
            least = analyzer.rewrite(cls(a.b.value, b.value))
            return cls(a.a, E.Broadcast(least, b.lanes))
    return None


def _line(vector: E.Ramp | E.Broadcast) -> tuple[E.PrimExpr, E.PrimExpr]:
    """The first element, and how much larger the next is."""
    if isinstance(vector, E.Ramp):
        return vector.base, vector.stride
    return vector.value, integer(0, vector.value.dtype)


def _ramp(base: E.PrimExpr, stride: E.PrimExpr, lanes: E.Lanes) -> E.PrimExpr:
    if isinstance(stride, E.IntImm) and stride.value == 0:
        return E.Broadcast(base, lanes)
    return E.Ramp(base, stride, lanes)


def _divided(cls: Any, ramp: E.Ramp, divisor: Any, analyzer: Facts) -> E.PrimExpr | None:
    """A ramp by a constant that divides its stride, or that gives all elements one quotient."""
    stride, lanes = ramp.stride, ramp.lanes
    if not (isinstance(stride, E.IntImm) and isinstance(divisor, E.IntImm) and divisor.value > 0):
        return None
    if cls in (E.Div, E.Mod):
        if stride.value < 0 or analyzer.const_int_bound(ramp.base).min_value < 0:
            return None  # Towards zero, neighbours of different signs are divided differently.
    base = analyzer.rewrite(cls(ramp.base, divisor))
    if stride.value % divisor.value == 0:
        return _ramp(base, analyzer.rewrite(cls(stride, divisor)), lanes)
    modular_set = analyzer.modular_set(ramp.base)
    step = gcd(modular_set.coeff, divisor.value)  # The base is `first` above a multiple of it.
    first = modular_set.base % step
    if isinstance(lanes, int) and 0 <= first + (lanes - 1) * stride.value < step:
        return (
            E.Broadcast(base, lanes) if cls in (E.FloorDiv, E.Div) else E.Ramp(base, stride, lanes)
        )
    if cls in (E.FloorMod, E.Mod) and isinstance(base, E.IntImm) and ramp.base is not base:
        if not same_expression(ramp.base, base):
            return cls(E.Ramp(base, stride, lanes), E.Broadcast(divisor, lanes))
    return None
