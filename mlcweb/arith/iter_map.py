"""Detection of iterator maps: are indices affine, independent functions of loop iterators?

Each index is turned into a sum of splits of iterators, then into one split of one (fused) iterator;
the indices are independent when no digit of an iterator is used twice. After TVM's
`detect_iter_map`, whose names and texts are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.iter_arithmetic import NotAffine, add, multiply, subtract
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum, sum_to_expr
from mlcweb.arith.iter_fuse import Fuser
from mlcweb.arith.iter_independence import IndependenceCheck
from mlcweb.arith.iter_padding import Padding
from mlcweb.arith.iter_predicate import bounds_of_iterators, uses_any
from mlcweb.arith.rules_integer import quotient_of_product
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast, convert, is_const_int, maximum, minimum, negate
from mlcweb.tir.buffer import Range
from mlcweb.tir.folding import floordiv, floormod, integer

BIJECTIVE, SURJECTIVE, NO_CHECK = "bijective", "surjective", "none"


@dataclass(eq=False, slots=True)
class IterMapResult:
    """`indices`, one for each index given, or None and the reasons in `errors`.

    `padded` says that an iterator had to be rounded up to a multiple of a divisor.
    """

    indices: list[IterSum] | None
    errors: list[str] = field(default_factory=list)
    padded: bool = False


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
    "bijective": besides, every iterator of `input_iters` is used, and used once; "none": the
    indices need not be independent.
    """
    analyzer = analyzer or analyzer_of(input_iters)
    try:
        detector = _Detector(analyzer, input_iters, check_level, simplify_trivial_iterators)
        detector.add_constraints(convert(predicate))
        found = detector.detect(indices)
    except NotAffine as reason:
        return IterMapResult(None, [str(reason)])
    return IterMapResult(found, padded=bool(detector.padding.padded))


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
    unconditional = predicate is True or is_const_int(predicate, 1)
    if result.indices is None and not unconditional and check_level != BIJECTIVE:
        result = detect_iter_map(indices, input_iters, True, *options)
    if result.indices is None:
        return list(indices)
    return [sum_to_expr(index, analyzer) for index in result.indices]


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
        for variable, domain in input_iters.items():
            self._add_iterator(variable, domain)

    def _add_iterator(self, variable: E.Var, domain: Range) -> None:
        low, extent = cast(variable.dtype, domain.min), cast(variable.dtype, domain.extent)
        self.domains[variable] = domain = Range(low, extent)
        if self.simplify_trivial_iterators and is_const_int(domain.extent, 1):
            self.sums[variable] = IterSum((), domain.min)
            return
        mark = IterMark(subtract(variable, domain.min), domain.extent)
        self.input_marks[variable] = mark
        self.sums[variable] = IterSum((IterSplit.whole(mark),), domain.min)

    def add_constraints(self, predicate: E.PrimExpr) -> None:
        """Understand the predicate as bounds of iterators and of sums of iterators."""
        bounds = bounds_of_iterators(predicate, self.input_iters)
        for bound in bounds:
            if isinstance(bound.value, E.Var):
                self._shorten(bound.value, bound.lower, bound.upper)
        for bound in bounds:
            value = self.value(bound.value)
            if isinstance(value, IterSum) and not isinstance(bound.value, E.Var):
                self.fuser.constrain(value, bound.lower, bound.upper)

    def _shorten(self, variable: E.Var, lower: E.PrimExpr | None, upper: E.PrimExpr | None) -> None:
        """Keep only the iterations of one loop that the predicate admits."""
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

    def detect(self, indices: Sequence[E.PrimExpr]) -> list[IterSum]:
        """The sums of all indices, checked."""
        found = [self._index(index) for index in indices]
        if self.padding.padded:
            # What divides an iterator is known only now; all uses share one padded iterator.
            found = [self._index(index) for index in indices]
        if self.check_level != NO_CHECK:
            check = IndependenceCheck(self.analyzer, self.padding, self.check_level == BIJECTIVE)
            check.check(found, self.input_marks.values())
        return found

    def _index(self, index: E.PrimExpr) -> IterSum:
        value = self.value(index)
        if not isinstance(value, IterSum):
            return IterSum((), value)
        return self.fuse(value)

    def value(self, expression: E.PrimExpr) -> Value:
        """An expression as a sum of splits; expressions without iterators as they are."""
        rule = _RULES.get(type(expression))
        if rule is not None:
            return rule(self, expression)
        if uses_any(expression, self.input_iters):
            raise NotAffine(f"{type(expression).__name__} is not affine in the loop iterators")
        return expression

    def as_sum(self, value: Value) -> IterSum:
        return value if isinstance(value, IterSum) else IterSum((), value)

    def plus(self, a: IterSum, b: IterSum, sign: int) -> IterSum:
        """a + b or a - b; equal digits are merged, or cancel."""
        args = list(a.args)
        for new in b.args:
            scale = new.scale if sign > 0 else negate(new.scale)
            for position, split in enumerate(args):
                if self.fuser.same_digit(split, new):
                    scale = self.simple(add(split.scale, scale))
                    if is_const_int(scale, 0):
                        del args[position]
                    else:
                        args[position] = split.with_scale(scale)
                    break
            else:
                args.append(new.with_scale(scale))
        base = add(a.base, b.base) if sign > 0 else subtract(a.base, b.base)
        return IterSum(tuple(args), self.simple(base))

    def times(self, a: IterSum, factor: E.PrimExpr) -> IterSum:
        args = tuple(s.with_scale(self.simple(multiply(s.scale, factor))) for s in a.args)
        if is_const_int(factor, 0):
            args = ()
        return IterSum(args, self.simple(multiply(a.base, factor)))

    def simple(self, expression: E.PrimExpr) -> E.PrimExpr:
        if isinstance(expression, (E.IntImm, E.Var)):
            return expression
        return self.analyzer.simplify(expression)

    def divides(self, divisor: E.PrimExpr, value: E.PrimExpr) -> bool:
        """Whether `value` is always a multiple of `divisor`."""
        return self.analyzer.can_prove_multiple(value, divisor)

    def quotient(self, value: E.PrimExpr, divisor: E.PrimExpr) -> E.PrimExpr:
        if not isinstance(value, E.IntImm):
            exact = quotient_of_product(value, divisor)
            if exact is not None:
                return self.simple(exact)
        return self.simple(floordiv(value, divisor))

    def combine_digits(self, value: IterSum) -> IterSum:
        """Neighbouring digits of one iterator as one: i // 8 * 2 + i // 4 % 2 is i // 4."""
        if len(value.args) < 2:
            return value
        args = list(value.args)
        position = 0
        while position < len(args):
            high = args[position]
            for other, low in enumerate(args):
                if low.source is high.source and self._are_neighbours(high, low):
                    extent = self.simple(multiply(high.extent, low.extent))
                    args[position] = IterSplit(low.source, low.lower_factor, extent, low.scale)
                    del args[other]
                    position = -1
                    break
            position += 1
        return value if len(args) == len(value.args) else IterSum(tuple(args), value.base)

    def _are_neighbours(self, high: IterSplit, low: IterSplit) -> bool:
        equal = self.analyzer.can_prove_equal
        return (
            high is not low
            and equal(high.lower_factor, multiply(low.lower_factor, low.extent))
            and equal(high.scale, multiply(low.scale, low.extent))
        )

    def fuse(self, value: IterSum) -> IterSum:
        """The value as one split of one iterator, plus a base."""
        return self.fuser.fuse(self.combine_digits(value))

    def fused_dividend(self, value: IterSum) -> IterSum:
        """The same of a dividend: a digit of one iterator may be taken whatever bounds it."""
        return value if len(value.args) == 1 else self.fuse(value)

    def dividend(
        self, a: IterSum, divisor: E.PrimExpr
    ) -> tuple[IterSplit, E.PrimExpr, E.PrimExpr, E.PrimExpr]:
        """(split, base, divisor, common scale): the fused dividend with its scale taken out."""
        fused = self.fused_dividend(a)
        split, base = fused.args[0], fused.base
        scale = split.scale
        if is_const_int(scale, 1):
            return split, base, divisor, scale
        if not (self.divides(scale, divisor) and self.divides(scale, base)):
            raise NotAffine(f"an iterator scaled by {scale!r} is divided by {divisor!r}")
        one = integer(1, scale.dtype)
        inner = split.with_scale(one)
        return inner, self.quotient(base, scale), self.quotient(divisor, scale), scale


