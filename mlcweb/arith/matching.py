"""Matches expressions with the identities of `identities`, which are texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from mlcweb.arith import identities
from mlcweb.arith.equality import same_expression
from mlcweb.arith.facts import Facts
from mlcweb.arith.interval import is_index_type
from mlcweb.tir import expr as E
from mlcweb.tir import folding as F

Bound = dict[str, Any]
"""What the letters of an identity stand for: expressions, and the numbers of constants."""

Classes = tuple[type, ...]

Match = Callable[[Any, Bound], bool]
Build = Callable[[Bound, str], E.PrimExpr]

_CONSTANTS, _OPTIONAL = frozenset("cdekl"), frozenset("kl")

_OPERATORS: dict[type, type] = {
    ast.Add: E.Add,
    ast.Sub: E.Sub,
    ast.Mult: E.Mul,
    ast.FloorDiv: E.FloorDiv,
    ast.Mod: E.FloorMod,
    ast.Lt: E.LT,
    ast.LtE: E.LE,
    ast.Eq: E.EQ,
    ast.And: E.And,
}
_FUNCTIONS: dict[str, type] = {
    "min": E.Min,
    "max": E.Max,
    "tdiv": E.Div,
    "tmod": E.Mod,
    "div": E.FloorDiv,
    "mod": E.FloorMod,
}


class Pattern(NamedTuple):
    """The left side of an identity in one order of operands. `classes` are those that the
    expression and its operands may have, None where an operand may be any."""

    text: str
    node: Any
    classes: tuple[Classes | None, Classes | None, Classes | None]


class Identity(NamedTuple):
    """A pattern that can be matched, and what it is replaced by under a condition."""

    match: Match
    build: Build
    condition: Callable[[Bound, Facts], bool]


def applied(expression: Any, analyzer: Facts) -> E.PrimExpr | None:
    """What an identity makes of an expression whose operands are simple; None where none does."""
    candidates = _candidates(type(expression), type(expression.a), type(expression.b))
    if not candidates or not (is_index_type(expression.a.dtype) or type(expression) is E.And):
        return None
    for identity in candidates:
        bound: Bound = {}
        if identity.match(expression, bound) and identity.condition(bound, analyzer):
            return identity.build(bound, _dtype(bound))
    return None


def _dtype(bound: Bound) -> str:
    return next(value.dtype for value in bound.values() if isinstance(value, E.PrimExpr))


@cache
def _candidates(cls: type, a: type, b: type) -> tuple[Identity, ...]:
    """The identities that expressions of a class with operands of these classes may match."""
    return tuple(
        Identity(_matcher(pattern.node), *_compiled(pattern.text))
        for pattern in all_patterns()
        if all(
            allowed is None or node_class in allowed
            for allowed, node_class in zip(pattern.classes, (cls, a, b), strict=True)
        )
    )


@cache
def _compiled(text: str) -> tuple[Build, Callable[[Bound, Facts], bool]]:
    """The right side of an identity, and its condition."""
    statement, _, condition = text.partition(" if ")
    return _builder(_parsed(statement.split("->")[1])), _condition(condition)


@cache
def all_patterns() -> tuple[Pattern, ...]:
    """The left side of every identity in every order of operands in which it is looked for."""
    tables = [
        (identities.SUMS, True, True),
        (identities.DIVISIONS, True, True),
        (identities.IN_ORDER, False, True),
        (identities.EXTREMA, False, True),
        (identities.ROUNDING, False, False),
        (identities.COMPARISONS, False, False),
        (identities.COMPARISONS.replace("<", "<="), False, False),
        (identities.CONDITIONS, False, False),
    ]
    return tuple(
        pattern
        for table, commutes, is_dual in tables
        for line in table.strip().splitlines()
        for text in _instances(line, is_dual)
        for pattern in _patterns(text, commutes)
    )


def _instances(line: str, is_dual: bool) -> Iterator[str]:
    """An identity with both ways to divide, and with minimum and maximum exchanged."""
    names = [{}, {"div": "tdiv", "mod": "tmod"}] if re.search(r"\bdiv\(", line) else [{}]
    if is_dual and "min(" in line:
        names += [{**mapping, "min": "max", "max": "min"} for mapping in names]
    for renamed in names:
        words = re.split(r"\b(\w+)\b", line)
        yield "".join(renamed.get(word, word) for word in words)


def _parsed(text: str) -> Any:
    return ast.parse(text.strip(), mode="eval").body


def _patterns(text: str, commutes: bool) -> Iterator[Pattern]:
    left = _parsed(text.split("->")[0])
    for node in _orders(left) if commutes else (left,):
        _, a, b = _operation(node)
        yield Pattern(text, node, (_classes(node), _classes(a), _classes(b)))


def _operation(node: Any) -> tuple[type, Any, Any]:
    """The class and operands of an operation of a text."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)], node.left, node.right
    if isinstance(node, ast.Compare):
        return _OPERATORS[type(node.ops[0])], node.left, node.comparators[0]
    if isinstance(node, ast.BoolOp):
        return _OPERATORS[type(node.op)], node.values[0], node.values[1]
    return _FUNCTIONS[node.func.id], node.args[0], node.args[1]


def _is_constant(node: Any) -> bool:
    return all(
        child.id in _CONSTANTS for child in ast.walk(node) if isinstance(child, ast.Name)
    ) and not isinstance(node, (ast.Compare, ast.BoolOp))


def _is_optional(node: Any) -> bool:
    return isinstance(node, ast.Name) and node.id in _OPTIONAL


