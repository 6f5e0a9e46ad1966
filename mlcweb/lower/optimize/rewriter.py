"""What the loop optimisations share: substituting variables while everything stays in simple form.

Indices are kept as normal sums, conditions and choices that are decided are folded away, loops of
one iteration and empty statements vanish. A pass overrides the handlers of what it transforms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_
from typing import Any

from mlcweb.arith.linear import LinearForm, accumulate
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.optimize.accesses import aliasing
from mlcweb.lower.optimize.indices import Indices, Sum
from mlcweb.lower.statement_simplifier import NOTHING, StatementSimplifier, in_sequence, is_nothing
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.contents import variables_used
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import OPERATORS, Family, keys, operator_name


class Rewriter(StatementSimplifier):
    """Rewrites a function. `values` says what variables stand for from here on. Attributes and
    assumptions have no use any more, and go."""

    keeps_threads = False

    def __init__(self, func: PrimFunc) -> None:
        self.indices = Indices()
        self.values: dict[E.Var, E.PrimExpr] = {}
        self.rewritten: dict[E.PrimExpr, E.PrimExpr] = {}
        self.function = func
        self.may_alias = aliasing(func)
        bind_ranges(func, self.indices)

    def run(self) -> PrimFunc:
        """The function with its body rewritten."""
        return self.function.with_body(self.rewrite(self.function.body))

    def with_values(self, node: Any, values: Mapping[E.Var, E.PrimExpr]) -> Any:
        before = self.values, self.rewritten
        self.values, self.rewritten = {**before[0], **values}, {}
        try:
            return self.rewrite(node)
        finally:
            self.values, self.rewritten = before

    # Expressions

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        return self.values.get(var, var)

    @on(E.IntImm, E.FloatImm, E.StringImm)
    def constant(self, value: E.PrimExpr) -> E.PrimExpr:
        return value

    @on(E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod)
    def arithmetic(self, expression: E.BinaryExpr) -> E.PrimExpr:
        if not dtypes.is_scalar_integer(expression.dtype):
            return expression.rewritten(self)
        if variables_used(expression).isdisjoint(self.values):
            return self.indices.normal(expression)
        return self.indices.expression(self.substituted(self.indices.sum_of(expression)))

    def substituted(self, total: Sum) -> Sum:
        """A sum with the variables in it replaced."""
        terms: dict[E.PrimExpr, int] = {}
        constant = total.constant
        for atom, scale in total.terms.items():
            if isinstance(atom, E.Var):
                value = self.values.get(atom)
                part = None if value is None else self.indices.sum_of(value)
            elif variables_used(atom).isdisjoint(self.values):
                part = None
            else:
                whole = isinstance(atom, (E.Mul, E.FloorDiv, E.FloorMod))
                new = self.rewrite_children(atom) if whole else self.rewrite(atom)
                part = self.indices.sum_of(new)
            if part is None:
                accumulate(terms, {atom: 1}, scale)
            else:
                constant += part.constant * scale
                accumulate(terms, part.terms, scale)
        return LinearForm(terms, constant, total.dtype)

    @on(E.Cast)
    def cast(self, expression: E.Cast) -> E.PrimExpr:
        value = self.rewrite(expression.value)
        if isinstance(value, (E.IntImm, E.FloatImm)):
            return arithmetic.cast(expression.dtype, value)
        return expression if value is expression.value else replace(expression, value=value)

    @on(*keys(Family.COMPARISON))
    def comparison(self, expression: E.ComparisonExpr) -> E.PrimExpr:
        new = self.rewrite_children(expression)
        if not dtypes.is_scalar_integer(new.a.dtype):
            return new
        decided = self.decide(new)
        return new if decided is None else E.IntImm("bool", int(decided))

    def decide(self, expression: E.ComparisonExpr) -> bool | None:
        """Whether a comparison of integers always or never holds; None where it depends."""
        a, b = self.indices.sum_of(expression.a), self.indices.sum_of(expression.b)
        if not (self.indices.is_exact(a) and self.indices.is_exact(b)):
            return None
        difference = a.plus(b, -1)
        if not self.indices.is_exact(difference):
            return None
        low, high = self.indices.sum_interval(difference)
        if low < 0 < high:
            return None
        fold = OPERATORS[type(expression)].fold
        assert fold is not None
        holds = fold(low, 0)
        return holds if fold(high, 0) == holds else None

    @on(E.And, E.Or)
    def connective(self, expression: E.And | E.Or) -> E.PrimExpr:
        decides = isinstance(expression, E.Or)  # the operand that is the result, whatever the other
        a = self.rewrite(expression.a)
        if isinstance(a, E.IntImm):
            return a if bool(a.value) is decides else self.rewrite(expression.b)
        b = self.rewrite(expression.b)
        if isinstance(b, E.IntImm):
            return b if bool(b.value) is decides else a
        same = a is expression.a and b is expression.b
        return expression if same else type(expression)(a, b)

    @on(E.Not)
    def negation(self, expression: E.Not) -> E.PrimExpr:
        a = self.rewrite(expression.a)
        if isinstance(a, E.IntImm):
            return E.IntImm("bool", int(not a.value))
        return expression if a is expression.a else E.Not(a)

    @on(E.Select)
    def select(self, expression: E.Select) -> E.PrimExpr:
        operands = expression.condition, expression.true_value, expression.false_value
        new = self.choice(operands)
        if len(new) == 1:
            return new[0]
        same = all(map(is_, new, operands))
        return expression if same else E.Select(*new, span=expression.span)

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        if operator_name(call) == "likely":
            return self.rewrite(call.args[0])
        if not is_choice(call):
            return self.rewrite_children(call)
        new = self.choice(call.args)
        if len(new) == 1:
            return new[0]
        return call if all(map(is_, new, call.args)) else replace(call, args=new)

    def choice(self, operands: tuple[E.PrimExpr, ...]) -> tuple[E.PrimExpr, ...]:
        """A condition and its two values; one of the values where the condition is decided."""
        condition = self.rewrite(operands[0])
        if isinstance(condition, E.IntImm):
            return (self.rewrite(operands[1] if condition.value else operands[2]),)
        return condition, self.rewrite(operands[1]), self.rewrite(operands[2])

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        indices = self.rewrite_indices(load.indices)
        if indices is load.indices:
            return load
        return E.BufferLoad(load.buffer, indices, span=load.span)

    def rewrite_indices(self, indices: tuple[E.PrimExpr, ...]) -> tuple[E.PrimExpr, ...]:
        new = tuple([self.rewrite_index(index) for index in indices])
        return indices if all(map(is_, new, indices)) else new

    def rewrite_index(self, index: E.PrimExpr) -> E.PrimExpr:
        # Neighbouring accesses have the same index, which then is the same object.
        new = self.rewritten.get(index)
        if new is None:
            new = self.rewrite(index)
            if dtypes.lanes(new.dtype) == 1:
                new = self.indices.normal(new)
            self.rewritten[index] = new
        return new

    # Statements

    def iteration_values(self, loop: S.For, steps: Iterable[int]) -> list[E.PrimExpr]:
        """The values of a loop's variable in some iterations, counted from its first."""
        first = self.indices.sum_of(loop.min)
        return [
            self.indices.expression(first.with_constant(first.constant + step)) for step in steps
        ]

    def copies(self, loop: S.For, steps: Iterable[int]) -> S.Stmt:
        """Some iterations of a loop, counted from its first, one after another."""
        values = self.iteration_values(loop, steps)
        return in_sequence(self.with_values(loop.body, {loop.loop_var: value}) for value in values)

    def in_groups(self, loop: S.For, size: int, write: Callable[[S.For, range], S.Stmt]) -> S.Stmt:
        """A loop of `size` iterations at a time, as `write` writes them, and the last ones that
        fill no group."""
        assert isinstance(loop.extent, E.IntImm)
        count, rest = divmod(loop.extent.value, size)
        dtype = loop.loop_var.dtype
        var = E.Var(loop.loop_var.name, dtype)
        self.indices.bind(var, 0, count - 1)
        start = self.indices.normal(var * size + loop.min)
        body = write(replace(loop, min=start), range(size))
        low, extent = const(0, dtype), const(count, dtype)
        main = replace(loop, loop_var=var, min=low, extent=extent, body=body)
        last = range(loop.extent.value - rest, loop.extent.value)
        return in_sequence([main, self.copies(loop, last)])

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        value = self.rewrite(store.value)
        indices = self.rewrite_indices(store.indices)
        if value is store.value and indices is store.indices:
            return store
        return S.BufferStore(store.buffer, value, indices, span=store.span)

    @on(S.Evaluate)
    def evaluation(self, statement: S.Evaluate) -> S.Stmt:
        if operator_name(statement.value) == "assume":
            return NOTHING
        return self.rewrite_children(statement)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        value = self.rewrite(let.value)
        if isinstance(value, (E.IntImm, E.FloatImm, E.Var)):
            return self.with_values(let.body, {let.var: value})
        body = self.rewrite(let.body)
        if is_nothing(body):
            return NOTHING
        if value is let.value and body is let.body:
            return let
        return replace(let, value=value, body=body)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        return self.rewrite(statement.body)


