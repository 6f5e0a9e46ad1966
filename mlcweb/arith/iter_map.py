"""Detection of iterator maps: are indices affine, independent functions of loop iterators?

Each index is turned into a sum of splits of iterators, then into one split of one (fused) iterator;
the indices are independent when no digit of an iterator is used twice. After TVM's
`detect_iter_map`, whose names and texts are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.interval import in_type
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply, subtract
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum, iter_sum, sum_to_expr
from mlcweb.arith.iter_fuse import Fuser
from mlcweb.arith.iter_independence import IndependenceCheck
from mlcweb.arith.iter_padding import PaddedMark, Padding
from mlcweb.arith.iter_predicate import Bound, bounds_of_iterators
from mlcweb.arith.linear import LinearForm
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast, convert, is_const_int, maximum, minimum
from mlcweb.tir.buffer import Range
from mlcweb.tir.dtype import is_integer
from mlcweb.tir.folding import floordiv, floormod, integer
from mlcweb.tir.substitute import substitute, uses_any, variables_in

BIJECTIVE, SURJECTIVE, NO_CHECK = "bijective", "surjective", "nocheck"


@dataclass(eq=False, slots=True)
class IterMapResult:
    """`indices`, one for each index given, or None and the reasons in `errors`.

    `padded` are the iterators that had to be rounded up to a multiple of a divisor, `fuser` knows
    what the predicate bounds.
    """

    indices: list[IterSum] | None
    errors: list[str] = field(default_factory=list)
    padded: Sequence[PaddedMark] = ()
    fuser: Fuser | None = field(default=None, repr=False)

    @property
    def is_box(self) -> bool:
        """Whether the predicate, too, leaves the indices independent: together they take all
        combinations of the values that each takes alone."""
        if self.indices is None or self.fuser is None:
            return False
        return self.fuser.uses_all_constraints(self.indices)


@nesting_limit("analyzed")
def detect_iter_map(
    indices: Sequence[E.PrimExpr],
    input_iters: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    check_level: str = SURJECTIVE,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> IterMapResult:
    """Write each index as a split of an iterator over `input_iters`, where `predicate` holds.

    `check_level`: "surjective": the indices are independent and reach all values of their extents;
    "bijective": besides, every iterator of `input_iters` is used, and used once; "nocheck":
    the indices need not be independent.
    """
    analyzer = analyzer or analyzer_of(input_iters)
    condition = None if _always_holds(predicate) else convert(predicate)
    errors: list[str] = []
    # The digits in a predicate make up a loop, or are those of the indices.
    for merged in (True, False) if condition is not None and _divides(condition) else (True,):
        detector = _Detector(analyzer, input_iters, check_level, simplify_trivial_iterators)
        try:
            if condition is not None:
                detector.add_constraints(condition, merged)
            sums = detector.detect(indices)
        except NotAffine as reason:
            errors.append(str(reason))
            continue
        return IterMapResult(sums, padded=tuple(detector.padding.padded), fuser=detector.fuser)
    return IterMapResult(None, errors[:1])


def _divides(expression: E.PrimExpr) -> bool:
    return any(isinstance(part, E.FloorDiv) for part in walk(expression))


def is_iter_map(
    indices: Sequence[E.PrimExpr],
    input_iters: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    check_level: str = SURJECTIVE,
) -> bool:
    """Whether `detect_iter_map` finds the indices; only those that are more than an iterator by
    itself are analyzed."""
    alone = lone_iterators(indices, input_iters, predicate)
    if alone:
        indices = [index for index in indices if index not in alone]
        input_iters = {v: domain for v, domain in input_iters.items() if v not in alone}
    if not indices and (check_level != BIJECTIVE or not input_iters):
        return True
    return detect_iter_map(indices, input_iters, predicate, check_level).indices is not None


def _always_holds(predicate: E.PrimExpr | bool) -> bool:
    return predicate is True or is_const_int(predicate, 1)


def lone_iterators(
    indices: Sequence[E.PrimExpr],
    input_iters: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
) -> set[E.Var]:
    """Iterators that are an index each, and occur nowhere else: whatever the other indices are,
    they are independent of them, and run through their domains."""
    if not _always_holds(predicate):
        return set()
    if not all(
        type(domain.extent) is type(domain.min) is E.IntImm for domain in input_iters.values()
    ):
        return set()
    alone: set[E.Var] = set()
    others: list[E.PrimExpr] = []
    for index in indices:
        if isinstance(index, E.Var) and index in input_iters and index not in alone:
            alone.add(index)
        else:
            others.append(index)
    return alone and alone - variables_in(*others)


def iter_map_simplify(
    indices: Sequence[E.PrimExpr],
    input_iters: Mapping[E.Var, Range],
    predicate: E.PrimExpr | bool = True,
    check_level: str = SURJECTIVE,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> list[E.PrimExpr]:
    """The indices in the normal form of their iterator map; as they are where they have none."""
    analyzer = analyzer or analyzer_of(input_iters)
    options = (check_level, simplify_trivial_iterators, analyzer)
    result = detect_iter_map(indices, input_iters, predicate, *options)
    if result.indices is None and not _always_holds(predicate) and check_level != BIJECTIVE:
        result = detect_iter_map(indices, input_iters, True, *options)
    if result.indices is None:
        return list(indices)
    simple = [sum_to_expr(index, analyzer) for index in result.indices]
    others = variables_in(*simple) - input_iters.keys()
    values = {other: analyzer.value_of(other) for other in others}
    return [substitute(index, values) for index in simple]


def sum_of_iterator(variable: E.Var, domain: Range) -> IterSum:
    """An iterator as a sum of digits."""
    return _sum_of_iterator(variable, _of_type(variable.dtype, domain))


def _sum_of_iterator(variable: E.Var, domain: Range) -> IterSum:
    mark = IterMark(subtract(variable, domain.min), domain.extent)
    return iter_sum({mark.whole: integer(1, variable.dtype)}, domain.min)


def _of_type(dtype: str, domain: Range) -> Range:
    if domain.min.dtype == domain.extent.dtype == dtype:
        return domain
    return Range(cast(dtype, domain.min), cast(dtype, domain.extent))


@nesting_limit("analyzed")
def sum_of_digits(
    index: E.PrimExpr, input_iters: Mapping[E.Var, Range], analyzer: Analyzer | None = None
) -> IterSum:
    """An index as a sum of digits of the iterators, which may overlap; operands that are not affine
    are part of its constant."""
    analyzer = analyzer or analyzer_of(input_iters)
    value = _TermDetector(analyzer, input_iters, NO_CHECK, True).value(index)
    if not isinstance(value, LinearForm):
        return iter_sum({}, value)
    parts = [part for split, scale in value.items() for part in (scale, split.extent)]
    moves = any(uses_any(part, input_iters) for part in parts)
    return iter_sum({}, index) if moves else value


def analyzer_of(input_iters: Mapping[E.Var, Range]) -> Analyzer:
    """An analyzer that knows the iterators, but leaves those of one iteration in the texts."""
    analyzer = Analyzer()
    for variable, domain in input_iters.items():
        if not is_const_int(domain.extent, 1):
            analyzer.bind(variable, domain)
    return analyzer


Value = IterSum | E.PrimExpr
"""A subexpression: a sum of iterators, or an expression in which none occurs."""


class _Detector:
    """The state of one detection: the iterators, what has been fused, and padding."""

    def __init__(
        self,
        analyzer: Analyzer,
        input_iters: Mapping[E.Var, Range],
        check_level: str,
        simplify_trivial_iterators: bool,
    ) -> None:
        self.analyzer = analyzer
        self.check_level = check_level
        self.fuser = Fuser(analyzer, overlap_allowed=check_level != BIJECTIVE)
        self.input_iters = input_iters
        self.domains: dict[E.Var, Range] = {}
        self.input_marks: dict[E.Var, IterMark] = {}
        self.padding = Padding(analyzer, self.fuser, allowed=check_level != BIJECTIVE)
        self.sums: dict[E.Var, IterSum] = {}
        self.simplify_trivial_iterators = simplify_trivial_iterators

    def iterator(self, variable: E.Var) -> IterSum | None:
        """The sum that an iterator is; None for a variable that is none. Of the loops around an
        index it takes few, so that each is made when it is asked for."""
        if variable not in self.sums:
            if variable not in self.input_iters:
                return None
            self._add_iterator(variable, self.input_iters[variable])
        return self.sums[variable]

    def _add_iterator(self, variable: E.Var, domain: Range) -> None:
        self.domains[variable] = domain = _of_type(variable.dtype, domain)
        if self.simplify_trivial_iterators and is_const_int(domain.extent, 1):
            self.sums[variable] = iter_sum({}, domain.min)
            return
        self.sums[variable] = whole = _sum_of_iterator(variable, domain)
        self.input_marks[variable] = next(iter(whole.terms)).source

    def add_constraints(self, predicate: E.PrimExpr, merged: bool) -> None:
        """Understand the predicate as bounds of iterators and of sums of iterators; where `merged`,
        the digits of a loop that make up the loop are taken as that."""
        sums: list[Bound] = []
        for bound in bounds_of_iterators(predicate, self.input_iters):
            if merged and _divides(bound.value):
                bound = bound._replace(value=self.simple(bound.value))
            if isinstance(bound.value, E.Var):
                self._shorten(bound.value, bound.lower, bound.upper)
            elif not self._shorten_only(bound):
                sums.append(bound)
        for bound in sums:
            value = self.value(bound.value)
            linear = value if isinstance(value, LinearForm) else iter_sum({}, value)
            self.fuser.constrain(linear, bound.lower, bound.upper)
        self.fuser.check_constraints()

    def _shorten_only(self, bound: Bound) -> bool:
        """The same for a sum of one loop, loops of one iteration and a number, if it is one."""
        value = self.value(bound.value)
        if not isinstance(value, LinearForm) or len(value.terms) != 1:
            return False
        if not isinstance(value.constant, E.IntImm):
            return False
        ((split, scale),) = value.items()
        for variable, mark in self.input_marks.items():
            if split == mark.whole and is_const_int(scale, 1):
                shift = subtract(value.constant, self.domains[variable].min)
                lower, upper = (
                    None if end is None else subtract(end, shift)
                    for end in (bound.lower, bound.upper)
                )
                self._shorten(variable, lower, upper)
                return True
        return False

    def _shorten(self, variable: E.Var, lower: E.PrimExpr | None, upper: E.PrimExpr | None) -> None:
        """Keep only the iterations of one loop that the predicate admits."""
        self.iterator(variable)
        old = self.domains[variable]
        low, high = old.min, add(old.min, old.extent)
        if lower is not None:
            low = self.simple(maximum(low, lower))
        if upper is not None:
            high = self.simple(minimum(high, upper))
        extent = self.simple(subtract(high, low))
        if isinstance(extent, E.IntImm) and extent.value <= 0:
            raise NotAffine("the predicate is never true")
        self._add_iterator(variable, Range(low, extent))
        if variable in self.input_marks:
            self.fuser.shortened.append(self.input_marks[variable])

    def detect(self, indices: Sequence[E.PrimExpr]) -> list[IterSum]:
        """The sums of all indices, checked."""
        sums = [self._index(index) for index in indices]
        if self.padding.padded:
            # What divides an iterator is known only now; all uses share one padded iterator.
            sums = [self._index(index) for index in indices]
        if self.check_level != NO_CHECK:
            check = IndependenceCheck(self.analyzer, self.padding, self.check_level == BIJECTIVE)
            check.check(sums, self._all_marks() if self.check_level == BIJECTIVE else ())
        return sums

    def _all_marks(self) -> list[IterMark]:
        for variable in self.input_iters:
            self.iterator(variable)
        return [self.input_marks[v] for v in self.input_iters if v in self.input_marks]

    def _index(self, index: E.PrimExpr) -> IterSum:
        value = self.value(index)
        if not isinstance(value, LinearForm):
            return iter_sum({}, value)
        if len(value.terms) > 1 and _counts_down(value):
            minus = integer(-1, value.dtype)  # It counts down.
            return self.fuse(value.times(minus, multiply)).times(minus, multiply)
        return self.fuse(value)

    def value(self, expression: E.PrimExpr) -> Value:
        """An expression as a sum of splits; expressions without iterators as they are."""
        rule = _RULES.get(type(expression))
        if rule is not None:
            return rule(self, expression)
        if uses_any(expression, self.input_iters):
            raise NotAffine(f"{type(expression).__name__} is not affine in the loop iterators")
        return expression

    def plus(self, a: Value, b: Value, sign: int) -> IterSum:
        """a + b or a - b; equal digits are merged, or cancel."""
        first, second = (x if isinstance(x, LinearForm) else iter_sum({}, x) for x in (a, b))
        if sign == 1:
            return self.simplified(first.plus(second, 1, add, _once))
        return self.simplified(first.plus(second, integer(sign, second.dtype), add, multiply))

    def simplified(self, value: IterSum) -> IterSum:
        """A sum with its numbers simplified; constants are simple, and those of terms not 0."""
        if type(value.constant) is E.IntImm:
            for scale in value.terms.values():
                if type(scale) is not E.IntImm:
                    break
            else:
                return value
        return value.map(self.simple)

    def simple(self, expression: E.PrimExpr) -> E.PrimExpr:
        if isinstance(expression, (E.IntImm, E.Var)):
            return expression
        return self.analyzer.simplify(expression)

    def divides(self, divisor: E.PrimExpr, value: E.PrimExpr) -> bool:
        """Whether `value` is always a multiple of `divisor`."""
        return self.analyzer.can_prove_multiple(value, divisor)

    def divides_terms(self, divisor: E.PrimExpr, value: IterSum) -> bool:
        """Whether the terms of a sum are always multiples of `divisor`."""
        return all(self.divides(divisor, scale) for scale in value.terms.values())

    def divides_all(self, divisor: E.PrimExpr, value: IterSum) -> bool:
        """The same of the constant, too."""
        return self.divides_terms(divisor, value) and self.divides(divisor, value.constant)

    def quotient(self, value: E.PrimExpr, divisor: E.PrimExpr) -> E.PrimExpr:
        return self.simple(floordiv(value, divisor))

    def combine_digits(self, value: IterSum) -> IterSum:
        """Neighbouring digits of one iterator as one: i // 8 * 2 + i // 4 % 2 is i // 4."""
        for (high, scale), (low, unit) in permutations(value.items(), 2):
            if low.source is high.source and self._are_neighbours(high, scale, low, unit):
                extent = self.simple(multiply(high.extent, low.extent))
                merged = IterSplit(low.source, low.lower_factor, extent)
                rest = value.without(low).items()
                terms = dict((merged, unit) if split is high else (split, s) for split, s in rest)
                if len(terms) == len(rest):
                    return self.combine_digits(iter_sum(terms, value.constant))
        return value

    def _are_neighbours(
        self, high: IterSplit, scale: E.PrimExpr, low: IterSplit, unit: E.PrimExpr
    ) -> bool:
        equal = self.analyzer.can_prove_equal
        return equal(high.lower_factor, multiply(low.lower_factor, low.extent)) and equal(
            scale, multiply(unit, low.extent)
        )

    def fuse(self, value: IterSum) -> IterSum:
        """The value as one split of one iterator, plus a base."""
        return self.fuser.fuse(self.combine_digits(value))

    def fused_dividend(self, value: IterSum) -> IterSum:
        """The same of a dividend: a digit of one iterator may be taken whatever bounds it."""
        return value if len(value.terms) == 1 else self.fuse(value)

    def dividend(
        self, fused: IterSum, divisor: E.PrimExpr
    ) -> tuple[IterSplit, E.PrimExpr, E.PrimExpr, E.PrimExpr]:
        """(split, base, divisor, common scale): a fused dividend with its scale taken out."""
        ((split, scale),) = fused.items()
        base = fused.constant
        if is_const_int(scale, 1):
            return split, base, divisor, scale
        if not (self.divides(scale, divisor) and self.divides(scale, base)):
            raise NotAffine(f"an iterator scaled by {scale!r} is divided by {divisor!r}")
        return split, self.quotient(base, scale), self.quotient(divisor, scale), scale


