"""Local rules: what one node with simplified operands can be replaced by.

Each rule looks at a node whose operands are already simple and returns a simpler expression, or the
node itself. The tables are in `rules_integer` (products and divisions), `rules_extremum` (minimum
and maximum), `rules_comparison`, `rules_logic` (boolean algebra, choices) and `rules_vector`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.arith import (
    known,
    matching,
    rules_comparison,
    rules_extremum,
    rules_integer,
    rules_logic,
    rules_vector,
)  # fmt: skip
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type
from mlcweb.arith.rules_comparison import negation
from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator
from mlcweb.tir import expr as E
from mlcweb.tir.folding import add, integer, multiply, subtract
from mlcweb.tir.operators import Key, key_of, operator_name

Rule = Callable[[Any, Facts], E.PrimExpr]

_RULES: dict[Key, Rule] = {
    **rules_integer.RULES,
    **rules_extremum.RULES,
    **rules_comparison.RULES,
    **rules_logic.RULES,
}

_TURNED: dict[type, type] = {E.GT: E.LT, E.GE: E.LE}
"""a > b is b < a."""

_LEAVES = (E.IntImm, E.FloatImm, E.StringImm)


def rewrite(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    """The expression after the local rules, operands first."""
    cls = type(expression)
    if cls is E.Var:
        return analyzer.known_value(expression)  # type: ignore[arg-type]
    if cls in _LEAVES:
        return expression
    result = analyzer.rewritten.get(expression)
    if result is None:
        try:
            result = _rewritten(rebuilt(expression, rewrite, analyzer), analyzer)
        except TOO_DEEP:
            raise nests_too_deep("simplified") from None
        analyzer.rewritten[expression] = result
    return result


def _rewritten(expression: Any, analyzer: Facts) -> E.PrimExpr:
    turned = _TURNED.get(type(expression))
    if turned is not None:
        return _rewritten(turned(expression.b, expression.a), analyzer)
    if isinstance(expression, (E.BinaryExpr, E.ComparisonExpr)):
        rewritten = matching.applied(expression, analyzer)
        if rewritten is not None:
            return rewrite(rewritten, analyzer)
    return apply_rule(expression, analyzer)


def apply_rule(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    """The rule of this node, where it has one; then what the constraints say of a condition."""
    result = _by_rule(expression, analyzer)
    constrained = analyzer.constraints or analyzer.chains_inequalities
    return known.under_constraints(result, analyzer) if constrained else result


def _by_rule(expression: E.PrimExpr, analyzer: Facts) -> E.PrimExpr:
    if isinstance(expression, (E.BinaryExpr, E.ComparisonExpr)):
        rewritten = rules_vector.of_vectors(expression, analyzer)
        if rewritten is None:
            rewritten = rules_logic.of_choices(expression, analyzer)
        if rewritten is not None:
            return rewritten
    if isinstance(expression, (E.Add, E.Sub)) and is_index_type(expression.dtype):
        moved = rules_extremum.moved_inside(expression, analyzer)
        if moved is not None:
            return rewrite(moved, analyzer)
    rule = _RULES.get(key_of(expression))
    return rule(expression, analyzer) if rule else expression


def rebuilt(
    expression: Any, change: Callable[[E.PrimExpr, Facts], E.PrimExpr], analyzer: Facts
) -> Any:
    """The node with its operands changed; the node itself where none is.

    What is chosen by a condition is changed knowing that the condition holds, or does not.
    """
    if isinstance(expression, (E.BinaryExpr, E.ComparisonExpr)):
        if analyzer.applies_branches and isinstance(expression, (E.And, E.Or)):
            a, b = _changed_branches(expression, change, analyzer)
        else:
            a, b = change(expression.a, analyzer), change(expression.b, analyzer)
        if a is expression.a and b is expression.b:
            return expression
        return type(expression)(a, b, span=expression.span)
    if isinstance(expression, E.Select):
        old = (expression.condition, expression.true_value, expression.false_value)
        new = _changed_choice(old, change, analyzer)
        return expression if _same_items(new, old) else E.Select(*new, span=expression.span)
    if isinstance(expression, E.Call):
        if operator_name(expression) == "if_then_else":
            args = _changed_choice(expression.args, change, analyzer)
        else:
            args = tuple(change(arg, analyzer) for arg in expression.args)
        return expression if _same_items(args, expression.args) else replace(expression, args=args)
    return _Operands(change, analyzer).rewrite_children(expression)


def _changed_branches(
    expression: Any, change: Callable[..., E.PrimExpr], analyzer: Facts
) -> tuple[E.PrimExpr, E.PrimExpr]:
    constraint_of = negation if isinstance(expression, E.Or) else lambda condition: condition
    a = change(expression.a, analyzer)
    with analyzer.constraint(constraint_of(a)):
        b = change(expression.b, analyzer)
    with analyzer.constraint(constraint_of(b)):
        return change(a, analyzer), b


def _changed_choice(
    parts: tuple[E.PrimExpr, ...], change: Callable[..., E.PrimExpr], analyzer: Facts
) -> tuple[E.PrimExpr, E.PrimExpr, E.PrimExpr]:
    condition, true_value, false_value = parts
    condition = change(condition, analyzer)
    if isinstance(condition, E.IntImm):
        chosen = change(true_value if condition.value else false_value, analyzer)
        return condition, chosen, chosen
    with analyzer.constraint(condition):
        true_value = change(true_value, analyzer)
    with analyzer.constraint(negation(condition)):
        false_value = change(false_value, analyzer)
    return condition, true_value, false_value


def _same_items(new: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    return all(x is y for x, y in zip(new, old, strict=True))


class WithConstantsLast(Mutator):
    """Writes integer sums and products as TVM's rewriting simplifier does: with the constant last,
    added even where it is negative, and products of sums multiplied out by it."""

    def rewrite(self, node: Any) -> Any:
        node = self.rewrite_children(node)
        rule = _SUMS.get(type(node))
        return rule(node.a, node.b) if rule and is_index_type(node.dtype) else node


def _plus(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if isinstance(b, E.Add) and isinstance(b.a, E.IntImm):
        return _plus(_plus(a, b.b), b.a)
    if isinstance(a, E.Sub) and isinstance(a.a, E.IntImm) and not isinstance(b, E.IntImm):
        return _plus(_minus(b, a.b), a.a)
    if isinstance(b, E.Add) and isinstance(b.b, E.IntImm):
        return _plus(_plus(a, b.a), b.b)
    if isinstance(b, E.Sub) and isinstance(b.a, E.IntImm) and not isinstance(a, E.IntImm):
        return _plus(_minus(a, b.b), b.a)
    if isinstance(a, E.Add) and isinstance(a.b, E.IntImm):
        return _plus(a.a, add(a.b, b)) if isinstance(b, E.IntImm) else add(_plus(a.a, b), a.b)
    return add(a, b)


def _minus(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if isinstance(b, E.IntImm):
        return _plus(a, _negative(b))
    if isinstance(b, E.Add) and isinstance(b.b, E.IntImm):
        return _plus(_minus(a, b.a), _negative(b.b))
    if isinstance(b, E.Mul) and isinstance(b.b, E.IntImm):
        return _plus(a, _times(b.a, _negative(b.b)))
    if isinstance(b, E.Sub):
        return _minus(_plus(a, b.b), b.a)
    if isinstance(a, E.Add) and isinstance(a.b, E.IntImm):
        return _plus(_minus(a.a, b), a.b)
    return subtract(a, b)


def _times(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    if isinstance(a, E.IntImm):
        a, b = b, a
    if isinstance(b, E.IntImm):
        if isinstance(a, E.Mul) and isinstance(a.b, E.IntImm):
            return _times(a.a, multiply(a.b, b))
        if isinstance(a, E.Add) and isinstance(a.b, E.IntImm):
            return _plus(_times(a.a, b), multiply(a.b, b))
        if isinstance(a, E.Sub) and b.value < 0:
            return _times(_minus(a.b, a.a), _negative(b))
    return multiply(a, b)


def _negative(number: E.IntImm) -> E.PrimExpr:
    return integer(-number.value, number.dtype)


_SUMS: dict[type, Callable[[E.PrimExpr, E.PrimExpr], E.PrimExpr]] = {
    E.Add: _plus,
    E.Sub: _minus,
    E.Mul: _times,
}


class _Operands(Mutator):
    def __init__(self, change: Callable[..., E.PrimExpr], analyzer: Facts) -> None:
        self.change = change
        self.analyzer = analyzer

    def rewrite(self, node: Any) -> Any:
        return self.change(node, self.analyzer) if isinstance(node, E.PrimExpr) else node