def _classes(node: Any) -> Classes | None:
    """The classes of the expressions that a part of a text matches; None where they may be any."""
    if isinstance(node, ast.Name) and node.id not in _CONSTANTS:
        return None
    if _is_constant(node):
        return (E.IntImm,)
    cls, a, b = _operation(node)
    if cls is not E.Add or not _is_constant(b):
        return (cls,)
    if not _is_optional(b):
        return E.Add, E.Sub
    alone = _classes(a)
    return None if alone is None else (E.Add, E.Sub, *alone)


def _orders(node: Any) -> list[Any]:
    """A text with the operands of its sums and products in every order; constants stand last."""
    if isinstance(node, ast.Name) or _is_constant(node):
        return [node]
    cls, a, b = _operation(node)
    pairs = [(x, y) for x in _orders(a) for y in _orders(b)]
    if cls in (E.Add, E.Mul) and not _is_constant(b):
        pairs += [(y, x) for x, y in pairs]
    return [_with_operands(node, *pair) for pair in pairs]


def _with_operands(node: Any, a: Any, b: Any) -> Any:
    if isinstance(node, ast.BinOp):
        return ast.BinOp(a, node.op, b)
    return ast.Call(node.func, [a, b], [])


def _matcher(node: Any) -> Match:
    if isinstance(node, ast.Name):
        return _constant(node.id) if node.id in _CONSTANTS else _variable(node.id)
    if _is_constant(node):
        number = ast.literal_eval(node)
        return lambda expr, bound: type(expr) is E.IntImm and expr.value == number
    cls, a, b = _operation(node)
    match_a, match_b = _matcher(a), _matcher(b)
    if cls is E.Add and _is_constant(b):
        return _offset(match_a, b.id if isinstance(b, ast.Name) else None, b)

    def match(expr: Any, bound: Bound) -> bool:
        return type(expr) is cls and match_a(expr.a, bound) and match_b(expr.b, bound)

    return match


def _variable(name: str) -> Match:
    def match(expr: Any, bound: Bound) -> bool:
        first = bound.setdefault(name, expr)
        return first is expr or same_expression(first, expr)

    return match


def _constant(name: str) -> Match:
    def match(expr: Any, bound: Bound) -> bool:
        return type(expr) is E.IntImm and bound.setdefault(name, expr.value) == expr.value

    return match


def _offset(match_rest: Match, name: str | None, constant: Any) -> Match:
    """A sum with a constant, or a difference; without one where it may be left out."""
    number = None if name else ast.literal_eval(constant)

    def match(expr: Any, bound: Bound) -> bool:
        rest, value = expr, 0
        if type(expr) in (E.Add, E.Sub) and type(expr.b) is E.IntImm:
            rest, value = expr.a, expr.b.value if type(expr) is E.Add else -expr.b.value
        elif name not in _OPTIONAL:
            return False
        if (value != number) if name is None else (bound.setdefault(name, value) != value):
            return False
        return match_rest(rest, bound)

    return match


def _builder(node: Any) -> Build:
    if isinstance(node, ast.Name) and (name := node.id) not in _CONSTANTS:
        return lambda bound, dtype: bound[name]
    if _is_constant(node):
        code = _code(node)
        return lambda bound, dtype: F.integer(eval(code, {"__builtins__": {}}, bound), dtype)
    cls, a, b = _operation(node)
    combine, build_a, build_b = _BUILDERS[cls], _builder(a), _builder(b)
    return lambda bound, dtype: combine(build_a(bound, dtype), build_b(bound, dtype))


def _sum(a: E.PrimExpr, b: E.PrimExpr) -> E.PrimExpr:
    """`a + b`; what is negative is subtracted."""
    if type(b) is E.IntImm and b.value < 0 and type(a) is not E.IntImm:
        return F.subtract(a, F.integer(-b.value, b.dtype))
    return F.add(a, b)


_BUILDERS = F.BUILDERS | {E.Add: _sum}


def _condition(text: str) -> Callable[[Bound, Facts], bool]:
    """The test of a condition, which reads arguments of `nonneg` and `same` as expressions."""
    if not text:
        return lambda bound, analyzer: True
    tree = _parsed(text)
    tests = [
        _question(part) if isinstance(part, ast.Call) else _of_constants(part)
        for part in (tree.values if isinstance(tree, ast.BoolOp) else [tree])
    ]
    return lambda bound, analyzer: all(test(bound, analyzer) for test in tests)


def _of_constants(node: Any) -> Callable[[Bound, Facts], bool]:
    code = _code(node)
    return lambda bound, analyzer: bool(eval(code, {"__builtins__": {}, "abs": abs}, bound))


def _question(node: ast.Call) -> Callable[[Bound, Facts], bool]:
    builders = [_builder(argument) for argument in node.args]
    ask = _QUESTIONS[node.func.id]  # type: ignore[attr-defined]

    def test(bound: Bound, analyzer: Facts) -> bool:
        return ask(analyzer, *(build(bound, _dtype(bound)) for build in builders))

    return test


def _are_nonnegative(analyzer: Facts, *values: E.PrimExpr) -> bool:
    return all(analyzer.const_int_bound(value).min_value >= 0 for value in values)


def _is_same_difference(
    analyzer: Facts, x: E.PrimExpr, y: E.PrimExpr, z: E.PrimExpr, w: E.PrimExpr
) -> bool:
    first, second = analyzer.canonical(F.subtract(x, y)), analyzer.canonical(F.subtract(z, w))
    return same_expression(first, second)


_QUESTIONS: dict[str, Callable[..., bool]] = {
    "nonneg": _are_nonnegative,
    "same": _is_same_difference,
}


def _code(node: Any) -> Any:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "identity", "eval")
