"""Mathematical functions of float64. All take one or two expressions of any number of lanes.

Errors are in units of the last place (ULP), the greatest that was seen on a million arguments over
the range. exp, log, sine, cosine and erf follow the rational approximations of Sun's fdlibm, the
arc tangent that of Cephes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, inf, log, nan, pi

from mlcweb.codegen.processor.expr_builder import ExprBuilder, formula, formula_of_values
from mlcweb.tir import expr as E

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E = 1.44269504088896338700


@formula
def exp(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    x = s.clamped(x, -750.0, 750.0)
    count, bits = s.nearest_count(x * LOG2_E)
    high = s.name(x - count * LN2_HIGH)
    low = s.name(count * LN2_LOW)
    return s.scaled(_exp_near_zero(s, high, low), bits)


def _exp_near_zero(s: ExprBuilder, high: E.PrimExpr, low: E.PrimExpr) -> E.PrimExpr:
    """exp(high - low) for up to half of log(2)."""
    r = s.name(E.Sub(high, low))
    square = s.name(r * r)
    tail = s.polynomial(
        square,
        (1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
         -1.65339022054652515390e-06, 4.13813679705723846039e-08),
    )  # fmt: skip
    c = s.name(r - square * tail)
    return s.name(1.0 - (E.Sub(low, r * c / (2.0 - c)) - high))


@formula
def exp2(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    x = s.clamped(x, -1080.0, 1080.0)
    count, bits = s.nearest_count(x)
    rest = s.name(x - count)
    return s.scaled(_exp_near_zero(s, s.name(rest * log(2.0)), s.number(0.0)), bits)


@formula
def exp10(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    x = s.clamped(x, -330.0, 330.0)
    count, bits = s.nearest_count(x * 3.32192809488736234787)
    rest = s.name(x - count * 0.3010299960151315 - count * -3.5115027832752086e-10)
    return s.scaled(_exp_near_zero(s, s.name(rest * log(10.0)), s.number(0.0)), bits)


@formula
def logarithm(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    k, f, half, correction = split_for_logarithm(
        s, x, 0x3FE6A09E00000000,
        (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
         2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
         1.479819860511658591e-01),
    )  # fmt: skip
    low = half - (correction + k * LN2_LOW)
    return of_special_logarithm(s, x, k * LN2_HIGH - (low - f))


def split_for_logarithm(
    s: ExprBuilder, x: E.PrimExpr, start: int, coefficients: Sequence[float]
) -> tuple[E.PrimExpr, E.PrimExpr, E.PrimExpr, E.PrimExpr]:
    """The number k for which `x = 2**k * (1 + f)`, where 1 + f begins at the float of the bits
    `start`, near the root of 1/2; f; and two terms: `log(1 + f) = f - half + correction`."""
    width = s.fraction_bits
    tiny = s.name(x < 2.0 ** (1 - s.bias))
    normal = s.name(E.Select(tiny, x * 2.0 ** (width + 2), x))
    bits = s.name(s.bits(normal) + s.whole((s.bias << width) - start))
    count = s.to_float(s.shifted(bits, -width) - s.whole(s.bias))
    k = s.name(count - E.Select(tiny, s.number(width + 2.0), s.number(0.0)))
    fraction = s.masked(bits, (1 << width) - 1) + s.whole(start)
    f = s.name(s.from_bits(fraction) - 1.0)
    quotient = s.name(f / (2.0 + f))
    z = s.name(quotient * quotient)
    tail = s.polynomial(z, coefficients)
    half = s.name(0.5 * f * f)
    return k, f, half, quotient * (half + z * tail)


def of_special_logarithm(s: ExprBuilder, x: E.PrimExpr, value: E.PrimExpr) -> E.PrimExpr:
    """`value`, or what the logarithm is of infinity, zero, and numbers that have none."""
    value = E.Select(x < inf, value, x)
    value = E.Select(E.EQ(x, s.number(0.0)), s.number(-inf), value)
    return E.Select(x < 0.0, s.number(nan), value)


def log2(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    return logarithm(x) * LOG2_E


def log10(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    return logarithm(x) * 0.43429448190325182765


@formula
def log1p(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP: log(1 + x), and what was lost in the sum."""
    total = s.name(x + 1.0)
    lost = (x - (total - 1.0)) / total
    exact = E.And(s.absolute(total) < inf, E.NE(total, s.number(0.0)))
    value = logarithm(total) + E.Select(exact, lost, s.number(0.0))
    return E.Select(E.EQ(x, s.number(0.0)), x, value)


