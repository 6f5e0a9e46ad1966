"""Integer expressions as Python, to list the values of indices while compiling."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.operators import OPERATORS, Family, Key, key_of, keys, operands_of


class UnknownIndex(Exception):
    """An expression is not told from the variables that have names."""


_FORMS: dict[Key, str] = {
    **{
        key: f"({{}} {OPERATORS[key].symbol} {{}})"
        for key in keys(Family.ARITHMETIC, Family.COMPARISON, Family.LOGIC, Family.BITWISE, arity=2)
    },
    E.Min: "min({}, {})", E.Max: "max({}, {})", E.Div: "truncdiv({}, {})",
    E.Mod: "truncmod({}, {})", E.Not: "(not {})", "likely": "{}",
    E.Select: "({1} if {0} else {2})", "if_then_else": "({1} if {0} else {2})",
}  # fmt: skip
"""Operators of integers."""

FUNCTIONS = {"truncdiv": OPERATORS[E.Div].fold, "truncmod": OPERATORS[E.Mod].fold}
"""What the texts may call besides Python's own functions."""


def index_text(node: E.PrimExpr, names: Mapping[E.Var, str]) -> str:
    """An integer expression as Python, with names or texts for its variables. Raises UnknownIndex
    where another variable, memory or a call tells the value."""
    if isinstance(node, E.Var) and node in names:
        return names[node]
    if isinstance(node, E.IntImm):
        return f"({node.value})"
    if isinstance(node, E.Cast) and dtypes.is_integer(node.dtype):
        if dtypes.is_integer(node.value.dtype) and dtypes.bits(node.dtype) >= 32:
            return index_text(node.value, names)
    form = _FORMS.get(key_of(node))
    if form is None or dtypes.lanes(node.dtype) > 1:
        raise UnknownIndex
    return form.format(*(index_text(operand, names) for operand in operands_of(node)))
