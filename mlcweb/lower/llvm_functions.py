"""LLVM's intrinsic functions that any processor has, by what they compute: programs that name them
(`T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", x)`) run on every target.

What they compute is in LLVM's language reference. Those of one processor are in
`expand_instructions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import add, sub
from typing import Any

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import intrinsics
from mlcweb.tir.arithmetic import cast, const, select
from mlcweb.tir.operators import operator_name

_TYPES = re.compile(r"(\.(v\d+)?(i|f|bf)\d+|\.p\d+)+$")
"""The types that the name of an overloaded function ends in."""


def _leading_zeros(x: E.PrimExpr, *_: E.PrimExpr) -> E.PrimExpr:
    """All bits below the first one set become one; the others are counted."""
    bits = dtypes.bits(x.dtype)
    smeared = _unsigned(x)
    for step in (1, 2, 4, 8, 16, 32):
        if step < bits:
            smeared = smeared | smeared >> _like(step, smeared)
    return _like(bits, smeared) - intrinsics.popcount(smeared)


def _trailing_zeros(x: E.PrimExpr, *_: E.PrimExpr) -> E.PrimExpr:
    """The bits below the last one set, which alone `~x & (x - 1)` has."""
    value = _unsigned(x)
    return intrinsics.popcount(~value & (value - _like(1, value)))


def _saturated(kind: str, operation: Callable[[Any, Any], Any]) -> Callable[..., E.PrimExpr]:
    """In integers of twice the size, to the ends of which the result is cut."""

    def build(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
        a, b = _integer(kind, a), _integer(kind, b)
        element, lanes = dtypes.element_of(a.dtype), dtypes.lanes(a.dtype)
        wide = dtypes.with_lanes(f"int{2 * dtypes.bits(element)}", lanes)
        total = operation(cast(wide, a), cast(wide, b))
        low, high = dtypes.min_value(element), dtypes.max_value(element)
        return cast(a.dtype, E.Max(E.Min(total, _like(high, total)), _like(low, total)))

    return build


def _extremum(kind: str, node: type[E.Max] | type[E.Min]) -> Callable[..., E.PrimExpr]:
    return lambda a, b: node(_integer(kind, a), _integer(kind, b))


def _integer(kind: str, x: E.PrimExpr) -> E.PrimExpr:
    """The same bits as a signed ("int") or unsigned number."""
    return cast(dtypes.with_lanes(f"{kind}{dtypes.bits(x.dtype)}", dtypes.lanes(x.dtype)), x)


def _unsigned(x: E.PrimExpr) -> E.PrimExpr:
    return _integer("uint", x)


def _like(value: Any, other: E.PrimExpr) -> E.PrimExpr:
    return const(value, other.dtype)


def _operator(name: str) -> Callable[..., E.PrimExpr]:
    return lambda *args: intrinsics.call(args[0].dtype, name, *args)


def _half_away(x: E.PrimExpr) -> E.PrimExpr:
    """The nearest integer, halves away from zero."""
    whole = _operator("trunc")(x)
    away = whole + _operator("copysign")(_like(1.0, x), x)
    return select(_operator("fabs")(x - whole) >= 0.5, away, whole)


_ROUNDING = ("floor", "ceil", "trunc", "nearbyint", "fabs")
_ELEMENTARY = ("sqrt", "exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan")

_FUNCTIONS: dict[str, tuple[int, Callable[..., E.PrimExpr]]] = {
    **{name: (1, _operator(name)) for name in (*_ROUNDING, *_ELEMENTARY)},
    **{name: (2, _operator(name)) for name in ("pow", "copysign")},
    "rint": (1, _operator("nearbyint")),
    "round": (1, _half_away),
    "ctpop": (1, lambda x: intrinsics.popcount(_unsigned(x))),
    "ctlz": (2, _leading_zeros),
    "clz": (1, _leading_zeros),
    "cttz": (2, _trailing_zeros),
    "abs": (2, lambda x, *_: _operator("abs")(x)),
    "smax": (2, _extremum("int", E.Max)),
    "umax": (2, _extremum("uint", E.Max)),
    "smin": (2, _extremum("int", E.Min)),
    "umin": (2, _extremum("uint", E.Min)),
    "fmuladd": (3, lambda a, b, c: a * b + c),
    "sadd.sat": (2, _saturated("int", add)),
    "uadd.sat": (2, _saturated("uint", add)),
    "ssub.sat": (2, _saturated("int", sub)),
    "usub.sat": (2, _saturated("uint", sub)),
    "assume": (1, lambda condition: intrinsics.call("bool", "assume", condition)),
    "prefetch": (4, lambda *_: const(0)),
}
"""How many operands a function has, and what it computes of them."""


def computed(call: E.Call) -> E.PrimExpr | None:
    """What a call of such a function computes, also under its name in `tir`; None for other
    calls."""
    own, operands = operator_name(call), call.args
    if own in ("call_llvm_pure_intrin", "call_llvm_intrin"):
        name, *operands = operands
        own = _TYPES.sub("", str(getattr(name, "value", "")).removeprefix("llvm."))
    elif own not in ("clz", "ctpop", "prefetch"):
        return None
    count, build = _FUNCTIONS.get(own, (-1, None))
    if len(operands) == count + 1:  # before 2025 their number came first
        operands = operands[1:]
    if build is None or len(operands) != count:
        return None
    if own.endswith(".sat") and dtypes.bits(operands[0].dtype) > 32:
        return None
    value = build(*operands)
    return value if dtypes.kind(call.dtype) in ("", "void") else cast(call.dtype, value)
