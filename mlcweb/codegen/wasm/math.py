"""Mathematical functions as arithmetic: what is left of them for instruction selection.

A function becomes an expression of additions, multiplications, comparisons and tricks on bits,
which is selected like any other, in scalar or in vector form. float32 has forms of its own where
speed matters; the rest is computed in float64 and rounded, with an error of just over 1/2 ULP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from mlcweb.codegen.wasm import math_double
from mlcweb.codegen.wasm.expr_builder import ExprBuilder
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E


def expand(name: str, args: Sequence[E.PrimExpr]) -> E.PrimExpr | None:
    """The function `name` of `args` in terms of arithmetic; None where it is not known."""
    dtype = args[0].dtype
    anywhere = _ANY_FLOAT.get(name)
    if anywhere is not None:
        return anywhere(*args)
    element = dtypes.element_of(dtype)
    if element == "float32" and name in _FLOAT32:
        return _FLOAT32[name](*args)
    double = _FLOAT64.get(name)
    if double is None or not dtypes.is_float(element):
        return None
    if element == "float64":
        return double(*args)
    wide = dtypes.with_lanes("float64", dtypes.lanes(dtype))
    return E.Cast(dtype, double(*(E.Cast(wide, argument) for argument in args)))


def _exp(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(E.Min(E.Max(x, s.number(-104.0)), s.number(89.0)))
    count, bits = s.nearest_count(E.Mul(x, s.number(1.44269504088896341)))
    high = E.Sub(x, E.Mul(count, s.number(0.693359375)))
    r = s.name(E.Sub(high, E.Mul(count, s.number(-2.12194440e-4))))
    return s.result(s.scaled_after_one(_exp_near_zero(s, r), bits))


def _exp_near_zero(s: ExprBuilder, r: E.PrimExpr) -> E.PrimExpr:
    """exp(r) - 1 for up to half of log(2): with a polynomial fitted to (exp(r) - 1 - r) / r**2 that
    has the least relative error of exp(r), 1/20 ULP."""
    tail = s.polynomial(
        r, (4.999999344e-1, 1.666652053e-1, 4.166838923e-2, 8.368729052e-3, 1.381457354e-3)
    )
    return s.name(E.Add(E.Mul(tail, s.square(r)), r))


def _exp2(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(E.Min(E.Max(x, s.number(-151.0)), s.number(129.0)))
    count, bits = s.nearest_count(x)
    r = s.name(E.Mul(E.Sub(x, count), s.number(0.69314718055994531)))
    return s.result(s.scaled_after_one(_exp_near_zero(s, r), bits))


def _log(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP: the approximation of fdlibm."""
    s = ExprBuilder(x)
    x = s.name(x)
    small = s.name(E.LT(x, s.number(2.0**-126)))
    normal = s.name(E.Select(small, E.Mul(x, s.number(2.0**25)), x))
    start = 0x3F3504F3
    bits = s.name(E.Add(s.bits(normal), s.whole(0x3F800000 - start)))
    exponent = E.Sub(s.shifted(bits, -23), s.whole(127))
    shift = E.Select(small, s.number(25.0), s.number(0.0))
    k = s.name(E.Sub(E.Cast(s.dtype, exponent), shift))
    fraction = s.from_bits(E.Add(s.masked(bits, 0x007FFFFF), s.whole(start)))
    f = s.name(E.Sub(fraction, s.number(1.0)))
    quotient = s.name(E.Div(f, E.Add(s.number(2.0), f)))
    z = s.name(E.Mul(quotient, quotient))
    tail = s.polynomial(z, (0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841))
    half = s.name(E.Mul(E.Mul(s.number(0.5), f), f))
    low = E.Mul(quotient, E.Add(half, E.Mul(z, tail)))
    low = E.Add(low, E.Mul(k, s.number(9.0580006145e-06)))
    value = E.Add(E.Add(E.Sub(low, half), f), E.Mul(k, s.number(6.9313812256e-01)))
    return s.result(math_double.of_special_logarithm(s, x, value))


