"""Matching expressions against patterns, with backtracking over `|` and the order of operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import TypeAlias

from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.ir.structural import structural_equal
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.dpl import pattern as P
from mlcweb.relax.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo

Values: TypeAlias = Mapping[E.Var, E.Value]
Bound: TypeAlias = dict[P.DFPattern, E.RelaxExpr]
"""What the parts of a pattern stand for so far. Never changed, so that going back is free."""

COMMUTATIVE = ("relax.add", "relax.multiply")
"""Operators whose operands match in either order."""


def extract(pattern: P.DFPattern, expr: E.RelaxExpr, var2val: Values | None = None) -> Bound | None:
    """What the parts of a pattern match; None where the expression does not match."""
    return next(_match(pattern, expr, {}, var2val or {}), None)


def _match(
    pattern: P.DFPattern, expr: E.RelaxExpr, bound: Bound, values: Values
) -> Iterator[Bound]:
    """The ways in which an expression matches."""
    if not isinstance(pattern, P.VarPattern):
        expr = _value(expr, values)
    if pattern in bound:
        if bound[pattern] is expr:
            yield bound
        return
    for result in _MATCHERS[type(pattern)](pattern, expr, bound, values):
        yield {**result, pattern: expr}


def _value(expr: E.RelaxExpr, values: Values) -> E.RelaxExpr:
    """What a variable stands for, as far as that is known."""
    while isinstance(expr, E.Var) and expr in values:
        expr = values[expr]
    return expr


def _all(
    patterns: Sequence[P.DFPattern],
    exprs: Sequence[E.RelaxExpr],
    bound: Bound,
    values: Values,
) -> Iterator[Bound]:
    if not patterns:
        yield bound
        return
    for result in _match(patterns[0], exprs[0], bound, values):
        yield from _all(patterns[1:], exprs[1:], result, values)


def _test(holds: Callable[..., bool]) -> Callable[..., Iterator[Bound]]:
    """A matcher that looks at the expression alone."""

    def match(
        pattern: P.DFPattern, expr: E.RelaxExpr, bound: Bound, values: Values
    ) -> Iterator[Bound]:
        if holds(pattern, expr):
            yield bound

    return match


def _also(holds: Callable[..., bool]) -> Callable[..., Iterator[Bound]]:
    """A matcher that looks at the expression, and matches it against the pattern inside."""

    def match(
        pattern: P.Refinement, expr: E.RelaxExpr, bound: Bound, values: Values
    ) -> Iterator[Bound]:
        if holds(pattern, expr):
            yield from _match(pattern.pattern, expr, bound, values)

    return match


def _is_expr(pattern: P.ExprPattern, expr: E.RelaxExpr) -> bool:
    if isinstance(pattern.expr, Op) or isinstance(expr, Op):
        return pattern.expr == expr
    return pattern.expr is expr or structural_equal(pattern.expr, expr)


def _is_var(pattern: P.VarPattern, expr: E.RelaxExpr) -> bool:
    return isinstance(expr, E.Var) and pattern.name in ("", expr.name_hint)


def _is_dataflow_var(pattern: P.VarPattern, expr: E.RelaxExpr) -> bool:
    return isinstance(expr, E.DataflowVar) and pattern.name in ("", expr.name_hint)


def _is_global_var(pattern: P.GlobalVarPattern, expr: E.RelaxExpr) -> bool:
    return isinstance(expr, GlobalVar) and pattern.name in ("", expr.name_hint)


def _is_extern(pattern: P.ExternFuncPattern, expr: E.RelaxExpr) -> bool:
    return isinstance(expr, E.ExternFunc) and pattern.global_symbol in ("", expr.global_symbol)


def _is_shape(pattern: P.PrimArrPattern, expr: E.RelaxExpr) -> bool:
    values = expr.values if isinstance(expr, (E.ShapeExpr, ShapeStructInfo)) else None
    return values is not None and dims.same_shape(pattern.shape, values)


def _info(expr: E.RelaxExpr) -> StructInfo | None:
    return expr.struct_info if isinstance(expr, E.Expr) else None


def _has_shape(pattern: P.ShapePattern, expr: E.RelaxExpr) -> bool:
    info = _info(expr)
    extents = info.values if isinstance(info, TensorStructInfo) else None
    return extents is not None and dims.same_shape(pattern.shape, extents)


def _has_dtype(pattern: P.DataTypePattern, expr: E.RelaxExpr) -> bool:
    return getattr(_info(expr), "dtype", None) == pattern.dtype


def _has_info(pattern: P.StructInfoPattern, expr: E.RelaxExpr) -> bool:
    info = _info(expr)
    return info is not None and pattern.struct_info.is_base_of(info)


def _has_attrs(pattern: P.AttrPattern, expr: E.RelaxExpr) -> bool:
    if isinstance(expr, Op):
        return all(expr.get_attr(key) == value for key, value in pattern.attrs.items())
    attrs = getattr(expr, "attrs", None) or {}
    return all(
        key in attrs and _plain(attrs[key]) == _plain(value) for key, value in pattern.attrs.items()
    )


def _plain(value: object) -> object:
    """An attribute's value for comparison: sequences alike, integers as such."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return getattr(value, "value", value)


