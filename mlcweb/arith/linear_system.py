"""Whether linear constraints of integer variables have a solution.

Dependence tests ask this: do two iterations exist that touch one element? Bounds are propagated
through the constraints, and where that decides nothing, a domain is halved and both halves are
tried, up to a limit. The answer None is sure; a solution may be one that was only not ruled out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd, inf

from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import is_index_type
from mlcweb.arith.linear import LinearForm
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import find_nodes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.substitute import reads_memory, variables_in

MAX_HALVINGS = 100
"""How often domains are halved before a system counts as solvable."""
MAX_SWEEPS = 30
"""How often bounds are propagated before a domain is halved."""

Bound = tuple[float, float]


Form = LinearForm[int, int]
"""A sum of scaled variables, which are numbered, and a constant."""
Values = Mapping[E.Var, Form]


class LinearSystem:
    """Integer variables with bounds, and constraints `low <= form <= high`. `constant` says of a
    buffer whether its elements stay as they are."""

    def __init__(self, constant: Callable[[Buffer], bool] | None = None) -> None:
        self.constant = constant
        self.bounds: list[Bound] = []
        self.constraints: list[tuple[Form, Bound]] = []
        self._quotients: dict[tuple[frozenset[tuple[int, int]], int, int], Form] = {}
        self._remainders: dict[tuple[frozenset[tuple[int, int]], int], tuple[Form, int]] = {}
        self._symbols: list[tuple[E.PrimExpr, Form]] = []

    def variable(self, low: float = -inf, high: float = inf) -> Form:
        """A new variable."""
        self.bounds.append((low, high))
        return _form({len(self.bounds) - 1: 1}, 0)

    def digits(self, low: float, high: float, units: Sequence[int]) -> dict[int, Form]:
        """The digits of a new number, as variables, by what they count: 1 and `digit_units`."""
        digits: dict[int, Form] = {}
        for unit, above in zip((1, *units), (*units, 0), strict=True):
            ends = (0, above // unit - 1) if above else (_floor(low, unit), _floor(high, unit))
            digits[unit] = self.variable(*ends)
        total = number(digits)
        if _limits(total, self.bounds) != (low, high):
            self.require(total, low, high)
        return digits

    def name(self, variable: E.Var, low: float, high: float) -> None:
        """Say in which bounds a variable of the program is that has the same value everywhere."""
        self._symbols.append((variable, self.variable(low, high)))

    def require(self, form: Form, low: float, high: float) -> None:
        """Add a constraint."""
        if len(form.terms) == 1:
            ((variable, scale),) = form.terms.items()
            first, last = _divided(low - form.constant, high - form.constant, scale)
            before = self.bounds[variable]
            self.bounds[variable] = (max(before[0], first), min(before[1], last))
        else:
            self.constraints.append((form, (low, high)))

    def require_condition(self, condition: E.PrimExpr, values: Values) -> None:
        """Add a comparison; of other conditions nothing is known."""
        limits = _COMPARISONS.get(type(condition))
        if limits is not None:
            form = self.form(condition.a, values).plus(self.form(condition.b, values), -1)  # type: ignore[attr-defined]
            self.require(form, *limits)

    def form(self, expression: E.PrimExpr, values: Values) -> Form:
        """An expression as a form, with the `values` of variables. What is not linear becomes a
        variable; of it, and of variables without a value, the same expression is the same."""
        cls = type(expression)
        if cls is E.Var:
            form = values.get(expression)  # type: ignore[call-overload]
            return self._symbol(expression) if form is None else form
        if isinstance(expression, E.IntImm):
            return _form({}, expression.value)
        linear = is_index_type(expression.dtype)
        if linear and isinstance(expression, (E.Add, E.Sub)):
            sign = 1 if cls is E.Add else -1
            return self.form(expression.a, values).plus(self.form(expression.b, values), sign)
        if linear and isinstance(expression, (E.Mul, E.FloorDiv, E.FloorMod)):
            a, b = self.form(expression.a, values), self.form(expression.b, values)
            if cls is E.Mul and not (a.terms and b.terms):
                return a.times(b.constant) if a.terms else b.times(a.constant)
            if cls is not E.Mul and not b.terms and b.constant > 0:
                divide = self._quotient if cls is E.FloorDiv else self._remainder
                return divide(a, b.constant)
        if isinstance(expression, E.Cast) and _is_wider(expression):
            return self.form(expression.value, values)
        moves = any(variable in values for variable in variables_in(expression))
        return (
            self.variable()
            if moves or reads_memory(expression, self.constant)
            else self._symbol(expression)
        )

    def _quotient(self, form: Form, divisor: int) -> Form:
        whole, rest = form.separate(divisor)
        low, high = _limits(rest, self.bounds)
        if _floor(low, divisor) == _floor(high, divisor):
            return whole.with_constant(whole.constant + int(low) // divisor)
        key = (frozenset(form.terms.items()), form.constant, divisor)
        if key not in self._quotients:
            dividend, modulus = self._remainders.get(key[:2], (form, 0))
            if modulus and modulus % divisor == 0:
                # A digit, x % m // d, is x // d - x // m * (m // d), exactly.
                digits = modulus // divisor
                whole = self._quotient(dividend, modulus)
                quotient = self._quotient(dividend, divisor).plus(whole, -digits)
                self.require(quotient, 0, digits - 1)
            else:
                low, high = _limits(form, self.bounds)
                quotient = self.variable(_floor(low, divisor), _floor(high, divisor))
                self.require(form.plus(quotient, -divisor), 0, divisor - 1)
            self._quotients[key] = quotient
        return self._quotients[key]

    def _remainder(self, form: Form, divisor: int) -> Form:
        quotient = self._quotient(form, divisor)
        remainder = form.plus(quotient, -divisor)
        if quotient.terms or quotient.constant:  # else it is the form itself
            self._remainders[frozenset(remainder.terms.items()), remainder.constant] = form, divisor
        return remainder

    def _symbol(self, expression: E.PrimExpr) -> Form:
        for symbol, form in self._symbols:
            if same_expression(symbol, expression):
                return form
        form = self.variable()
        self._symbols.append((expression, form))
        return form

    def eliminate(self, kept: set[int]) -> None:
        """Solve equations for variables that are not `kept`."""
        position = 0
        while position < len(self.constraints):
            form, (low, high) = self.constraints[position]
            position += 1
            unit = [v for v, scale in form.terms.items() if abs(scale) == 1 and v not in kept]
            if low != high or not unit:
                continue
            variable = unit[0]
            scale = form.terms[variable]
            value = form.without(variable).times(-scale).plus(_form({}, int(low) * scale))
            del self.constraints[position - 1]
            pending, self.constraints = self.constraints, []
            for other, bound in pending:
                factor = other.terms.get(variable, 0)
                if factor:
                    other = other.without(variable).plus(value, factor)
                self._keep(other, bound)
            self._keep(value, self.bounds[variable])
            self.bounds[variable] = (0, 0)
            position = 0

    def _keep(self, form: Form, bound: Bound) -> None:
        if form.terms:
            self.require(form, *bound)
        elif not bound[0] <= form.constant <= bound[1]:
            self.constraints.append((form, bound))

    def solution(self, limits: Mapping[int, Bound] | None = None) -> list[Bound] | None:
        """What is left of the variables' bounds, which `limits` narrow, in a solution; None where
        there is none."""
        bounds = list(self.bounds)
        for variable, (low, high) in (limits or {}).items():
            bounds[variable] = (max(bounds[variable][0], low), min(bounds[variable][1], high))
        pending, halvings = [bounds], 0
        while pending:
            bounds = pending.pop()
            if not self.propagate(bounds):
                continue
            finite = [
                (high - low, variable)
                for variable, (low, high) in enumerate(bounds)
                if low < high and high - low < inf and self._occurs(variable)
            ]
            if not finite or halvings == MAX_HALVINGS:
                return bounds
            halvings += 1
            _, variable = min(finite)
            low, high = bounds[variable]
            middle = (low + high) // 2
            for half in ((middle + 1, high), (low, middle)):
                pending.append([*bounds[:variable], half, *bounds[variable + 1 :]])
        return None

    def is_sure(self, solution: list[Bound]) -> bool:
        """Whether what is left of the bounds is known to hold a solution."""
        return all(
            low == high or (high - low < inf and not self._occurs(variable))
            for variable, (low, high) in enumerate(solution)
        )

    def _occurs(self, variable: int) -> bool:
        return any(variable in form.terms for form, _ in self.constraints)

    def propagate(self, bounds: list[Bound]) -> bool:
        """Narrow bounds by the constraints; False where nothing is left."""
        if any(low > high for low, high in bounds):
            return False
        for _ in range(MAX_SWEEPS):
            changed = False
            for form, bound in self.constraints:
                narrowed = _narrow(form, bound, bounds)
                if narrowed is None:
                    return False
                changed |= narrowed
            if not changed:
                break
        return True


def number(digits: Mapping[int, Form]) -> Form:
    """The number that digits are, by what they count."""
    total = _form({}, 0)
    for unit, digit in digits.items():
        total = total.plus(digit, unit)
    return total


def digit_units(expressions: Iterable[Node]) -> dict[E.Var, list[int]]:
    """What the digits of variables count that quotients and remainders take of them, but for the
    ones, in order: 4 and 32 where `v // 4` and `v % 32` occur. Each is a multiple of the one
    before."""
    divisors_of: dict[E.Var, set[int]] = {}
    for expression in expressions:
        if type(expression) is E.Var:
            continue
        for node in find_nodes(expression, E.FloorDiv, E.FloorMod):
            if isinstance(node.b, E.IntImm):
                variable, unit = _digit(node.a)
                if variable is not None and node.b.value > 1:
                    divisors_of.setdefault(variable, set()).add(unit * node.b.value)
    units: dict[E.Var, list[int]] = {}
    for variable, divisors in divisors_of.items():
        chain = units[variable] = []
        for divisor in sorted(divisors):
            if not chain or divisor % chain[-1] == 0:
                chain.append(divisor)
    return units


def _digit(expression: E.PrimExpr) -> tuple[E.Var | None, int]:
    """The variable that an expression is a digit of, and what the digit counts."""
    unit = 1
    while isinstance(expression, (E.FloorDiv, E.FloorMod)):
        if not isinstance(expression.b, E.IntImm) or expression.b.value < 1:
            return None, unit
        if isinstance(expression, E.FloorDiv):
            unit *= expression.b.value
        expression = expression.a
    return (expression if isinstance(expression, E.Var) else None), unit


def constant_ends(domain: Range) -> Bound:
    """The least and the greatest value in a domain, as far as they are constant."""
    low, extent = constant_value(domain.min), constant_value(domain.extent)
    if not isinstance(low, int) or not isinstance(extent, int):
        return (low if isinstance(low, int) else -inf), inf
    return low, low + extent - 1


def _form(terms: dict[int, int], constant: int) -> Form:
    return LinearForm(terms, constant, "int64")


def _narrow(form: Form, bound: Bound, bounds: list[Bound]) -> bool | None:
    """Narrow the bounds of a constraint's variables: whether some changed; None where it cannot
    hold."""
    low, high = _limits(form, bounds)
    if low > bound[1] or high < bound[0]:
        return None
    if low >= bound[0] and high <= bound[1]:
        return False
    step = gcd(*form.terms.values())
    if bound[1] < inf and (bound[1] - form.constant) // step * step + form.constant < bound[0]:
        return None
    changed = False
    for variable, scale in form.terms.items():
        own = bounds[variable]
        ends = _scaled(own, scale)
        if low > -inf and high < inf:
            rest = low - ends[0], high - ends[1]
        else:
            rest = _limits(form, bounds, variable)
        least, most = bound[0] - rest[1], bound[1] - rest[0]
        if least <= ends[0] and most >= ends[1]:
            continue
        first, last = _divided(least, most, scale)
        new = (max(own[0], first), min(own[1], last))
        if new[0] > new[1]:
            return None
        if new != own:
            changed = True
            bounds[variable] = new
            ends = _scaled(new, scale)
            low, high = rest[0] + ends[0], rest[1] + ends[1]
    return changed


def _scaled(bound: Bound, scale: int) -> Bound:
    low, high = bound
    return (low * scale, high * scale) if scale > 0 else (high * scale, low * scale)


def _limits(form: Form, bounds: list[Bound], without: int = -1) -> Bound:
    low: float = form.constant
    high: float = form.constant
    for variable, scale in form.terms.items():
        if variable == without:
            continue
        first, last = bounds[variable]
        if scale < 0:
            first, last = last, first
        low += first * scale
        high += last * scale
    return low, high


def _divided(low: float, high: float, scale: int) -> Bound:
    """The values that times `scale` lie between two bounds."""
    if scale < 0:
        low, high, scale = -high, -low, -scale
    return -_floor(-low, scale), _floor(high, scale)


def _floor(value: float, divisor: int) -> float:
    return value if value in (inf, -inf) else value // divisor


def _is_wider(cast: E.Cast) -> bool:
    return cast.dtype in ("int32", "int64") and cast.value.dtype in ("int8", "int16", "int32")


_COMPARISONS: dict[type, Bound] = {
    E.LT: (-inf, -1), E.LE: (-inf, 0), E.GT: (1, inf), E.GE: (0, inf), E.EQ: (0, 0),
}  # fmt: skip
