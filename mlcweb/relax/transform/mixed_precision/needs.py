"""In which precision the variables of a function are asked for, found from its end to its start."""

from __future__ import annotations

from typing import TypeAlias

from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprVisitor, visitor
from mlcweb.relax.op.registry import ALWAYS
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.relax.transform.mixed_precision.policy import in_half, policy_of

Need: TypeAlias = "bool | list[Need] | None"
"""Whether half precision is all that is asked for; None: it does not matter. Of a tuple, by
field."""


def uniform(info: StructInfo | None, need: bool | None) -> Need:
    """One need for all parts of a value."""
    if isinstance(info, TupleStructInfo):
        return [uniform(field, need) for field in info.fields]
    return need


def _both(a: Need, b: Need) -> Need:
    if isinstance(a, list) and isinstance(b, list):
        return [_both(*pair) for pair in zip(a, b, strict=True)]
    return a if a == b else False


def as_needed(info: StructInfo, need: Need) -> StructInfo:
    """What is known of a value when the parts of it that are only asked for in half precision are
    in half precision."""
    if isinstance(info, TupleStructInfo) and isinstance(need, list):
        return TupleStructInfo(list(map(as_needed, info.fields, need)))
    return in_half(info) if need is True else info


def needs(func: E.Function) -> dict[E.Var, Need]:
    """What is asked of each variable of a function."""
    collector = _Needs()
    collector.visit_expr(func.body)
    return collector.needs


@visitor
class _Needs(PyExprVisitor):
    def __init__(self) -> None:
        self.needs: dict[E.Var, Need] = {}

    def ask(self, value: E.RelaxExpr, need: Need) -> None:
        if isinstance(value, E.Tuple):
            parts = need if isinstance(need, list) else [need] * len(value)
            for field, part in zip(value.fields, parts, strict=True):
                self.ask(field, part)
        elif isinstance(value, E.Var):
            whole = need if isinstance(need, list) else uniform(value.struct_info, need)
            seen = value in self.needs
            self.needs[value] = _both(self.needs[value], whole) if seen else whole

    def visit_seq_expr_(self, seq: E.SeqExpr) -> None:
        self.visit_expr(seq.body)
        for block in reversed(seq.blocks):
            for binding in reversed(block.bindings):
                self.visit_binding(binding)

    def visit_var_(self, var: E.Var) -> None:
        self.ask(var, False)

    visit_dataflow_var_ = visit_var_

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        value = binding.value
        need = self.needs.get(binding.var)
        if isinstance(value, E.Call) and policy_of(value) is ALWAYS:
            for arg in value.args:
                self.ask(arg, True)
        elif isinstance(value, E.Tuple):
            self.ask(value, need)
        elif isinstance(value, E.TupleGetItem):
            whole = value.tuple_value
            info = whole.struct_info if isinstance(whole, E.Expr) else None
            asked = uniform(info, None)
            if isinstance(asked, list):
                asked[value.index] = need
            self.ask(whole, asked)
        else:
            self.visit_expr(value)