def _call(
    pattern: P.CallPattern, expr: E.RelaxExpr, bound: Bound, values: Values
) -> Iterator[Bound]:
    if not isinstance(expr, E.Call):
        return
    count = len(pattern.args)
    if len(expr.args) < count or (len(expr.args) > count and not pattern.varg_default_wildcard):
        return
    for result in _match(pattern.op, expr.op, bound, values):
        for args in _orders(expr, count):
            yield from _all(pattern.args, args, result, values)


def _orders(call: E.Call, count: int) -> Iterator[Sequence[E.RelaxExpr]]:
    yield call.args
    if count == 2 and E.called_operator(call) in COMMUTATIVE:
        yield call.args[::-1]


def _function(
    pattern: P.FunctionPattern, expr: E.RelaxExpr, bound: Bound, values: Values
) -> Iterator[Bound]:
    if isinstance(expr, E.Function) and len(pattern.params) == len(expr.params):
        inside = {**values, **_bound(expr)}
        body = expr.body.body
        for result in _all(pattern.params, expr.params, bound, values):
            yield from _match(pattern.body, body, result, inside)


def _bound(func: E.Function) -> Values:
    return {b.var: b.value for block in func.body.blocks for b in block.bindings}


def _fields(expr: E.RelaxExpr, count: int) -> Sequence[E.RelaxExpr] | None:
    return expr.fields if isinstance(expr, E.Tuple) and len(expr.fields) == count else None


def _tuple(
    pattern: P.TuplePattern, expr: E.RelaxExpr, bound: Bound, values: Values
) -> Iterator[Bound]:
    fields = _fields(expr, len(pattern.fields))
    if fields is not None:
        yield from _all(pattern.fields, fields, bound, values)


def _unordered(
    pattern: P.UnorderedTuplePattern, expr: E.RelaxExpr, bound: Bound, values: Values
) -> Iterator[Bound]:
    fields = _fields(expr, len(pattern.fields))
    if fields is not None:
        for order in permutations(fields):
            yield from _all(pattern.fields, order, bound, values)


def _item(
    pattern: P.TupleGetItemPattern, expr: E.RelaxExpr, bound: Bound, values: Values
) -> Iterator[Bound]:
    if isinstance(expr, E.TupleGetItem) and pattern.index in (None, expr.index):
        yield from _match(pattern.tuple_value, expr.tuple_value, bound, values)


def _or(pattern: P.OrPattern, expr: E.RelaxExpr, bound: Bound, values: Values) -> Iterator[Bound]:
    yield from _match(pattern.left, expr, bound, values)
    yield from _match(pattern.right, expr, bound, values)


def _and(pattern: P.AndPattern, expr: E.RelaxExpr, bound: Bound, values: Values) -> Iterator[Bound]:
    yield from _all((pattern.left, pattern.right), (expr, expr), bound, values)


def _not(pattern: P.NotPattern, expr: E.RelaxExpr, bound: Bound, values: Values) -> Iterator[Bound]:
    if next(_match(pattern.to_reject, expr, bound, values), None) is None:
        yield bound


_MATCHERS: dict[type, Callable[..., Iterator[Bound]]] = {
    P.ExprPattern: _test(_is_expr),
    P.VarPattern: _test(_is_var),
    P.DataflowVarPattern: _test(_is_dataflow_var),
    P.GlobalVarPattern: _test(_is_global_var),
    P.ExternFuncPattern: _test(_is_extern),
    P.ConstantPattern: _test(lambda pattern, expr: isinstance(expr, E.Constant)),
    P.WildcardPattern: _test(lambda pattern, expr: True),
    P.PrimArrPattern: _test(_is_shape),
    P.ShapePattern: _also(_has_shape),
    P.DataTypePattern: _also(_has_dtype),
    P.StructInfoPattern: _also(_has_info),
    P.AttrPattern: _also(_has_attrs),
    P.CallPattern: _call,
    P.FunctionPattern: _function,
    P.TuplePattern: _tuple,
    P.UnorderedTuplePattern: _unordered,
    P.TupleGetItemPattern: _item,
    P.OrPattern: _or,
    P.AndPattern: _and,
    P.NotPattern: _not,
}
