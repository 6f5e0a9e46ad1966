"""The analyzer: what is known of variables, and the questions that can be answered from it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import Flag, IntEnum
from functools import reduce
from math import inf
from typing import Any

from mlcweb.arith import bounds, canonical, modular, rewrite
from mlcweb.arith.digits import Sum
from mlcweb.arith.equality import Interning, same_expression
from mlcweb.arith.int_set import (
    Domains,
    IntervalSet,
    IntSet,
    eval_set,
    is_infinite,
    plain_sets,
    upper_limits,
)
from mlcweb.arith.interval import ConstIntBound, is_index_type
from mlcweb.arith.known import under_constraints, without_hint
from mlcweb.arith.modular import ModularSet
from mlcweb.arith.rules_comparison import TRUE, negation
from mlcweb.arith.rules_integer import quotient_of_product
from mlcweb.arith.rules_logic import bound_by_constant
from mlcweb.ir.errors import TOO_DEEP, TVMError, nests_too_deep
from mlcweb.ir.node import Node
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import (
    const,
    convert,
    equal,
    floormod,
    greater_equal,
    is_const_int,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    subtract,
)
from mlcweb.tir.buffer import Range

_LEAVES = (E.Var, E.IntImm, E.FloatImm, E.StringImm)


class ProofStrength(IntEnum):
    """How hard a proof is tried. The analyzer always does what it can."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Extension(Flag):
    """What TVM's simplifier does where it is asked to. Each is done only then."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


class CompareResult(IntEnum):
    """What is known of how two values compare, with TVM's numbers."""

    INCONSISTENT = 0
    EQ = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    NE = 6
    UNKNOWN = 7


