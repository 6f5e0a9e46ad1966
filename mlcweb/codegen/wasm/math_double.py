"""Mathematical functions of float64. All take one or two expressions of any number of lanes.

Errors are in units of the last place (ULP), the greatest that was seen on a million arguments over
the range. exp, log, sine, cosine and erf follow the rational approximations of Sun's fdlibm, the
arc tangent that of Cephes.
"""

from __future__ import annotations

from math import inf, log, nan, pi

from mlcweb.codegen.wasm.expr_builder import ExprBuilder
from mlcweb.tir import expr as E

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E = 1.44269504088896338700


def exp(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(E.Min(E.Max(s.name(x), s.number(-750.0)), s.number(750.0)))
    count, bits = s.nearest_count(E.Mul(x, s.number(LOG2_E)))
    high = s.name(E.Sub(x, E.Mul(count, s.number(LN2_HIGH))))
    low = s.name(E.Mul(count, s.number(LN2_LOW)))
    return s.result(s.scaled(_exp_near_zero(s, high, low), bits))


def _exp_near_zero(s: ExprBuilder, high: E.PrimExpr, low: E.PrimExpr) -> E.PrimExpr:
    """exp(high - low) for up to half of log(2)."""
    r = s.name(E.Sub(high, low))
    square = s.name(E.Mul(r, r))
    tail = s.polynomial(
        square,
        (1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
         -1.65339022054652515390e-06, 4.13813679705723846039e-08),
    )  # fmt: skip
    c = s.name(E.Sub(r, E.Mul(square, tail)))
    fraction = E.Div(E.Mul(r, c), E.Sub(s.number(2.0), c))
    return s.name(E.Sub(s.number(1.0), E.Sub(E.Sub(low, fraction), high)))


def exp2(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(E.Min(E.Max(s.name(x), s.number(-1080.0)), s.number(1080.0)))
    count, bits = s.nearest_count(x)
    rest = s.name(E.Sub(x, count))
    near = _exp_near_zero(s, s.name(E.Mul(rest, s.number(log(2.0)))), s.number(0.0))
    return s.result(s.scaled(near, bits))


def exp10(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    s = ExprBuilder(x)
    x = s.name(E.Min(E.Max(s.name(x), s.number(-330.0)), s.number(330.0)))
    count, bits = s.nearest_count(E.Mul(x, s.number(3.32192809488736234787)))
    high = E.Sub(x, E.Mul(count, s.number(0.3010299960151315)))
    rest = s.name(E.Sub(high, E.Mul(count, s.number(-3.5115027832752086e-10))))
    near = _exp_near_zero(s, s.name(E.Mul(rest, s.number(log(10.0)))), s.number(0.0))
    return s.result(s.scaled(near, bits))


def logarithm(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    small = s.name(E.LT(x, s.number(2.0**-1022)))
    normal = s.name(E.Select(small, E.Mul(x, s.number(2.0**54)), x))
    start = 0x3FE6A09E00000000
    bits = s.name(E.Add(s.bits(normal), s.whole(0x3FF0000000000000 - start)))
    exponent = E.Sub(s.shifted(bits, -52), s.whole(1023))
    count = s.to_float(exponent)
    k = s.name(E.Sub(count, E.Select(small, s.number(54.0), s.number(0.0))))
    f = s.name(
        E.Sub(s.from_bits(E.Add(s.masked(bits, 0x000FFFFFFFFFFFFF), s.whole(start))), s.number(1.0))
    )
    quotient = s.name(E.Div(f, E.Add(s.number(2.0), f)))
    z = s.name(E.Mul(quotient, quotient))
    tail = s.polynomial(
        z,
        (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
         2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
         1.479819860511658591e-01),
    )  # fmt: skip
    half = s.name(E.Mul(E.Mul(s.number(0.5), f), f))
    correction = E.Mul(quotient, E.Add(half, E.Mul(z, tail)))
    low = E.Sub(half, E.Add(correction, E.Mul(k, s.number(LN2_LOW))))
    value = E.Sub(E.Mul(k, s.number(LN2_HIGH)), E.Sub(low, f))
    return s.result(of_special_logarithm(s, x, value))


def of_special_logarithm(s: ExprBuilder, x: E.PrimExpr, value: E.PrimExpr) -> E.PrimExpr:
    """`value`, or what the logarithm is of infinity, zero, and numbers that have none."""
    value = E.Select(E.LT(x, s.number(inf)), value, x)
    value = E.Select(E.EQ(x, s.number(0.0)), s.number(-inf), value)
    return E.Select(E.LT(x, s.number(0.0)), s.number(nan), value)


def log2(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    return E.Mul(logarithm(x), ExprBuilder(x).number(LOG2_E))


def log10(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    return E.Mul(logarithm(x), ExprBuilder(x).number(0.43429448190325182765))


def log1p(x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP: log(1 + x), and what was lost in the sum."""
    s = ExprBuilder(x)
    x = s.name(x)
    total = s.name(E.Add(x, s.number(1.0)))
    lost = E.Div(E.Sub(x, E.Sub(total, s.number(1.0))), total)
    usual = E.LT(s.absolute(total), s.number(inf))
    exact = E.And(usual, E.NE(total, s.number(0.0)))
    value = E.Add(logarithm(total), E.Select(exact, lost, s.number(0.0)))
    return s.result(E.Select(E.EQ(x, s.number(0.0)), x, value))


def _reduced(s: ExprBuilder, x: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """`x` without the nearest multiple of a quarter turn, and the number of quarters.

    So large a number that neighbouring floats are turns apart has no meaningful sine; it is NaN.
    """
    x = s.name(E.Select(E.LT(s.absolute(x), s.number(2.0**45)), x, s.number(nan)))
    quarters = s.name(s.nearest(E.Mul(x, s.number(2 / pi))))
    r = x
    for part in (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21):
        r = s.name(E.Sub(r, E.Mul(quarters, s.number(part))))
    return r, s.name(s.to_integer(quarters))


def _sine_near_zero(s: ExprBuilder, r: E.PrimExpr, square: E.PrimExpr) -> E.PrimExpr:
    tail = s.polynomial(
        square,
        (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
         2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
    )  # fmt: skip
    return E.Add(r, E.Mul(E.Mul(r, square), tail))


def _cosine_near_zero(s: ExprBuilder, square: E.PrimExpr) -> E.PrimExpr:
    tail = s.polynomial(
        square,
        (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
         -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
    )  # fmt: skip
    half = s.name(E.Mul(s.number(0.5), square))
    one = s.name(E.Sub(s.number(1.0), half))
    lost = E.Sub(E.Sub(s.number(1.0), one), half)
    return E.Add(one, E.Add(lost, E.Mul(E.Mul(square, square), tail)))


def _turned(x: E.PrimExpr, ahead: int) -> E.PrimExpr:
    """The sine of `x` plus so many quarter turns."""
    s = ExprBuilder(x)
    x = s.name(x)
    r, quarters = _reduced(s, x)
    if ahead:
        quarters = s.name(E.Add(quarters, s.whole(ahead)))
    square = s.name(E.Mul(r, r))
    sine = s.name(_sine_near_zero(s, r, square))
    cosine = s.name(_cosine_near_zero(s, square))
    odd = E.NE(s.masked(quarters, 1), s.whole(0))
    value = s.name(E.Select(odd, cosine, sine))
    negative = E.NE(s.masked(quarters, 2), s.whole(0))
    return s.result(E.Select(negative, E.Sub(s.number(0.0), value), value))


def sin(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP for arguments up to 1e5; beyond, an absolute error that grows with them."""
    return _turned(x, 0)


def cos(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP for arguments up to 1e5; beyond, an absolute error that grows with them."""
    return _turned(x, 1)


def tan(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP for arguments up to 1e5."""
    s = ExprBuilder(x)
    x = s.name(x)
    return s.result(E.Div(sin(x), cos(x)))


def atan(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    one = s.number(1.0)
    large = s.name(E.GT(a, s.number(2.41421356237309504880)))
    middle = s.name(E.GT(a, s.number(0.66)))
    ratio = E.Select(middle, E.Div(E.Sub(a, one), E.Add(a, one)), a)
    r = s.name(E.Select(large, E.Div(s.number(-1.0), a), ratio))
    z = s.name(E.Mul(r, r))
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
    inner = E.Add(E.Mul(r, E.Div(E.Mul(z, top), bottom)), r)
    lost = 6.123233995736765886130e-17
    offset = E.Select(middle, s.number(pi / 4), s.number(0.0))
    more = E.Select(middle, s.number(lost / 2), s.number(0.0))
    offset = E.Select(large, s.number(pi / 2), offset)
    more = E.Select(large, s.number(lost), more)
    return s.result(s.with_sign_of(E.Add(offset, E.Add(inner, more)), x))


def asin(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    one = s.number(1.0)
    other = s.root(E.Mul(E.Sub(one, x), E.Add(one, x)))
    return s.result(E.Mul(s.number(2.0), atan(E.Div(x, E.Add(one, other)))))


def acos(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    one = s.number(1.0)
    half = atan(s.root(E.Div(E.Sub(one, x), E.Add(one, x))))
    return s.result(E.Mul(s.number(2.0), half))


def atan2(y: E.PrimExpr, x: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    s = ExprBuilder(y)
    y, x = s.name(y), s.name(x)
    both = E.And(E.EQ(s.absolute(x), s.number(inf)), E.EQ(s.absolute(y), s.number(inf)))
    none = E.And(E.EQ(x, s.number(0.0)), E.EQ(y, s.number(0.0)))
    ratio = E.Select(both, s.number(1.0), E.Div(s.absolute(y), s.absolute(x)))
    angle = s.name(atan(E.Select(none, s.number(0.0), ratio)))
    leftwards = E.LT(s.with_sign_of(s.number(1.0), x), s.number(0.0))
    value = E.Select(
        leftwards, E.Sub(s.number(pi), E.Sub(angle, s.number(1.2246467991473532e-16))), angle
    )
    return s.result(s.with_sign_of(value, y))


_SINH = tuple(
    1 / value for value in (1, 6, 120, 5040, 362880, 39916800, 6227020800, 1307674368000,
                            355687428096000, 121645100408832000)
)  # fmt: skip
"""The series of the hyperbolic sine, in powers of the square."""


def _sinh_near_zero(s: ExprBuilder, x: E.PrimExpr) -> E.PrimExpr:
    square = s.name(E.Mul(x, x))
    return E.Add(x, E.Mul(E.Mul(x, square), s.polynomial(square, _SINH[1:])))


def sinh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    root = s.name(exp(E.Mul(a, s.number(0.5))))
    inverse = s.name(E.Div(s.number(1.0), root))
    half = s.number(0.5)
    large = E.Sub(E.Mul(E.Mul(half, root), root), E.Mul(E.Mul(half, inverse), inverse))
    near = _sinh_near_zero(s, x)
    return s.result(E.Select(E.LT(a, s.number(1.0)), near, s.with_sign_of(large, x)))


def cosh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    s = ExprBuilder(x)
    root = s.name(exp(E.Mul(s.absolute(x), s.number(0.5))))
    inverse = s.name(E.Div(s.number(1.0), root))
    half = s.number(0.5)
    return s.result(E.Add(E.Mul(E.Mul(half, root), root), E.Mul(E.Mul(half, inverse), inverse)))


def tanh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    one = s.number(1.0)
    near = s.name(_sinh_near_zero(s, s.name(E.Min(E.Max(x, s.number(-1.0)), one))))
    ratio = E.Div(near, s.root(E.Add(E.Mul(near, near), one)))
    power = exp(E.Mul(s.number(2.0), a))
    large = E.Sub(one, E.Div(s.number(2.0), E.Add(power, one)))
    return s.result(E.Select(E.LT(a, one), ratio, s.with_sign_of(large, x)))


def sigmoid(x: E.PrimExpr) -> E.PrimExpr:
    """Error 3 ULP."""
    s = ExprBuilder(x)
    one = s.number(1.0)
    return E.Div(one, E.Add(one, exp(E.Sub(s.number(0.0), x))))


def asinh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    one = s.number(1.0)
    a = s.name(s.absolute(x))
    usual = E.LT(a, s.number(1e150))
    b = s.name(E.Select(usual, a, s.number(1.0)))
    inner = E.Add(b, E.Div(E.Mul(b, b), E.Add(one, s.root(E.Add(E.Mul(b, b), one)))))
    large = E.Add(logarithm(a), s.number(log(2.0)))
    return s.result(s.with_sign_of(E.Select(usual, log1p(inner), large), x))


def acosh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    t = s.name(E.Sub(x, s.number(1.0)))
    usual = E.LT(x, s.number(1e150))
    inner = E.Add(t, s.root(E.Add(E.Mul(s.number(2.0), t), E.Mul(t, t))))
    return s.result(E.Select(usual, log1p(inner), E.Add(logarithm(x), s.number(log(2.0)))))


def atanh(x: E.PrimExpr) -> E.PrimExpr:
    """Error 4 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    ratio = E.Div(E.Mul(s.number(2.0), a), E.Sub(s.number(1.0), a))
    return s.result(s.with_sign_of(E.Mul(s.number(0.5), log1p(ratio)), x))


def hypot(x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """Error 2 ULP."""
    s = ExprBuilder(x)
    a, b = s.name(s.absolute(x)), s.name(s.absolute(y))
    greater, lesser = s.name(E.Max(a, b)), s.name(E.Min(a, b))
    ratio = s.name(E.Div(lesser, greater))
    length = E.Mul(greater, s.root(E.Add(s.number(1.0), E.Mul(ratio, ratio))))
    extreme = E.Or(E.EQ(greater, s.number(0.0)), E.EQ(greater, s.number(inf)))
    return s.result(E.Select(extreme, greater, length))


def power(x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """exp(y * log(x)): an error of as many ULP as the exponent of the result in base e, at most
    750; for float32, which comes by here, one half."""
    s = ExprBuilder(x)
    x, y = s.name(x), s.name(y)
    one, zero = s.number(1.0), s.number(0.0)
    a = s.name(s.absolute(x))
    size = s.name(exp(E.Mul(y, logarithm(a))))
    whole = E.EQ(y, s.unary("trunc", y))
    half = E.Mul(y, s.number(0.5))
    odd = E.And(whole, E.NE(half, s.unary("trunc", half)))
    negative = E.LT(s.with_sign_of(one, x), zero)
    signed = E.Select(E.And(negative, odd), E.Sub(zero, size), size)
    defined = E.Or(E.GE(x, zero), E.Or(whole, E.NE(x, x)))
    value = E.Select(defined, signed, s.number(nan))
    trivial = E.Or(E.EQ(y, zero), E.EQ(x, one))
    return s.result(E.Select(trivial, one, value))


def erf(x: E.PrimExpr) -> E.PrimExpr:
    """Error 1 ULP."""
    s = ExprBuilder(x)
    x = s.name(x)
    a = s.name(s.absolute(x))
    one = s.number(1.0)
    square = s.name(E.Mul(x, x))
    near = E.Add(x, E.Mul(x, E.Div(s.polynomial(square, _ERF_P), s.polynomial(square, _ERF_Q))))
    t = s.name(E.Sub(a, one))
    middle = E.Add(
        s.number(8.45062911510467529297e-01),
        E.Div(s.polynomial(t, _ERF_PA), s.polynomial(t, _ERF_QA)),
    )
    bounded = s.name(E.Min(E.Max(a, s.number(0.5)), s.number(6.0)))
    u = s.name(E.Div(one, E.Mul(bounded, bounded)))
    lower = E.Div(s.polynomial(u, _ERF_RA), s.polynomial(u, _ERF_SA))
    upper = E.Div(s.polynomial(u, _ERF_RB), s.polynomial(u, _ERF_SB))
    ratio = s.name(E.Select(E.LT(bounded, s.number(1 / 0.35)), lower, upper))
    rounded = s.name(s.from_bits(s.masked(s.bits(bounded), -0x100000000)))
    first = exp(E.Sub(E.Sub(s.number(0.0), E.Mul(rounded, rounded)), s.number(0.5625)))
    rest = E.Mul(E.Sub(rounded, bounded), E.Add(rounded, bounded))
    second = exp(E.Add(rest, ratio))
    far = E.Sub(one, E.Div(E.Mul(first, second), bounded))
    outside = E.Select(E.LT(a, s.number(1.25)), middle, far)
    value = E.Select(E.LT(a, s.number(0.84375)), near, s.with_sign_of(outside, x))
    return s.result(E.Select(E.NE(x, x), x, value))


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
