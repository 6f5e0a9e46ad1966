"""Mathematical functions as arithmetic: what is left of them for instruction selection.

A function becomes an expression of additions, multiplications, comparisons and tricks on bits,
which is selected like any other, in scalar or in vector form. float32 has forms of its own where
speed matters; the rest is computed in float64 and rounded, with an error of just over 1/2 ULP.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from mlcweb.codegen.processor import math_double
from mlcweb.codegen.processor.expr_builder import (
    ExprBuilder,
    Formula,
    formula,
    formula_of_values,
)
from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.operators import operator_name


@dataclass(frozen=True, slots=True)
class Expansion:
    """A function in terms of arithmetic: a formula for `float64`, and one for `float32` where there
    is a faster one; or one for numbers `of_any` type."""

    float64: Formula | None = None
    float32: Formula | None = None
    of_any: Formula | None = None

    def of(self, call: E.Call) -> E.PrimExpr:
        """A call of the function as arithmetic; that of a float16 is computed in float32."""
        if dtypes.element_of(call.dtype) == "float16":
            wide = dtypes.with_lanes("float32", dtypes.lanes(call.dtype))
            inner = E.Call(wide, call.op, tuple(E.Cast(wide, value) for value in call.args))
            return E.Cast(call.dtype, inner)
        if self.of_any is not None:
            return self.of_any(*call.args)
        dtype = call.args[0].dtype
        element = dtypes.element_of(dtype)
        if element == "float32" and self.float32 is not None:
            return self.float32(*call.args)
        if self.float64 is None or not dtypes.is_float(element):
            raise UnsupportedError(
                f"tir.{operator_name(call)} of {dtype} has no arithmetic form", call.span
            )
        if element == "float64":
            return self.float64(*call.args)
        wide = dtypes.with_lanes("float64", dtypes.lanes(dtype))
        return E.Cast(dtype, self.float64(*(E.Cast(wide, argument) for argument in call.args)))


@formula_of_values
def _exp(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    r, bits = _exp_reduced(s, s.clamped(x, -104.0, 89.0), 2)
    return s.scaled_after_one(_exp_near_zero(s, r), bits)


@formula
def _exp_normal(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """The same for -87 to 88, where results are normal, in fewer steps."""
    r, bits = _exp_reduced(s, x, 1)
    return s.normal_after_one(_exp_near_zero(s, r), bits)


def _exp_reduced(s: ExprBuilder, x: E.PrimExpr, biases: int) -> tuple[E.PrimExpr, E.PrimExpr]:
    """What is left of x beyond the nearest multiple of log(2), and which multiple that is, as bits
    with so many biases."""
    count, bits = s.nearest_count(x * 1.44269504088896341, biases)
    return s.name(x - count * 0.693359375 - count * -2.12194440e-4), bits


def _exp_near_zero(s: ExprBuilder, r: E.PrimExpr) -> E.PrimExpr:
    """exp(r) - 1 for up to half of log(2): with a polynomial fitted to (exp(r) - 1 - r) / r**2 that
    has the least relative error of exp(r), 1/20 ULP."""
    tail = s.polynomial(
        r, (4.999999344e-1, 1.666652053e-1, 4.166838923e-2, 8.368729052e-3, 1.381457354e-3)
    )
    return s.name(tail * s.square(r) + r)


@formula_of_values
def _exp2(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    x = s.clamped(x, -151.0, 129.0)
    count, bits = s.nearest_count(x)
    r = s.name((x - count) * 0.69314718055994531)
    return s.scaled_after_one(_exp_near_zero(s, r), bits)


@formula
def _log(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP: the approximation of fdlibm."""
    coefficients = (0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841)
    k, f, half, correction = math_double.split_for_logarithm(s, x, 0x3F3504F3, coefficients)
    low = correction + k * 9.0580006145e-06
    value = low - half + f + k * 6.9313812256e-01
    return math_double.of_special_logarithm(s, x, value)