class Analyzer:
    """Simplifies and proves, given the domains of variables.

    `domains` maps variables to ranges. Variables that are not bound may have any value of their
    type. The only state is what is bound, and caches of answers.
    """

    def __init__(self, domains: Mapping[E.Var, Range] | None = None) -> None:
        self._extensions = Extension.NoExtensions
        self.chains_inequalities = False
        """Whether a < b and b < c is to prove a < c."""
        self.applies_branches = False
        """Whether each side of `and` is simplified knowing that the other holds; of `or`, that the
        other does not."""
        self.compares_products = False
        """Whether the bounds of x and y are to tell how x * y compares with multiples of x + y."""
        self.interned = Interning()
        self.bound_of_variable: dict[E.Var, ConstIntBound] = {}
        self.modular_set_of_variable: dict[E.Var, ModularSet] = {}
        self.symbolic_domains: dict[E.Var, Range] = {}
        self._value_of_variable: dict[E.Var, E.PrimExpr] = {}
        self.constraints: list[E.PrimExpr] = []
        self._known_bounds: list[tuple[E.PrimExpr, ConstIntBound]] = []
        self._forget()
        for variable, domain in (domains or {}).items():
            self.bind(variable, domain)

    def _forget(self) -> None:
        # A rule may ask for what its node's operands have been asked for already (the difference of
        # those of a minimum, say), so that without answers kept for each node a nest takes twice as
        # long with every level.
        self._bounds: dict[Node, ConstIntBound] = {}
        self._modular_sets: dict[Node, ModularSet] = {}
        self._simplified: dict[Node, E.PrimExpr] = {}
        self.rewritten: dict[Node, E.PrimExpr] = {}
        self.canonical_values: dict[Node, canonical.Value] = {}

    def bind(
        self,
        var: E.Var,
        expr: Range | ConstIntBound | E.PrimExpr | int,
        allow_override: bool = True,
    ) -> None:
        """Say what a variable is: a range, constant bounds, or the same as an expression.

        A variable whose range has one value stands for that value. What was said before is
        forgotten; what follows from other variables follows them when they are bound anew.
        """
        point = expr.min if isinstance(expr, Range) and is_const_int(expr.extent, 1) else expr
        value = None if isinstance(point, (Range, ConstIntBound)) else convert(point)
        if value is not None and type(value) is not E.IntImm:
            value = self.simplify(value)
        for facts in (self.bound_of_variable, self.symbolic_domains, self._value_of_variable):
            facts.pop(var, None)
        if value is not None:
            self._value_of_variable[var] = value
        elif isinstance(expr, ConstIntBound):
            self.bound_of_variable[var] = expr
        elif isinstance(expr, Range):
            low, extent = expr.min, expr.extent
            if isinstance(low, E.IntImm) and isinstance(extent, E.IntImm):
                self.bound_of_variable[var] = ConstIntBound(low.value, low.value + extent.value - 1)
            else:
                self.symbolic_domains[var] = expr
        if self._bounds or self._modular_sets or self.rewritten or self.canonical_values:
            self._forget()

    def update(self, var: E.Var, info: ConstIntBound | ModularSet, override: bool = False) -> None:
        """Say between which values a variable lies, or which remainders it has."""
        if isinstance(info, ModularSet):
            self.modular_set_of_variable[var] = info
        else:
            is_bound = not override and self.const_int_bound_is_bound(var)
            old = self.const_int_bound(var) if is_bound else info
            self.bound_of_variable[var] = info.intersect(old)
        self._forget()

    def constraint_scope(self, constraint: E.PrimExpr | bool) -> AbstractContextManager[None]:
        """`constraint` under TVM's name."""
        return self.constraint(constraint)

    def clone(self) -> Analyzer:
        """An analyzer that knows the same, and learns by itself from here on."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (dict, list)):
                setattr(other, name, value.copy())
        other._forget()
        return other

    @contextmanager
    def constraint(self, condition: E.PrimExpr | bool) -> Iterator[None]:
        """While active, `condition` is taken to hold."""
        assumptions = self.constraints, self._known_bounds
        answers = self._bounds, self._modular_sets, self._simplified
        forms = self.rewritten, self.canonical_values
        parts = [
            part
            for conjunct in conjuncts(convert(condition))
            for part in conjuncts(self.rewrite(without_hint(conjunct)))
        ]
        self.constraints, self._known_bounds = list(assumptions[0]), list(assumptions[1])
        remainders = self.modular_set_of_variable
        self.modular_set_of_variable = dict(remainders)
        self._forget()
        for part in parts:
            self._assume(part)
        try:
            yield
        finally:
            self.constraints, self._known_bounds = assumptions
            self.modular_set_of_variable = remainders
            self._bounds, self._modular_sets, self._simplified = answers
            self.rewritten, self.canonical_values = forms

    def _assume(self, condition: E.PrimExpr) -> None:
        self.constraints.append(condition)
        match condition:
            case E.EQ(
                E.FloorMod(E.Var() as variable, E.IntImm(value=divisor))
                | E.Mod(E.Var() as variable, E.IntImm(value=divisor)),
                E.IntImm(value=remainder),
            ):
                before = self.modular_set_of_variable.get(variable, modular.ANY_INTEGER)
                both = modular.intersection(before, modular.modular_set(divisor, remainder))
                if both is not None:
                    self.modular_set_of_variable[variable] = both
        bound = bound_by_constant(condition)
        if bound is not None:
            self._known_bounds.append(bound)

    def const_int_bound_is_bound(self, var: E.Var) -> bool:
        """Whether it has been said between which values a variable lies."""
        facts = self.bound_of_variable, self.symbolic_domains, self._value_of_variable
        return any(var in of_variable for of_variable in facts)

    def const_int_bound(self, expr: E.PrimExpr) -> ConstIntBound:
        """The least and greatest value of an integer expression."""
        if isinstance(expr, E.IntImm):
            return ConstIntBound(expr.value, expr.value)
        cached = self._bounds.get(expr)
        if cached is not None:
            return cached
        if type(expr) is E.Var:  # Where its bounds depend on itself, they are those of its type.
            self._bounds[expr] = bounds.bound_of_type(expr.dtype)
        try:
            bound = bounds.compute_bound(expr, self)
        except TOO_DEEP:
            raise nests_too_deep("analyzed") from None
        for constrained, limit in self._known_bounds:
            if same_expression(constrained, expr):
                bound = bound.intersect(limit)
        self._bounds[expr] = bound
        return bound

    def modular_set(self, expr: E.PrimExpr) -> ModularSet:
        """What is known of the remainders of an integer expression."""
        cached = self._modular_sets.get(expr)
        if cached is None:
            if type(expr) is E.Var:
                self._modular_sets[expr] = modular.ANY_INTEGER
            try:
                cached = self._modular_sets[expr] = modular.compute_modular_set(expr, self)
            except TOO_DEEP:
                raise nests_too_deep("analyzed") from None
        return cached

    def int_set(self, expr: E.PrimExpr, dom_map: Domains | None = None) -> IntervalSet:
        """An interval that holds an expression while the variables of `dom_map`, or all that are
        bound, run through their sets."""
        if dom_map is None:
            bounds = {
                variable: self.const_int_bound(variable)
                for variable in (*self.bound_of_variable, *self._value_of_variable)
            }
            dom_map = {
                variable: IntSet(*(const(int(end)) if abs(end) < inf else None for end in ends))
                for variable, ends in bounds.items()
            }
            dom_map = {**dom_map, **self.symbolic_domains}
        return IntervalSet(*eval_set(convert(expr), plain_sets(dom_map), self))

    def value_of(self, variable: E.Var) -> E.PrimExpr:
        """The expression that a variable stands for, or the variable."""
        return self._value_of_variable.get(variable, variable)

    @property
    def enabled_extensions(self) -> Extension:
        """What is done beyond the usual."""
        return self._extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: Extension) -> None:
        self._extensions = flags
        self.chains_inequalities = bool(flags & Extension.TransitivelyProveInequalities)
        self.applies_branches = bool(flags & Extension.ApplyConstraintsToBooleanBranches)
        self.compares_products = bool(flags & Extension.ComparisonOfProductAndSum)
        self._forget()

    def known_value(self, variable: E.Var) -> E.PrimExpr:
        """`value_of`, or true or false where the constraints are about the variable itself."""
        value = self.value_of(variable)
        if value is variable and self.constraints and variable.dtype == "bool":
            return under_constraints(value, self)
        return value

    def simplify(self, expr: E.PrimExpr, steps: int = 2) -> E.PrimExpr:
        """The expression in its simplest form, as TVM writes it; itself where it is simple. `steps`
        is TVM's: the form is found in as many as it takes."""
        if isinstance(expr, E.EqualOp):
            expr = expr.asobject()
        if isinstance(expr, _LEAVES):
            value = self.known_value(expr) if isinstance(expr, E.Var) else expr
            return value if isinstance(value, _LEAVES) else self.simplify(value)
        cached = self._simplified.get(expr)
        if cached is None:
            try:
                cached = self._simplified[expr] = self._simplified_once_more(expr)
            except TOO_DEEP:
                raise nests_too_deep("simplified") from None
        return cached

    def _simplified_once_more(self, expression: E.PrimExpr) -> E.PrimExpr:
        # The local rules may destroy the canonical form, so that it comes first and last.
        first, finished = canonical.affine_form(expression, self)
        if same_expression(first, expression):
            first = expression
        if finished:
            return first
        rewritten = rewrite.rewrite(first, self)
        if rewritten is expression or isinstance(rewritten, _LEAVES):
            return rewritten
        last = canonical.canonical(rewritten, self)
        return expression if same_expression(last, expression) else last

    def rewrite(self, expression: E.PrimExpr) -> E.PrimExpr:
        """The expression after the local rules alone."""
        return rewrite.rewrite(expression, self)

    def canonical(self, expression: E.PrimExpr) -> E.PrimExpr:
        """The expression with its integer sums in canonical form."""
        return canonical.canonical(expression, self)

    def rewrite_simplify(self, expr: Any) -> E.PrimExpr:
        """`rewrite` under TVM's name, and in its form."""
        simple = self.rewrite(convert(expr))
        if simple.dtype == "bool" and self.enabled_extensions & Extension.ConvertBooleanToAndOfOrs:
            simple = self.rewrite(conjunction(_disjunctions(simple)))
        # Terms that constants have kept apart may cancel once those are moved.
        for _ in range(2):
            simple = self.rewrite(rewrite.WithConstantsLast().rewrite(simple))
        return rewrite.WithConstantsLast().rewrite(simple)

    def canonical_simplify(self, expr: Any) -> E.PrimExpr:
        """`canonical` under TVM's name; what merging digits makes is canonical, too."""
        simple = self.canonical(convert(expr))
        return simple if simple.dtype == "bool" else self.canonical(simple)

    def canonical_sum(self, expression: E.PrimExpr) -> Sum:
        """An integer expression as a canonical sum."""
        return canonical.canonical_sum(expression, self)

    def is_within(self, expression: E.PrimExpr, low: int, high: int) -> bool:
        """Whether low <= expression < high always holds, by constant bounds alone."""
        least, greatest = self.const_int_bound(expression)
        return low <= least and greatest < high

    def is_less(self, a: E.PrimExpr, b: E.PrimExpr) -> bool:
        """Whether a < b always holds; the ends of symbolic domains are used."""
        difference = self.canonical(subtract(a, b))
        if self.const_int_bound(difference).max_value < 0:
            return True
        limits = upper_limits(difference, self)
        if any(self.const_int_bound(limit).max_value < 0 for limit in limits):
            return True
        if isinstance(a, E.FloorDiv) and not isinstance(a.b, E.IntImm):
            # x // n < y is x < y * n where n is positive, and nothing is divided by 0.
            return self.const_int_bound(a.b).min_value >= 0 and self.is_less(a.a, b * a.b)
        return False

    def can_prove(
        self, expr: E.PrimExpr | bool, strength: ProofStrength = ProofStrength.SYMBOLIC_BOUND
    ) -> bool:
        """Whether a condition always holds. False means: not known to hold. Every `strength` does
        all that is known here."""
        if isinstance(expr, (bool, E.IntImm)):
            return bool(expr)
        if self._holds_by_bounds(expr):
            return True
        simple = self.simplify(expr)
        if isinstance(simple, E.IntImm):
            return bool(simple.value)
        return self._follows(simple)

    def _holds_by_bounds(self, condition: E.PrimExpr) -> bool:
        """Whether the constant bounds of its sides, which are quick to find, tell that a comparison
        holds."""
        cls = type(condition)
        if cls in (E.LT, E.LE):
            lower, upper = condition.a, condition.b  # type: ignore[attr-defined]
        elif cls in (E.GT, E.GE):
            lower, upper = condition.b, condition.a  # type: ignore[attr-defined]
        else:
            return False
        if not is_index_type(lower.dtype):
            return False
        _, greatest = self.const_int_bound(lower)
        least, _ = self.const_int_bound(upper)
        return greatest < least or (greatest == least < inf and cls in (E.LE, E.GE))

    def _follows(self, condition: E.PrimExpr) -> bool:
        if isinstance(condition, E.And):
            return self.can_prove(condition.a) and self.can_prove(condition.b)
        if isinstance(condition, E.Or):
            return self.can_prove(condition.a) or self.can_prove(condition.b)
        if any(same_expression(condition, constraint) for constraint in self.constraints):
            return True
        if isinstance(condition, E.LT):
            return self.is_less(condition.a, condition.b)
        if isinstance(condition, E.LE):
            return self.is_less(condition.a, condition.b + 1)
        return False

    @property
    def is_z3_enabled(self) -> bool:
        """Whether Z3 helps to prove: it does not."""
        return False

    def get_smtlib2(self, expr: E.PrimExpr | None = None) -> str:
        """What Z3 would be asked; there is no Z3."""
        raise _no_z3("get_smtlib2")

    def get_z3_stats(self) -> str:
        """What Z3 has done; there is no Z3."""
        raise _no_z3("get_z3_stats")

    def set_z3_timeout_ms(self, timeout_ms: int) -> None:
        """How long Z3 may take; there is no Z3."""
        raise _no_z3("set_z3_timeout_ms")

    def set_z3_rlimit(self, rlimit: int) -> None:
        """How many steps Z3 may take; there is no Z3."""
        raise _no_z3("set_z3_rlimit")

    def can_disprove(self, condition: E.PrimExpr) -> bool:
        """Whether a condition never holds."""
        return self.can_prove(negation(condition))

    def can_prove_equal(self, lhs: E.PrimExpr | int, rhs: E.PrimExpr | int) -> bool:
        """Whether two integer expressions always have the same value."""
        if type(lhs) is E.IntImm and type(rhs) is E.IntImm:
            return lhs.value == rhs.value
        if is_infinite(lhs) or is_infinite(rhs):
            return lhs is rhs
        if lhs is rhs or self.can_prove(equal(lhs, rhs)):
            return True
        factor = _constant_factor(lhs)
        if factor is not None and factor == _constant_factor(rhs):
            return self.can_prove_equal(lhs.a, rhs.a)  # type: ignore[union-attr]
        # Only the terms of a difference have products in one order.
        products = _is_symbolic_product(lhs) and _is_symbolic_product(rhs)
        return products and is_const_int(self.simplify(subtract(lhs, rhs)), 0)

    def try_compare(
        self, lhs: E.PrimExpr | int, rhs: E.PrimExpr | int, propagate_inequalities: bool = True
    ) -> CompareResult:
        """The most that is known of how two integer expressions compare."""
        if self.can_prove_equal(lhs, rhs) or self.can_prove_equal(rhs, lhs):
            return CompareResult.EQ
        for holds, result in (
            (less(lhs, rhs), CompareResult.LT),
            (less(rhs, lhs), CompareResult.GT),
            (less_equal(lhs, rhs), CompareResult.LE),
            (less_equal(rhs, lhs), CompareResult.GE),
            (not_equal(lhs, rhs), CompareResult.NE),
        ):
            if self.can_prove(holds):
                return result
        return CompareResult.UNKNOWN

    def can_prove_multiple(self, expression: E.PrimExpr, divisor: E.PrimExpr) -> bool:
        """Whether a positive `divisor` always divides an expression; a common factor is enough."""
        if isinstance(expression, E.IntImm) and isinstance(divisor, E.IntImm):
            return divisor.value != 0 and expression.value % divisor.value == 0
        if quotient_of_product(expression, divisor) is not None:
            return True
        return self.can_prove(equal(floormod(expression, divisor), 0))

    def can_prove_less(self, expression: E.PrimExpr, upper: int) -> bool:
        """Whether expression < upper always holds."""
        if self.const_int_bound(expression).max_value < upper:
            return True
        return self.can_prove(less(expression, upper))

    def can_prove_greater_equal(self, expression: E.PrimExpr, lower: int) -> bool:
        """Whether expression >= lower always holds."""
        if self.const_int_bound(expression).min_value >= lower:
            return True
        return self.can_prove(greater_equal(expression, lower))


