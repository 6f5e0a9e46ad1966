"""Passes that write calls of operators in another way, by a rule for one call at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.registration import is_primitive, map_functions, pass_of, pruned
from mlcweb.tir.expr import IntImm


@mutator
class Rewriting(PyExprMutator):
    """Rewrites the calls of a function. Rules ask it for the values of variables."""

    def __init__(self, mod: IRModule, rule: Rule) -> None:
        super().__init__(mod)
        self.rule = rule

    def called(self, expr: object, name: str) -> E.Call | None:
        """The call of an operator that gives a value."""
        value = self.bound_value(expr)
        return value if isinstance(value, E.Call) and E.called_operator(value) == name else None

    def visit_call_(self, call: E.Call) -> E.Expr:
        call = self.visit_expr_post_order(call)
        if not isinstance(call.op, Op):
            return call
        new = self.rule(call, self)
        return call if new is None else new


Rule: TypeAlias = Callable[[E.Call, Rewriting], "E.Expr | None"]
"""What a call becomes; None leaves it."""


def rewriting_pass(name: str, rule: Rule, only: str | None = None) -> Pass:
    """The pass that applies a rule to the calls of all functions (or of one), and drops what is not
    used any more."""

    def transform(mod: IRModule) -> IRModule:
        def change(var: GlobalVar, func: E.Function) -> E.Function:
            if is_primitive(func) or only not in (None, var.name_hint):
                return func
            return pruned(func, Rewriting(mod, rule), mod)

        return map_functions(mod, change)

    return pass_of(name, transform)


def simplifying_pass(name: str, rule: Rule, *clean: Callable[[IRModule], IRModule]) -> Pass:
    """As `rewriting_pass`, and where that changes anything, other passes after it."""
    rewriting = rewriting_pass(name, rule)

    def transform(mod: IRModule) -> IRModule:
        new = rewriting(mod)
        if new is mod:
            return mod
        return reduce(lambda module, each: each(module), clean, new)

    return pass_of(name, transform)


def tensor(expr: object) -> TensorStructInfo | None:
    """The struct info of a tensor of known shape."""
    info = expr.struct_info if isinstance(expr, E.Expr) else None
    return info if isinstance(info, TensorStructInfo) and info.values is not None else None


def static_shape(expr: object) -> list[int] | None:
    """The shape of a tensor if all extents are numbers."""
    info = tensor(expr)
    if info is None or info.values is None:
        return None
    extents = [extent.value for extent in info.values if isinstance(extent, IntImm)]
    return extents if len(extents) == len(info.values) else None
