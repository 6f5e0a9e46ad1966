"""Linear forms: a constant plus terms times coefficients.

Every index is one; what its terms are differs. They are digits of expressions where expressions are
simplified (`mlcweb.arith.digits`), digits of iterators where bindings are checked
(`mlcweb.arith.iter_expr`), and any expressions where compiled loops are optimised
(`mlcweb.lower.optimize.indices`). Terms are keys of a table: what is equal has to be found in it.
Coefficients are integers; those of iterators are expressions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

Term = TypeVar("Term", bound=Hashable)
Number = TypeVar("Number")
Operation = Callable[[Any, Any], Any]


@dataclass(eq=False, slots=True)
class LinearForm(Generic[Term, Number]):
    """`constant + sum(coefficient * term)`, in the arithmetic of `dtype`. No coefficient is 0."""

    terms: dict[Term, Number]
    constant: Number
    dtype: str

    def plus(
        self,
        other: LinearForm[Term, Number],
        factor: Any = 1,
        add: Operation = operator.add,
        multiply: Operation = operator.mul,
    ) -> LinearForm[Term, Number]:
        """`self + other * factor`; new terms come last."""
        terms = dict(self.terms)
        accumulate(terms, other.terms, factor, add, multiply)
        constant = add(self.constant, multiply(other.constant, factor))
        return LinearForm(terms, constant, self.dtype)

    def times(self, factor: Any, multiply: Operation = operator.mul) -> Self:
        terms = {} if factor == 0 else {term: multiply(c, factor) for term, c in self.items()}
        return type(self)(terms, multiply(self.constant, factor), self.dtype)

    def items(self) -> Any:
        """Pairs of a term and its coefficient."""
        return self.terms.items()

    def with_constant(self, constant: Number) -> LinearForm[Term, Number]:
        """The same terms and another constant."""
        return LinearForm(self.terms, constant, self.dtype)

    def without(self, term: Term) -> LinearForm[Term, Number]:
        """All but one term."""
        rest = {other: c for other, c in self.items() if other != term}
        return LinearForm(rest, self.constant, self.dtype)

    def separate(self, divisor: int) -> tuple[Self, Self]:
        """(quotient, rest) with `self == quotient * divisor + rest`, where all that `divisor`
        divides is in the quotient."""
        quotient = {term: c // divisor for term, c in self.items() if c % divisor == 0}
        rest = {term: c for term, c in self.items() if c % divisor}
        constant: Any = self.constant
        zero: Any = 0
        whole, left = (zero, constant) if constant % divisor else (constant // divisor, zero)
        return type(self)(quotient, whole, self.dtype), type(self)(rest, left, self.dtype)

    def divmod(self, divisor: int) -> tuple[Self, Self]:
        """(quotient, rest) with `self == quotient * divisor + rest`, number by number."""
        return self.map(lambda number: number // divisor), self.map(lambda number: number % divisor)

    def map(self, change: Callable[[Any], Any]) -> Self:
        """With every number changed; terms whose coefficient becomes 0 are left out."""
        terms = {term: new for term, c in self.items() if (new := change(c)) != 0}
        return type(self)(terms, change(self.constant), self.dtype)


def accumulate(
    terms: dict[Term, Any],
    more: Mapping[Term, Any],
    factor: Any,
    add: Operation = operator.add,
    multiply: Operation = operator.mul,
) -> None:
    """Add terms times a factor, which is not 0, to those in a table."""
    for term, coefficient in more.items():
        scaled = multiply(coefficient, factor)
        old = terms.get(term)
        if old is None:
            terms[term] = scaled
        elif (total := add(old, scaled)) == 0:
            del terms[term]
        else:
            terms[term] = total
