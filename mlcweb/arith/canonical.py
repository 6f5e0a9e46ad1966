"""The canonical form of integer expressions: a sum of scaled digits.

A term is one "digit" of an index, `index % upper // lower * scale`, and a sum is terms plus a
constant. Splitting and fusing loops only ever takes digits apart and puts them together, so that
adding sums and merging neighbouring digits (`x // 4 * 4 + x % 4` is `x`) undoes it. Terms of equal
index stand together, the highest digit first. The method, and the order in which a sum is written,
are those of TVM's canonical simplifier, so that texts agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import is_index_type
from mlcweb.arith.rewrite import apply_rule, rebuilt
from mlcweb.arith.rules_integer import product
from mlcweb.tir import expr as E
from mlcweb.tir.folding import add, floordiv, floormod, integer, multiply, subtract

if TYPE_CHECKING:
    from mlcweb.arith.analyzer import Analyzer


class Term:
    """`index % upper // lower * scale`; no remainder is taken where `upper` is None."""

    __slots__ = ("index", "lower", "scale", "upper")

    def __init__(self, index: E.PrimExpr, lower: int, upper: int | None, scale: int) -> None:
        self.index = index
        self.lower = lower
        self.upper = upper
        self.scale = scale

    def times(self, factor: int) -> Term:
        return Term(self.index, self.lower, self.upper, self.scale * factor)

    def expression(self) -> E.PrimExpr:
        """The term as it is written by itself."""
        return self.scaled(self.scale)

    def scaled(self, scale: int) -> E.PrimExpr:
        """The term as an expression, with another scale."""
        if scale == 0:
            return integer(0, self.index.dtype)
        result = self.index
        if self.upper is not None:
            result = floormod(result, integer(self.upper, result.dtype))
        if self.lower != 1:
            result = floordiv(result, integer(self.lower, result.dtype))
        return multiply(result, integer(scale, result.dtype)) if scale != 1 else result


class Sum:
    """Terms plus a constant. Changed only while it is being built: an analyzer remembers it."""

    __slots__ = ("base", "dtype", "terms")

    def __init__(self, dtype: str, terms: list[Term], base: int = 0) -> None:
        self.dtype = dtype
        self.terms = terms
        self.base = base

    def add_term(self, new: Term, factor: int = 1) -> None:
        """Add `new * factor`, next to the terms of the same index, higher digits first."""
        scale = new.scale * factor
        if scale == 0:
            return
        terms = self.terms
        size = len(terms)
        position = 0
        while position < size and not same_expression(terms[position].index, new.index):
            position += 1
        while position < size:
            term = terms[position]
            if new.lower > term.lower or not same_expression(term.index, new.index):
                break
            if new.lower == term.lower and new.upper == term.upper:
                scale += term.scale
                if scale:
                    terms[position] = Term(term.index, term.lower, term.upper, scale)
                else:
                    del terms[position]
                return
            position += 1
        terms.insert(position, Term(new.index, new.lower, new.upper, scale))

    def plus(self, other: Value, sign: int) -> Sum:
        """This sum plus or minus another value."""
        result = Sum(self.dtype, list(self.terms), self.base)
        if isinstance(other, Sum):
            result.base += sign * other.base
            for term in other.terms:
                result.add_term(term, sign)
        elif isinstance(other, Term):
            result.add_term(other, sign)
        elif isinstance(other, E.IntImm):
            result.base += sign * other.value
        else:
            result.add_term(Term(other, 1, None, 1), sign)
        return result

    def times(self, factor: int) -> Sum:
        terms = [term.times(factor) for term in self.terms]
        return Sum(self.dtype, terms, self.base * factor)

    def divided_exactly(self, divisor: int) -> Sum:
        terms = [Term(t.index, t.lower, t.upper, t.scale // divisor) for t in self.terms]
        return Sum(self.dtype, terms, self.base // divisor)

    def separate_multiples(self, divisor: int) -> tuple[Sum, Sum]:
        """The part whose scales `divisor` divides, and the rest."""
        multiples, rest = Sum(self.dtype, []), Sum(self.dtype, [])
        for term in self.terms:
            (rest if term.scale % divisor else multiples).terms.append(term)
        (rest if self.base % divisor else multiples).base = self.base
        return multiples, rest

    def expression(self) -> E.PrimExpr:
        """The sum as written: larger scales first, then the constant, then what is subtracted."""
        terms = self.terms
        if len(terms) > 1:
            terms = sorted(_merge_digits(terms), key=_writing_order)
        zero = result = integer(0, self.dtype)
        for term in terms:
            if term.scale > 0:
                written = term.expression()
                result = written if result is zero else add(result, written)
        if self.base > 0:
            constant = integer(self.base, self.dtype)
            result = constant if result is zero else add(result, constant)
        for term in terms:
            if term.scale < 0:
                result = subtract(result, term.scaled(-term.scale))
        if self.base < 0:
            result = subtract(result, integer(-self.base, self.dtype))
        return result


Value = Sum | Term | E.PrimExpr
"""What the canonical form of a subexpression is: a sum, a term, or any other expression."""


def _writing_order(term: Term) -> tuple[int, int, float]:
    return -term.scale, -term.lower, -(term.upper or float("inf"))


def _merge_digits(terms: list[Term]) -> list[Term]:
    """Neighbouring digits of one index in one: x // 4 * 4 + x % 4 is x."""
    terms = list(terms)
    for i, high in enumerate(terms):
        if high.scale == 0:
            continue
        for j in range(i + 1, len(terms)):
            low = terms[j]
            if not same_expression(high.index, low.index):
                break
            if high.upper is not None and high.upper < low.lower:
                break
            if (
                low.scale != 0
                and high.lower == low.upper
                and high.scale % low.scale == 0
                and high.lower == high.scale // low.scale * low.lower
            ):
                terms[j] = Term(low.index, low.lower, high.upper, low.scale)
                terms[i] = high.times(0)
                break
    return [term for term in terms if term.scale]


