"""What mathematical functions are written in: expressions of any number of lanes, with names for
intermediate results, and the few tricks on the bits of floats.

    @formula
    def hyperbola(s: ExprBuilder, x: PrimExpr) -> PrimExpr:
        square = s.name(x * x)
        return s.root(square - 1.0) / square
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.intrinsics import call, register_op

Formula = Callable[..., E.PrimExpr]
"""A function of expressions."""

_FORMATS = {"float32": (23, 127), "float64": (52, 1023)}
"""Bits of the fraction, and the bias of exponents."""


class ExprBuilder:
    """A function in the making: values that got names, around the result in the end."""

    def __init__(self, like: E.PrimExpr) -> None:
        self.dtype = like.dtype
        self.element = dtypes.element_of(like.dtype)
        self.integer = dtypes.with_lanes(
            f"int{dtypes.bits(self.element)}", dtypes.lanes(like.dtype)
        )
        self.fraction_bits, self.bias = _FORMATS.get(self.element, (0, 0))
        # Added to a small whole number, it leaves that in the lowest bits of the sum.
        self._magic = 1.5 * 2.0**self.fraction_bits
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

    def clamped(self, x: E.PrimExpr, low: float, high: float) -> E.PrimExpr:
        """A variable for x, or the nearer end of the range where x lies outside of it."""
        return self.name(E.Min(E.Max(x, self.number(low)), self.number(high)))

    def square(self, x: E.PrimExpr) -> E.PrimExpr:
        """A variable for x * x, the same one each time."""
        if x not in self._squares:
            self._squares[x] = self.name(x * x)
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
                total = terms.pop() + total * self.square(x)
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
        return self.bits(E.Add(whole, self.number(self._magic)))

    def to_float(self, integer: E.PrimExpr) -> E.PrimExpr:
        """An integer of moderate size as a float; no instruction converts vectors of 64 bits."""
        if self.element == "float32":
            return E.Cast(self.dtype, integer)
        width = self.fraction_bits
        bits_of_magic = (self.bias + width << width) + (1 << width - 1)
        return self.from_bits(integer + self.whole(bits_of_magic)) - self.number(self._magic)

    def nearest_count(self, x: E.PrimExpr, biases: int = 2) -> tuple[E.PrimExpr, E.PrimExpr]:
        """The whole number nearest to a float of moderate size; and as bits, for `scaled`, plus so
        many biases of exponents."""
        magic = self.number(self._magic + biases * self.bias)
        total = self.name(E.Add(x, magic))
        return self.name(total - magic), self.name(self.bits(total))

    def scaled(self, x: E.PrimExpr, count: E.PrimExpr) -> E.PrimExpr:
        """`x * 2**count`, also where the result is subnormal, with a count from `nearest_count`."""
        first, second = self.powers_of_two(count)
        return x * first * second

    def scaled_after_one(self, x: E.PrimExpr, count: E.PrimExpr) -> E.PrimExpr:
        """`(1 + x) * 2**count`, the same way; one operation less where they can be fused."""
        first, second = self.powers_of_two(count)
        first = self.name(first)
        return (x * first + first) * second

    def normal_after_one(self, x: E.PrimExpr, count: E.PrimExpr) -> E.PrimExpr:
        """The same of a count with one bias, where the result is normal: by one factor."""
        power = self.name(self.from_bits(self.shifted(count, self.fraction_bits)))
        return x * power + power

    def powers_of_two(self, count: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
        """Two factors that together are `2**count`.

        The bits hold the count plus twice the bias of exponents, so that half of them, and the
        other half, are exponents as they stand.
        """
        width = self.fraction_bits
        half = self.name(self.shifted(count, -1))
        first = self.from_bits(self.shifted(half, width))
        return first, self.from_bits(self.shifted(count - half, width))


def formula_of_values(write: Callable[..., E.PrimExpr]) -> Formula:
    """A mathematical function from what writes it with a builder."""

    @wraps(write)
    def build(*arguments: E.PrimExpr) -> E.PrimExpr:
        s = ExprBuilder(arguments[0])
        return s.result(write(s, *arguments))

    return build


def formula(write: Callable[..., E.PrimExpr]) -> Formula:
    """The same where arguments are used more than once: each has a name."""
    return formula_of_values(lambda s, *arguments: write(s, *map(s.name, arguments)))
