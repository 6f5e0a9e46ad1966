"""What mathematical functions are written in: expressions of any number of lanes, with names for
intermediate results, and the few tricks on the bits of floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.intrinsics import call, register_op

_MAGIC = {"float32": 1.5 * 2.0**23, "float64": 1.5 * 2.0**52}
"""Added to a small whole number, they leave it in the lowest bits of the sum."""

_FRACTION_BITS = {"float32": 23, "float64": 52}
_EXPONENT_BIAS = {"float32": 127, "float64": 1023}


class ExprBuilder:
    """A function in the making: values that got names, around the result in the end."""

    def __init__(self, like: E.PrimExpr) -> None:
        self.dtype = like.dtype
        self.element = dtypes.element_of(like.dtype)
        self.integer = dtypes.with_lanes(
            f"int{dtypes.bits(self.element)}", dtypes.lanes(like.dtype)
        )
        self._bindings: list[tuple[E.Var, E.PrimExpr]] = []
        self._squares: dict[E.PrimExpr, E.PrimExpr] = {}

    def name(self, value: E.PrimExpr) -> E.PrimExpr:
        """A variable for a value that is used more than once."""
        if isinstance(value, (E.Var, E.IntImm, E.FloatImm)):
            return value
        var = E.Var("t", value.dtype)
        self._bindings.append((var, value))
        return var

    def result(self, value: E.PrimExpr) -> E.PrimExpr:
        """The value, inside the definitions of all names."""
        for var, bound in reversed(self._bindings):
            value = E.Let(var, bound, value)
        return value

    def number(self, value: float) -> E.PrimExpr:
        return const(value, self.dtype)

    def whole(self, value: int) -> E.PrimExpr:
        """An integer constant as wide as the floats."""
        return const(value, self.integer)

    def square(self, x: E.PrimExpr) -> E.PrimExpr:
        """A variable for x * x, the same one each time."""
        if x not in self._squares:
            self._squares[x] = self.name(E.Mul(x, x))
        return self._squares[x]

    def polynomial(self, x: E.PrimExpr, coefficients: Sequence[float]) -> E.PrimExpr:
        """The sum of `coefficients[n] * x**n`.

        Neighbouring terms are paired, which makes a polynomial in the square of x. Its terms are
        again paired for scalars, and so on (Estrin's scheme): the operations depend less on each
        other than in Horner's, and processors do more of them at once. Vectors, of which several
        are computed side by side, go on with Horner's scheme, which has fewer operations.
        """
        terms = [self.number(coefficient) for coefficient in coefficients]
        terms = self.paired(terms, x)
        if dtypes.lanes(self.dtype) > 1:
            total = terms.pop()
            while terms:
                total = E.Add(terms.pop(), E.Mul(total, self.square(x)))
            return total
        while len(terms) > 1:
            x = self.square(x)
            terms = self.paired(terms, x)
        return terms[0]

    def paired(self, terms: list[E.PrimExpr], x: E.PrimExpr) -> list[E.PrimExpr]:
        """The terms of a polynomial in x as those of a polynomial in the square of x."""
        pairs = zip(terms[::2], terms[1::2], strict=False)
        paired: list[E.PrimExpr] = [E.Add(low, E.Mul(high, x)) for low, high in pairs]
        return paired + terms[len(paired) * 2 :]

    def unary(self, name: str, x: E.PrimExpr) -> E.PrimExpr:
        return E.Call(x.dtype, register_op(f"tir.{name}"), (x,))

    def absolute(self, x: E.PrimExpr) -> E.PrimExpr:
        return self.unary("fabs", x)

    def nearest(self, x: E.PrimExpr) -> E.PrimExpr:
        return self.unary("nearbyint", x)

    def root(self, x: E.PrimExpr) -> E.PrimExpr:
        return self.unary("sqrt", x)

    def with_sign_of(self, magnitude: E.PrimExpr, sign: E.PrimExpr) -> E.PrimExpr:
        return E.Call(magnitude.dtype, register_op("tir.copysign"), (magnitude, sign))

    def bits(self, x: E.PrimExpr) -> E.PrimExpr:
        return E.Call(self.integer, register_op("tir.reinterpret"), (x,))

    def from_bits(self, bits: E.PrimExpr) -> E.PrimExpr:
        return E.Call(self.dtype, register_op("tir.reinterpret"), (bits,))

    def shifted(self, bits: E.PrimExpr, amount: int) -> E.PrimExpr:
        """Shifted to the left by `amount`, to the right (keeping the sign) if that is negative."""
        name = "shift_left" if amount > 0 else "shift_right"
        return call(bits.dtype, name, bits, const(abs(amount), bits.dtype))

    def masked(self, bits: E.PrimExpr, mask: int) -> E.PrimExpr:
        return call(bits.dtype, "bitwise_and", bits, const(mask, bits.dtype))

    def to_integer(self, whole: E.PrimExpr) -> E.PrimExpr:
        """A whole float of moderate size as an integer; only its lower bits are right."""
        return self.bits(E.Add(whole, self.number(_MAGIC[self.element])))

    def to_float(self, integer: E.PrimExpr) -> E.PrimExpr:
        """An integer of moderate size as a float."""
        magic = _MAGIC[self.element]
        zero = {"float32": 0x4B400000, "float64": 0x4338000000000000}[self.element]
        return E.Sub(self.from_bits(E.Add(integer, self.whole(zero))), self.number(magic))

    def nearest_count(self, x: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
        """The whole number nearest to a float of moderate size; and as bits, for `scaled`."""
        magic = self.number(_MAGIC[self.element] + 2 * _EXPONENT_BIAS[self.element])
        total = self.name(E.Add(x, magic))
        return self.name(E.Sub(total, magic)), self.name(self.bits(total))

    def scaled(self, x: E.PrimExpr, count: E.PrimExpr) -> E.PrimExpr:
        """`x * 2**count`, also where the result is subnormal, with a count from `nearest_count`."""
        first, second = self.powers_of_two(count)
        return E.Mul(E.Mul(x, first), second)

    def scaled_after_one(self, x: E.PrimExpr, count: E.PrimExpr) -> E.PrimExpr:
        """`(1 + x) * 2**count`, the same way; one operation less where they can be fused."""
        first, second = self.powers_of_two(count)
        first = self.name(first)
        return E.Mul(E.Add(E.Mul(x, first), first), second)

    def powers_of_two(self, count: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
        """Two factors that together are `2**count`.

        The bits hold the count plus twice the bias of exponents, so that half of them, and the
        other half, are exponents as they stand.
        """
        width = _FRACTION_BITS[self.element]
        half = self.name(self.shifted(count, -1))
        first = self.from_bits(self.shifted(half, width))
        return first, self.from_bits(self.shifted(E.Sub(count, half), width))