def _sigmoid(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    one = ExprBuilder(x).number(1.0)
    return E.Div(one, E.Add(one, _exp(E.Sub(ExprBuilder(x).number(0.0), x))))


def _tanh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP: the approximation of Cephes near zero, elsewhere from the exponential."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    square = s.name(E.Mul(x, x))
    tail = s.polynomial(
        square,
        (-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2,
         -5.70498872745e-3),
    )  # fmt: skip
    near = E.Add(x, E.Mul(E.Mul(x, square), tail))
    power = _exp(E.Mul(s.number(2.0), a))
    far = E.Sub(s.number(1.0), E.Div(s.number(2.0), E.Add(power, s.number(1.0))))
    return s.result(E.Select(E.LT(a, s.number(0.625)), near, s.with_sign_of(far, x)))


def _erf(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP: polynomials fitted to erf(x) / x - 1 in the square of x near zero, elsewhere to
    log(1 - erf(x)) / x."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    square = s.name(E.Mul(x, x))
    tail = s.polynomial(
        square,
        (0.128379155, -0.376125324, 0.1128223, -0.0267819569, 0.00501622833, -0.000611129185),
    )
    near = E.Add(x, E.Mul(x, tail))
    bounded = s.name(E.Min(a, s.number(4.0)))
    exponent = s.polynomial(
        bounded,
        (-1.12862984, -0.635227357, -0.10611071, 0.0236531045, -0.0035908345, 0.000310085852,
         -9.95893387e-06),
    )  # fmt: skip
    far = E.Sub(s.number(1.0), _exp(E.Mul(bounded, exponent)))
    return s.result(E.Select(E.LT(a, s.number(0.89)), near, s.with_sign_of(far, x)))


def _round(x: E.PrimExpr) -> E.PrimExpr:
    """The nearest integer, halves away from zero."""
    s = ExprBuilder(x)
    x = s.name(x)
    whole = s.name(s.unary("trunc", x))
    away = E.Add(whole, s.with_sign_of(s.number(1.0), x))
    half = E.GE(s.absolute(E.Sub(x, whole)), s.number(0.5))
    return s.result(E.Select(half, away, whole))


def _reciprocal_root(x: E.PrimExpr) -> E.PrimExpr:
    s = ExprBuilder(x)
    return E.Div(s.number(1.0), s.root(x))


def _isnan(x: E.PrimExpr) -> E.PrimExpr:
    s = ExprBuilder(x)
    x = s.name(x)
    return s.result(E.NE(x, x))


def _isinf(x: E.PrimExpr) -> E.PrimExpr:
    s = ExprBuilder(x)
    return E.EQ(s.absolute(x), s.number(inf))


Expansion = Callable[..., E.PrimExpr]

_ANY_FLOAT: dict[str, Expansion] = {
    "round": _round, "rsqrt": _reciprocal_root, "isnan": _isnan, "isinf": _isinf,
}  # fmt: skip

_FLOAT32: dict[str, Expansion] = {
    "exp": _exp, "exp2": _exp2, "log": _log, "sigmoid": _sigmoid, "tanh": _tanh,
    "erf": _erf,
}  # fmt: skip

_FLOAT64: dict[str, Expansion] = {
    "exp": math_double.exp, "exp2": math_double.exp2, "exp10": math_double.exp10,
    "log": math_double.logarithm, "log2": math_double.log2, "log10": math_double.log10,
    "log1p": math_double.log1p, "sin": math_double.sin, "cos": math_double.cos,
    "tan": math_double.tan, "asin": math_double.asin, "acos": math_double.acos,
    "atan": math_double.atan, "atan2": math_double.atan2, "sinh": math_double.sinh,
    "cosh": math_double.cosh, "tanh": math_double.tanh, "asinh": math_double.asinh,
    "acosh": math_double.acosh, "atanh": math_double.atanh, "sigmoid": math_double.sigmoid,
    "erf": math_double.erf, "pow": math_double.power, "hypot": math_double.hypot,
}  # fmt: skip

COMPUTED_IN_FLOAT64 = frozenset(_FLOAT64.keys() - _FLOAT32.keys())
"""Functions computed in float64 for float32, too."""
