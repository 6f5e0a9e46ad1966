"""Operators as Python: the text for scalars and for NumPy's arrays, whose vectors the interpreter
computes with and whose whole iteration spaces the target `numpy` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.operators import OPERATORS, Key, Operator, key_of, register_column


class PythonForm(NamedTuple):
    """Templates that are filled with the operands, and the types `source` and `dtype`. The result
    of an operator that overflows is the exact number for scalars."""

    scalar: str
    array: str


def _both(text: str) -> PythonForm:
    return PythonForm(text, text)


def _of_table(row: Operator) -> PythonForm:
    """The form of an operator that Python writes so, or of an intrinsic of the run-time support."""
    if row.symbol:
        infix = f"{{}} {row.symbol} {{}}" if row.arity == 2 else f"{row.symbol}{{}}"
        return _both(infix)
    arguments = ", ".join(["{}"] * row.arity)
    return _both(f"intrinsic_{row.key}({arguments})")


_CHOICE = PythonForm("({1} if {0} else {2})", "np.where({}, {}, {})")

FORMS: Mapping[Key, PythonForm] = register_column(
    "python",
    {key: _of_table(row) for key, row in OPERATORS.items()}
    | {
        E.Div: _both("truncdiv({}, {})"),
        E.Mod: _both("truncmod({}, {})"),
        E.Min: PythonForm("minimum({}, {})", "array_minimum({}, {})"),
        E.Max: PythonForm("maximum({}, {})", "array_maximum({}, {})"),
        E.And: PythonForm("{} and {}", "{} & {}"),
        E.Or: PythonForm("{} or {}", "{} | {}"),
        E.Not: PythonForm("not {}", "~{}"),
        E.Select: _CHOICE,
        "if_then_else": _CHOICE,
        "likely": _both("{}"),
        "popcount": _both('popcount({}, "{source}")'),
        E.Cast: _both('cast({}, "{source}", "{dtype}")'),
        "reinterpret": _both('reinterpret({}, "{source}", "{dtype}")'),
    },
)

_DIVISION_OF_FLOATS = _both("{} / {}")


def form_of(expression: Any) -> PythonForm | None:
    """The form of an expression; None where it is no operator."""
    if type(expression) is E.Div and dtypes.is_float(expression.dtype):
        return _DIVISION_OF_FLOATS
    return FORMS.get(key_of(expression))


def fill(template: str, expression: Any, operands: list[str]) -> str:
    """A template filled with the texts of operands."""
    source = expression.value.dtype if type(expression) is E.Cast else ""
    if type(expression) is E.Call and expression.args:
        source = expression.args[0].dtype
    return template.format(*operands, source=source, dtype=expression.dtype)