@lowering_pass("NormalizeLoops", needed=True)
def normalize(func: PrimFunc) -> PrimFunc:
    """Indices as sums, decided conditions and loops of one iteration gone."""
    return Rewriter(func).run()


def fitting_factor(extent: int, most: int) -> int:
    """How many iterations of a loop become one: at most so many, or somewhat fewer if then none
    are left over."""
    return next((f for f in range(most, most // 2, -1) if extent % f == 0), most)


def is_choice(expression: Node) -> bool:
    """Whether an expression is a call of `if_then_else`."""
    return operator_name(expression) == "if_then_else"


def definitions_in(statement: S.Stmt) -> Iterator[S.For | S.LetStmt]:
    """The loops and lets in a statement, outer ones first."""
    yield from S.find_statements(statement, S.For, S.LetStmt)


def variables_of(statement: S.Stmt) -> set[E.Var]:
    """The variables of the loops and lets in a statement, itself included."""
    return {
        definition.var if isinstance(definition, S.LetStmt) else definition.loop_var
        for definition in definitions_in(statement)
    }


def bind_ranges(func: PrimFunc, indices: Indices) -> None:
    """Tell `indices` the bounds of all variables of a function. Where several statements define
    one variable, as copies of a body do, the bounds hold for all of them."""
    for buffer in func.parameter_buffers:
        for extent in buffer.shape:
            if isinstance(extent, E.Var):
                indices.bind(extent, 0, int(dtypes.max_value(extent.dtype)))
    for statement in definitions_in(func.body):
        if isinstance(statement, S.LetStmt):
            var = statement.var
            if not dtypes.is_scalar_integer(var.dtype):
                continue
            low, high = indices.interval(statement.value)
        else:
            var = statement.loop_var
            low, top = indices.interval(statement.min)
            extent = indices.interval(statement.extent)[1]
            high = min(top + max(extent, 1) - 1, int(dtypes.max_value(var.dtype)))
        bounds = indices.ranges.get(var, (low, high))
        indices.bind(var, min(low, bounds[0]), max(high, bounds[1]))


def loops_in(statement: S.Stmt) -> list[S.For]:
    """The loops in a statement, outer ones first."""
    return [definition for definition in definitions_in(statement) if isinstance(definition, S.For)]
