"""Approximations of functions by polynomials, for float32: quicker, and less exact."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import elementwise

_EXP = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
"""Of the exponential function between -log(2) / 2 and log(2) / 2 (Moshier's Cephes library); the
highest power first."""

_TANH = (
    (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
     1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
    (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
)  # fmt: skip
"""tanh(x) is x p(x²) / q(x²) between -9 and 9 (as in the Eigen library)."""

_ERF = (
    (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
     -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
    (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
     -1.42647390514189e-02),
)  # fmt: skip
"""erf(x) in the same way, between -4 and 4."""


def fast_exp(x: Tensor) -> Tensor:
    """exp(x) of float32, as a power of two times a polynomial; other types exactly.

    Relative error below 1e-6 where x is between -88 and 88.
    """
    if x.dtype != "float32":
        return elementwise.exp(x)
    return elementwise.named(x, _exp, "T_fast_exp")


def fast_tanh(x: Tensor) -> Tensor:
    """tanh(x) of float32, as a quotient of polynomials; other types exactly."""
    if x.dtype != "float32":
        return elementwise.tanh(x)
    return elementwise.named(x, lambda value: _quotient(value, 9.0, _TANH), "T_fast_tanh")


def fast_erf(x: Tensor) -> Tensor:
    """erf(x) of float32, as a quotient of polynomials; other types exactly."""
    if x.dtype != "float32":
        if x.dtype == "float16":
            raise DiagnosticError("fast_erf: the elements are float32, or have an erf of their own")
        return elementwise.erf(x)
    return elementwise.named(x, lambda value: _quotient(value, 4.0, _ERF), "T_fast_erf")


def _number(value: float) -> PrimExpr:
    return arithmetic.const(value, "float32")


def _kept(value: PrimExpr, low: float, high: float) -> PrimExpr:
    return arithmetic.maximum(arithmetic.minimum(value, _number(high)), _number(low))


def _polynomial(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    total = _number(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + _number(coefficient)
    return total


def _exp(value: PrimExpr) -> PrimExpr:
    x = _kept(value, -88.3762626647949, 88.3762626647950)
    power = intrinsics.floor(x * _number(1.44269504088896341) + _number(0.5))
    rest = x - power * _number(0.6931471805599453)
    fraction = _polynomial(rest, _EXP) * (rest * rest) + rest + _number(1.0)
    exponent = arithmetic.cast("int32", power + _number(127.0))
    scale = intrinsics.reinterpret("float32", arithmetic.shift_left(exponent, 23))
    return arithmetic.maximum(scale * fraction, value)


def _quotient(
    value: PrimExpr, limit: float, parts: tuple[Sequence[float], Sequence[float]]
) -> PrimExpr:
    x = _kept(value, -limit, limit)
    above, below = (_polynomial(x * x, part) for part in parts)
    return x * above / below