def _no_z3(method: str) -> TVMError:
    return TVMError(
        f"The analyzer proves without Z3, so that {method} has nothing to tell: ask is_z3_enabled "
        "before"
    )


def _is_symbolic_product(expression: E.PrimExpr | int) -> bool:
    return isinstance(expression, E.Mul) and not isinstance(expression.b, E.IntImm)


def _constant_factor(expression: E.PrimExpr | int) -> int | None:
    """The number that an expression multiplies another by, if it does."""
    if isinstance(expression, E.Mul) and isinstance(expression.b, E.IntImm):
        return expression.b.value or None
    return None


def conjuncts(condition: E.PrimExpr) -> Iterator[E.PrimExpr]:
    """The conditions that are joined by `and`, left to right."""
    pending = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, E.And):
            pending += (part.b, part.a)
        elif part is not TRUE:
            yield part


def _disjunctions(condition: E.PrimExpr) -> Iterator[E.PrimExpr]:
    """Conditions without `and`, which all hold where `condition` does."""
    for part in conjuncts(condition):
        if isinstance(part, E.Or):
            for a in _disjunctions(part.a):
                yield from (logical_or(a, b) for b in _disjunctions(part.b))
        else:
            yield part


def conjunction(conditions: Iterable[E.PrimExpr]) -> E.PrimExpr:
    """Conditions joined by `and`, left to right; true where there are none."""
    return reduce(logical_and, conditions, TRUE)


def const_int_bound(expression: Any, domains: Mapping[E.Var, Range]) -> ConstIntBound:
    """The least and greatest value of an expression over the domains of its variables."""
    return Analyzer(domains).const_int_bound(convert(expression))