def _reduced(s: ExprBuilder, x: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """`x` without the nearest multiple of a quarter turn, and the number of quarters.

    So large a number that neighbouring floats are turns apart has no meaningful sine; it is NaN.
    """
    x = s.name(E.Select(s.absolute(x) < 2.0**45, x, s.number(nan)))
    quarters = s.name(s.nearest(x * (2 / pi)))
    r = x
    for part in (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21):
        r = s.name(r - quarters * part)
    return r, s.name(s.to_integer(quarters))


def _sine_near_zero(s: ExprBuilder, r: E.PrimExpr, square: E.PrimExpr) -> E.PrimExpr:
    tail = s.polynomial(
        square,
        (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
         2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
    )  # fmt: skip
    return r + r * square * tail


def _cosine_near_zero(s: ExprBuilder, square: E.PrimExpr) -> E.PrimExpr:
    tail = s.polynomial(
        square,
        (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
         -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
    )  # fmt: skip
    half = s.name(0.5 * square)
    one = s.name(1.0 - half)
    return one + (1.0 - one - half + square * square * tail)


def _turned(s: ExprBuilder, x: E.PrimExpr, ahead: int) -> E.PrimExpr:
    """The sine of `x` plus so many quarter turns."""
    r, quarters = _reduced(s, x)
    if ahead:
        quarters = s.name(quarters + s.whole(ahead))
    square = s.name(r * r)
    sine = s.name(_sine_near_zero(s, r, square))
    cosine = s.name(_cosine_near_zero(s, square))
    odd = E.NE(s.masked(quarters, 1), s.whole(0))
    value = s.name(E.Select(odd, cosine, sine))
    negative = E.NE(s.masked(quarters, 2), s.whole(0))
    return E.Select(negative, 0.0 - value, value)


@formula
def sin(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP for arguments up to 1e5; beyond, an absolute error that grows with them."""
    return _turned(s, x, 0)


@formula
def cos(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP for arguments up to 1e5; beyond, an absolute error that grows with them."""
    return _turned(s, x, 1)


@formula
def tan(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP for arguments up to 1e5."""
    return sin(x) / cos(x)


@formula
def atan(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    a = s.name(s.absolute(x))
    large = s.name(a > 2.41421356237309504880)
    middle = s.name(a > 0.66)
    ratio = E.Select(middle, (a - 1.0) / (a + 1.0), a)
    r = s.name(E.Select(large, -1.0 / a, ratio))
    z = s.name(r * r)
    top = s.polynomial(
        z,
        (-6.485021904942025371773e01, -1.228866684490136173410e02, -7.500855792314704667340e01,
         -1.615753718733365076637e01, -8.750608600031904122785e-01),
    )  # fmt: skip
    bottom = s.polynomial(
        z,
        (1.945506571482613964425e02, 4.853903996359136964868e02, 4.328810604912902668951e02,
         1.650270098316988542046e02, 2.485846490142306297962e01, 1.0),
    )  # fmt: skip
    inner = r * (z * top / bottom) + r
    lost = 6.123233995736765886130e-17
    offset = E.Select(middle, s.number(pi / 4), s.number(0.0))
    more = E.Select(middle, s.number(lost / 2), s.number(0.0))
    offset = E.Select(large, s.number(pi / 2), offset)
    more = E.Select(large, s.number(lost), more)
    return s.with_sign_of(offset + (inner + more), x)


@formula
def asin(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    other = s.root((1.0 - x) * (1.0 + x))
    return 2.0 * atan(x / (1.0 + other))


@formula
def acos(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    return 2.0 * atan(s.root((1.0 - x) / (1.0 + x)))


@formula
def atan2(s: ExprBuilder, y: E.PrimExpr, x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    infinite, zero = s.number(inf), s.number(0.0)
    both = E.And(E.EQ(s.absolute(x), infinite), E.EQ(s.absolute(y), infinite))
    none = E.And(E.EQ(x, zero), E.EQ(y, zero))
    ratio = E.Select(both, s.number(1.0), s.absolute(y) / s.absolute(x))
    angle = s.name(atan(E.Select(none, zero, ratio)))
    leftwards = s.with_sign_of(s.number(1.0), x) < 0.0
    value = E.Select(leftwards, pi - (angle - 1.2246467991473532e-16), angle)
    return s.with_sign_of(value, y)


def _sinh_near_zero(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """The series of the hyperbolic sine, in powers of the square."""
    square = s.name(x * x)
    return x + x * square * s.polynomial(square, [1 / factorial(n) for n in range(3, 20, 2)])


@formula
def sinh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    a = s.name(s.absolute(x))
    root = s.name(exp(a * 0.5))
    inverse = s.name(1.0 / root)
    large = 0.5 * root * root - 0.5 * inverse * inverse
    near = _sinh_near_zero(s, x)
    return E.Select(a < 1.0, near, s.with_sign_of(large, x))


@formula_of_values
def cosh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    root = s.name(exp(s.absolute(x) * 0.5))
    inverse = s.name(1.0 / root)
    return 0.5 * root * root + 0.5 * inverse * inverse


@formula
def tanh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    a = s.name(s.absolute(x))
    near = s.name(_sinh_near_zero(s, s.clamped(x, -1.0, 1.0)))
    ratio = near / s.root(near * near + 1.0)
    large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0)
    return E.Select(a < 1.0, ratio, s.with_sign_of(large, x))


def sigmoid(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    return 1.0 / (1.0 + exp(0.0 - x))


@formula
def asinh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    a = s.name(s.absolute(x))
    usual = a < s.number(1e150)
    b = s.name(E.Select(usual, a, s.number(1.0)))
    inner = b + b * b / (1.0 + s.root(b * b + 1.0))
    large = logarithm(a) + log(2.0)
    return s.with_sign_of(E.Select(usual, log1p(inner), large), x)


@formula
def acosh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    t = s.name(x - 1.0)
    inner = t + s.root(2.0 * t + t * t)
    return E.Select(x < s.number(1e150), log1p(inner), logarithm(x) + log(2.0))


@formula
def atanh(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    a = s.name(s.absolute(x))
    return s.with_sign_of(0.5 * log1p(2.0 * a / (1.0 - a)), x)


@formula_of_values
def hypot(s: ExprBuilder, x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    a, b = s.name(s.absolute(x)), s.name(s.absolute(y))
    greater, lesser = s.name(E.Max(a, b)), s.name(E.Min(a, b))
    ratio = s.name(lesser / greater)
    length = greater * s.root(1.0 + ratio * ratio)
    extreme = E.Or(E.EQ(greater, s.number(0.0)), E.EQ(greater, s.number(inf)))
    return E.Select(extreme, greater, length)


@formula
def power(s: ExprBuilder, x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """exp(y * log(x)): an error of as many ULP as the exponent of the result in base e, at most
    750; for float32, which comes by here, one half."""
    one, zero = s.number(1.0), s.number(0.0)
    a = s.name(s.absolute(x))
    size = s.name(exp(y * logarithm(a)))
    whole = E.EQ(y, s.unary("trunc", y))
    half = y * 0.5
    odd = E.And(whole, E.NE(half, s.unary("trunc", half)))
    negative = s.with_sign_of(one, x) < 0.0
    signed = E.Select(E.And(negative, odd), 0.0 - size, size)
    defined = E.Or(x >= 0.0, E.Or(whole, E.NE(x, x)))
    value = E.Select(defined, signed, s.number(nan))
    return E.Select(E.Or(E.EQ(y, zero), E.EQ(x, one)), one, value)


@formula
def erf(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    a = s.name(s.absolute(x))
    square = s.name(x * x)
    near = x + x * (s.polynomial(square, _ERF_P) / s.polynomial(square, _ERF_Q))
    t = s.name(a - 1.0)
    middle = 8.45062911510467529297e-01 + s.polynomial(t, _ERF_PA) / s.polynomial(t, _ERF_QA)
    bounded = s.clamped(a, 0.5, 6.0)
    u = s.name(1.0 / (bounded * bounded))
    lower = s.polynomial(u, _ERF_RA) / s.polynomial(u, _ERF_SA)
    upper = s.polynomial(u, _ERF_RB) / s.polynomial(u, _ERF_SB)
    ratio = s.name(E.Select(bounded < 1 / 0.35, lower, upper))
    rounded = s.name(s.from_bits(s.masked(s.bits(bounded), -0x100000000)))
    first = exp(0.0 - rounded * rounded - 0.5625)
    second = exp((rounded - bounded) * (rounded + bounded) + ratio)
    far = 1.0 - first * second / bounded
    outside = E.Select(a < 1.25, middle, far)
    value = E.Select(a < 0.84375, near, s.with_sign_of(outside, x))
    return E.Select(E.NE(x, x), x, value)


_ERF_P = (
    1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
    -5.77027029648944159157e-03, -2.37630166566501626084e-05,
)  # fmt: skip
_ERF_Q = (
    1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
    1.32494738004321644526e-04, -3.96022827877536812320e-06,
)  # fmt: skip
_ERF_PA = (
    -2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
    3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
)  # fmt: skip
_ERF_QA = (
    1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
    1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02,
)  # fmt: skip
_ERF_RA = (
    -9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01,
    -6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02,
    -8.12874355063065934246e01, -9.81432934416914548592e00,
)  # fmt: skip
_ERF_SA = (
    1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02,
    6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02,
    6.57024977031928170135e00, -6.04244152148580987438e-02,
)  # fmt: skip
_ERF_RB = (
    -9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01,
    -1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03,
    -4.83519191608651397019e02,
)  # fmt: skip
_ERF_SB = (
    1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03,
    3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02,
    -2.24409524465858183362e01,
)  # fmt: skip