def _sigmoid(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    return 1.0 / (1.0 + _exp(0.0 - x))


@formula
def _tanh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP: the approximation of Cephes near zero, elsewhere from the exponential."""
    a = s.name(s.absolute(x))
    square = s.name(x * x)
    tail = s.polynomial(
        square,
        (-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2,
         -5.70498872745e-3),
    )  # fmt: skip
    near = x + x * square * tail
    far = 1.0 - 2.0 / (_exp_normal(2.0 * E.Min(a, s.number(10.0))) + 1.0)
    return E.Select(a < 0.625, near, s.with_sign_of(far, x))


@formula
def _erf(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP: polynomials fitted to erf(x) / x - 1 in the square of x near zero, elsewhere to
    log(1 - erf(x)) / x."""
    a = s.name(s.absolute(x))
    square = s.name(x * x)
    tail = s.polynomial(
        square,
        (0.128379155, -0.376125324, 0.1128223, -0.0267819569, 0.00501622833, -0.000611129185),
    )
    near = x + x * tail
    bounded = s.name(E.Min(a, s.number(4.0)))
    exponent = s.polynomial(
        bounded,
        (-1.12862984, -0.635227357, -0.10611071, 0.0236531045, -0.0035908345, 0.000310085852,
         -9.95893387e-06),
    )  # fmt: skip
    far = 1.0 - _exp_normal(bounded * exponent)
    return E.Select(a < 0.89, near, s.with_sign_of(far, x))


@formula
def _round(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    return s.nearest(x)


@formula_of_values
def _reciprocal_root(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    return 1.0 / s.root(x)


@formula
def _isnan(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    return E.NE(x, x)


@formula_of_values
def _isinf(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    return E.EQ(s.absolute(x), s.number(inf))


@formula
def _popcount(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """The sums of neighbouring bits, then of pairs of bits, then of the octets. (H. Warren,
    "Hacker's Delight", 2012, chapter 5.)"""
    own, lanes = dtypes.bits(x.dtype), dtypes.lanes(x.dtype)
    bits = max(own, 32)
    unsigned, wide = (dtypes.with_lanes(f"uint{size}", lanes) for size in (own, bits))

    def octets(value: int) -> E.PrimExpr:
        return const(value * (((1 << bits) - 1) // 255), wide)

    y = s.name(E.Cast(wide, E.Cast(unsigned, x)))
    pairs = s.name(y - (y >> 1 & octets(0x55)))
    fours = s.name((pairs & octets(0x33)) + (pairs >> 2 & octets(0x33)))
    counts = fours + (fours >> 4) & octets(0x0F)
    return E.Cast(x.dtype, counts * octets(1) >> bits - 8)


EXPANSIONS: dict[str, Expansion] = {
    "popcount": Expansion(of_any=_popcount),
    "round": Expansion(of_any=_round), "rsqrt": Expansion(of_any=_reciprocal_root),
    "isnan": Expansion(of_any=_isnan), "isinf": Expansion(of_any=_isinf),
    "exp": Expansion(math_double.exp, _exp), "exp2": Expansion(math_double.exp2, _exp2),
    "exp10": Expansion(math_double.exp10), "log": Expansion(math_double.logarithm, _log),
    "log2": Expansion(math_double.log2), "log10": Expansion(math_double.log10),
    "log1p": Expansion(math_double.log1p), "sin": Expansion(math_double.sin),
    "cos": Expansion(math_double.cos), "tan": Expansion(math_double.tan),
    "asin": Expansion(math_double.asin), "acos": Expansion(math_double.acos),
    "atan": Expansion(math_double.atan), "atan2": Expansion(math_double.atan2),
    "sinh": Expansion(math_double.sinh), "cosh": Expansion(math_double.cosh),
    "tanh": Expansion(math_double.tanh, _tanh), "asinh": Expansion(math_double.asinh),
    "acosh": Expansion(math_double.acosh), "atanh": Expansion(math_double.atanh),
    "sigmoid": Expansion(math_double.sigmoid, _sigmoid), "erf": Expansion(math_double.erf, _erf),
    "pow": Expansion(math_double.power), "hypot": Expansion(math_double.hypot),
}  # fmt: skip

COMPUTED_IN_FLOAT64 = frozenset(
    name for name, form in EXPANSIONS.items() if form.of_any is None and form.float32 is None
)
"""Functions computed in float64 for float32, too."""