def _variable(detector: _Detector, variable: E.Var) -> Value:
    return detector.sums.get(variable, variable)


def _add(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(a, IterSum) or isinstance(b, IterSum):
        return detector.plus(detector.as_sum(a), detector.as_sum(b), 1)
    return expression


def _subtract(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(a, IterSum) or isinstance(b, IterSum):
        return detector.plus(detector.as_sum(a), detector.as_sum(b), -1)
    return expression


def _multiply(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(b, IterSum):
        a, b = b, a
    if isinstance(b, IterSum):
        raise NotAffine(f"a product of two iterators: {expression!r}")
    return detector.times(a, b) if isinstance(a, IterSum) else expression


def _floordiv(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(b, IterSum):
        raise NotAffine(f"a division by an iterator: {expression!r}")
    if not isinstance(a, IterSum):
        return expression
    if is_const_int(b, 1):
        return a
    if not a.args:
        return IterSum((), detector.quotient(a.base, b))
    fused = detector.fused_dividend(a)
    split, base = fused.args[0], fused.base
    if detector.divides(b, split.scale) and detector.divides(b, base):
        scale = detector.quotient(split.scale, b)
        return IterSum((split.with_scale(scale),), detector.quotient(base, b))
    split, base, divisor, _ = detector.dividend(a, b)
    padded, left = detector.padding.pad(split, base, divisor, wrap=False)
    digit = IterSplit(
        padded.source,
        detector.simple(multiply(padded.lower_factor, divisor)),
        detector.quotient(padded.extent, divisor),
        padded.scale,
    )
    return IterSum((digit,), detector.quotient(subtract(base, left), divisor))


def _floormod(detector: _Detector, expression: Any) -> Value:
    a, b = detector.value(expression.a), detector.value(expression.b)
    if isinstance(b, IterSum):
        raise NotAffine(f"a remainder of an iterator: {expression!r}")
    if not isinstance(a, IterSum):
        return expression
    zero = integer(0, b.dtype)
    if is_const_int(b, 1):
        return IterSum((), zero)
    if not a.args:
        return IterSum((), detector.simple(floormod(a.base, b)))
    fused = detector.fused_dividend(a)
    if detector.divides(b, fused.args[0].scale):
        return IterSum((), detector.simple(floormod(fused.base, b)))
    split, base, divisor, scale = detector.dividend(a, b)
    padded, _ = detector.padding.pad(split, base, divisor, wrap=True)
    digit = IterSplit(padded.source, padded.lower_factor, divisor, scale)
    return IterSum((digit,), zero)


_RULES: dict[type, Callable[[_Detector, Any], Value]] = {
    E.Var: _variable,
    E.IntImm: lambda detector, constant: constant,
    E.Add: _add,
    E.Sub: _subtract,
    E.Mul: _multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
}