def canonical_sum(expression: E.PrimExpr, analyzer: Analyzer) -> Sum:
    """The expression, an integer, as a sum, which is the caller's to change."""
    found = _as_sum(_value(expression, analyzer))
    return Sum(found.dtype, list(found.terms), found.base)


def affine_form(expression: E.PrimExpr, analyzer: Analyzer) -> tuple[E.PrimExpr, bool]:
    """The canonical form, and whether it is finished: a sum of digits of different variables, none
    subtracted, to which no other rule applies."""
    value = _value(expression, analyzer)
    terms = value.terms if isinstance(value, Sum) else [value] if isinstance(value, Term) else None
    written = _expression(value)
    if terms is None:
        return written, isinstance(written, (E.Var, E.IntImm))
    finished = all(type(term.index) is E.Var and term.scale > 0 for term in terms)
    return written, finished and len({term.index for term in terms}) == len(terms)


def canonical(expression: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    """The expression with every integer sum in it in canonical form."""
    return _expression(_value(expression, analyzer))


def _value(expression: E.PrimExpr, analyzer: Analyzer) -> Value:
    cls = type(expression)
    if cls is E.Var:
        return analyzer.value_of(expression)  # type: ignore[arg-type]
    if cls in _CONSTANTS:
        return expression
    known = analyzer.canonical_values.get(expression)
    if known is not None:
        return known
    rule = _RULES.get(cls)
    if rule is not None:
        value = rule(expression, analyzer)
    else:
        value = apply_rule(rebuilt(expression, canonical, analyzer), analyzer)
    analyzer.canonical_values[expression] = value
    return value


def _expression(value: Value) -> E.PrimExpr:
    return value if isinstance(value, E.PrimExpr) else value.expression()


def _as_sum(value: Value) -> Sum:
    if isinstance(value, Sum):
        return value
    if isinstance(value, Term):
        return Sum(value.index.dtype, [value] if value.scale else [])
    if isinstance(value, E.IntImm):
        return Sum(value.dtype, [], value.value)
    return Sum(value.dtype, [Term(value, 1, None, 1)])


def _as_term(value: Value) -> Term:
    """A value as a single term; a proper sum becomes its index."""
    if isinstance(value, Term):
        return value
    if isinstance(value, Sum):
        if len(value.terms) == 1 and value.base == 0:
            return value.terms[0]
        value = value.expression()
    return Term(value, 1, None, 1)


def _add(expression: E.Add, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    return _as_sum(a).plus(b, 1)


def _subtract(expression: E.Sub, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    return _as_sum(a).plus(b, -1)


def _multiply(expression: E.Mul, analyzer: Analyzer) -> Value:
    variable, factor = expression.a, expression.b
    if type(variable) is E.Var and type(factor) is E.IntImm and factor.value:
        # Most products are of this kind.
        if analyzer.value_of(variable) is variable and is_index_type(variable.dtype):
            return Term(variable, 1, None, factor.value)
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    if not is_index_type(expression.dtype):
        return apply_rule(_with_operands(expression, a, b), analyzer)
    if isinstance(a, E.IntImm):
        a, b = b, a
    if isinstance(b, Sum) and not b.terms:
        b = b.expression()
    if isinstance(a, Sum) and not a.terms:
        a, b = b, a.expression()
    if isinstance(b, E.IntImm):
        if b.value == 0:
            return b
        return a.times(b.value) if isinstance(a, Sum) else _as_term(a).times(b.value)
    made = product(_expression(a), _expression(b))
    return expression if same_expression(made, expression) else made


def _with_operands(expression: Any, a: Value, b: Value) -> Any:
    a, b = _expression(a), _expression(b)
    if a is expression.a and b is expression.b:
        return expression
    return type(expression)(a, b)


def _divisor(b: Value) -> int | None:
    b = _expression(b)
    return b.value if isinstance(b, E.IntImm) and b.value > 0 else None


def _floordiv(expression: E.FloorDiv, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    divisor = _divisor(b) if is_index_type(expression.dtype) else None
    if divisor is None:
        return apply_rule(_with_operands(expression, a, b), analyzer)
    if divisor == 1:
        return a
    if not isinstance(a, Sum):
        if analyzer.is_within(_expression(a), 0, divisor):
            return integer(0, expression.dtype)
        return _divide_term(_as_term(a), divisor)
    multiples, rest = a.separate_multiples(divisor)
    quotient = multiples.divided_exactly(divisor)
    if not rest.terms:
        quotient.base += rest.base // divisor
        return quotient
    remainder = rest.expression()
    if not analyzer.is_within(remainder, 0, divisor):
        quotient.add_term(_divide_term(Term(remainder, 1, None, 1), divisor))
    return quotient


def _floormod(expression: E.FloorMod, analyzer: Analyzer) -> Value:
    a, b = _value(expression.a, analyzer), _value(expression.b, analyzer)
    divisor = _divisor(b) if is_index_type(expression.dtype) else None
    if divisor is None:
        return apply_rule(_with_operands(expression, a, b), analyzer)
    if divisor == 1:
        return integer(0, expression.dtype)
    if not isinstance(a, Sum):
        if analyzer.is_within(_expression(a), 0, divisor):
            return a
        return _remainder_of_term(_as_term(a), divisor, analyzer)
    _, rest = a.separate_multiples(divisor)
    if not rest.terms:
        return integer(rest.base % divisor, expression.dtype)
    remainder = rest.expression()
    if analyzer.is_within(remainder, 0, divisor):
        return remainder
    rest.base %= divisor
    return _remainder_of_term(_as_term(rest), divisor, analyzer)


def _divide_term(term: Term, divisor: int) -> Term:
    """The term of `term // divisor`."""
    index, lower, upper, scale = term.index, term.lower, term.upper, term.scale
    if scale % divisor == 0:
        return Term(index, lower, upper, scale // divisor)
    if scale > 0 and divisor % scale == 0:
        factor = lower * (divisor // scale)
        if upper is None or upper % factor == 0:
            return Term(index, factor, upper, 1)
        if upper <= factor:
            return term.times(0)
        return Term(floormod(index, integer(upper, index.dtype)), factor, None, 1)
    return Term(term.expression(), divisor, None, 1)


def _remainder_of_term(term: Term, divisor: int, analyzer: Analyzer) -> Term:
    """The term of `term % divisor`."""
    index, lower, upper, scale = term.index, term.lower, term.upper, term.scale
    if scale % divisor == 0:
        return term.times(0)
    if scale > 0 and divisor % scale == 0:
        limit = lower * (divisor // scale)
        if upper is None:
            return Term(index, lower, limit, scale)
        if upper % limit == 0:
            if limit == upper:
                return term
            # A smaller remainder of the index may simplify further.
            digit = _as_term(_value(floormod(index, integer(limit, index.dtype)), analyzer))
            if lower != 1:
                digit = _divide_term(digit, lower)
            return digit.times(scale)
        if limit % upper == 0:
            return term
    return Term(term.expression(), 1, divisor, 1)


_CONSTANTS = (E.IntImm, E.FloatImm)

_RULES: dict[type, Callable[[Any, Analyzer], Value]] = {
    E.Add: _add,
    E.Sub: _subtract,
    E.Mul: _multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
}