class _TermDetector(_Detector):
    """Takes what is not affine as an expression in which no iterator occurs."""

    def value(self, expression: E.PrimExpr) -> Value:
        try:
            return super().value(expression)
        except NotAffine:
            return expression


def _once(number: E.PrimExpr, factor: int) -> E.PrimExpr:
    """A number times 1."""
    return number


def _variable(detector: _Detector, variable: E.Var) -> Value:
    value = detector.iterator(variable)
    return variable if value is None else value


def _add(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(a, LinearForm) or isinstance(b, LinearForm):
        return detector.plus(a, b, 1 if type(expression) is E.Add else -1)
    return expression


def _multiply(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(b, LinearForm):
        a, b = b, a
    if isinstance(b, LinearForm):
        raise NotAffine(f"a product of two iterators: {expression!r}")
    return detector.simplified(a.times(b, multiply)) if isinstance(a, LinearForm) else expression


def _cast(detector: _Detector, expression: Any) -> Value:
    """A sum as a number of another type, which has all its values."""
    value = detector.value(expression.value)
    if not isinstance(value, LinearForm):
        return expression
    dtype = expression.dtype
    if not is_integer(dtype):
        raise NotAffine(f"an iterator as {dtype}: {expression!r}")
    bound = detector.analyzer.const_int_bound(expression.value)
    if in_type(bound, dtype) != bound:
        raise NotAffine(f"an iterator that may not fit {dtype}: {expression!r}")
    terms = {split: cast(dtype, scale) for split, scale in value.items()}
    return iter_sum(terms, detector.simple(cast(dtype, value.constant)))


def _division(
    divide: Callable[[_Detector, IterSum, E.PrimExpr], IterSum],
) -> Callable[[_Detector, Any], Value]:
    """The rule of a division, or its remainder, of a sum by what has no iterators."""

    def rule(detector: _Detector, expression: Any) -> Value:
        a, b = detector.value(expression.a), detector.value(expression.b)
        if isinstance(b, LinearForm):
            raise NotAffine(f"a division by an iterator: {expression!r}")
        if not isinstance(a, LinearForm):
            return expression
        if not (isinstance(b, E.IntImm) and b.value < 0):
            return divide(detector, a, b)
        # a // -n is -a // n, and a % -n is -(-a % n).
        minus = integer(-1, b.dtype)
        result = divide(detector, a.times(minus, multiply), integer(-b.value, b.dtype))
        return result if divide is _floordiv else result.times(minus, multiply)

    return rule


def _floordiv(detector: _Detector, a: IterSum, b: E.PrimExpr) -> IterSum:
    if is_const_int(b, 1):
        return a
    if _counts_down(a) and not detector.divides_all(b, a):
        return _floordiv(detector, _counted_up(detector, a, b), b).times(
            integer(-1, b.dtype), multiply
        )
    fused = detector.fused_dividend(a) if a.terms else a
    if not a.terms or detector.divides_all(b, fused):
        return fused.map(lambda number: detector.quotient(number, b))
    split, base, divisor, _ = detector.dividend(fused, b)
    padded, left = detector.padding.pad(split, base, divisor, wrap=False)
    digit = IterSplit(
        padded.source,
        detector.simple(multiply(padded.lower_factor, divisor)),
        detector.quotient(padded.extent, divisor),
    )
    rest = detector.quotient(subtract(base, left), divisor)
    return iter_sum({digit: integer(1, rest.dtype)}, rest)


def _floormod(detector: _Detector, a: IterSum, b: E.PrimExpr) -> IterSum:
    zero = integer(0, b.dtype)
    if is_const_int(b, 1):
        return iter_sum({}, zero)
    if _counts_down(a) and not detector.divides_terms(b, a):
        remainder = _floormod(detector, _counted_up(detector, a, b), b)
        last = detector.simple(subtract(b, integer(1, b.dtype)))
        return detector.plus(last, remainder, -1)
    fused = detector.fused_dividend(a) if a.terms else a
    if detector.divides_terms(b, fused):
        return iter_sum({}, detector.simple(floormod(fused.constant, b)))
    split, base, divisor, scale = detector.dividend(fused, b)
    padded, _ = detector.padding.pad(split, base, divisor, wrap=True)
    return iter_sum({IterSplit(padded.source, padded.lower_factor, divisor): scale}, zero)


def _counts_down(value: IterSum) -> bool:
    for scale in value.terms.values():
        if not isinstance(scale, E.IntImm) or scale.value >= 0:
            return False
    return bool(value.terms)


def _counted_up(detector: _Detector, value: IterSum, divisor: E.PrimExpr) -> IterSum:
    """divisor - 1 - value: its quotient is that of `value` with the other sign, and both remainders
    add up to divisor - 1."""
    if not detector.analyzer.can_prove(divisor > 0):
        raise NotAffine(f"an iterator that counts down is divided by {divisor!r}")
    one = integer(1, divisor.dtype)
    up = value.times(integer(-1, value.dtype), multiply)
    return up.with_constant(detector.simple(add(up.constant, subtract(divisor, one))))


_RULES: dict[type, Callable[[_Detector, Any], Value]] = {
    E.Var: _variable,
    E.IntImm: lambda detector, constant: constant,
    E.Add: _add,
    E.Sub: _add,
    E.Mul: _multiply,
    E.Cast: _cast,
    E.FloorDiv: _division(_floordiv),
    E.FloorMod: _division(_floormod),
}
