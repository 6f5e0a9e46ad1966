"""Writes an expression of this package, or of TVM, as one and the same Python text.

Stands alone, so that an interpreter that has only TVM can load it.
"""

from __future__ import annotations

from typing import Any

_SYMBOLS = {
    "Mul": ("*", 7),
    "FloorDiv": ("//", 7),
    "FloorMod": ("%", 7),
    "Add": ("+", 6),
    "Sub": ("-", 6),
    "LT": ("<", 4),
    "LE": ("<=", 4),
    "GT": (">", 4),
    "GE": (">=", 4),
}
_FUNCTIONS = {
    "EQ": "EQ",
    "NE": "NE",
    "Min": "min",
    "Max": "max",
    "And": "And",
    "Or": "Or",
    "Div": "truncdiv",
    "Mod": "truncmod",
}


def infix(expression: Any, above: int = 0) -> str:
    """The text, in parentheses where an operator of strength `above` needs them."""
    name = type(expression).__name__
    if name in _SYMBOLS:
        symbol, strength = _SYMBOLS[name]
        text = f"{infix(expression.a, strength)} {symbol} {infix(expression.b, strength + 1)}"
        return f"({text})" if strength < above else text
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({infix(expression.a)}, {infix(expression.b)})"
    if name == "Not":
        return f"Not({infix(expression.a)})"
    if name == "Select":
        parts = (expression.condition, expression.true_value, expression.false_value)
        return f"Select({', '.join(infix(part) for part in parts)})"
    if name == "Call":
        return f"{expression.op.name.split('.')[-1]}({', '.join(map(infix, expression.args))})"
    if name == "Cast":
        return f"cast({infix(expression.value)})"
    if name in ("IntImm", "FloatImm"):
        return str(bool(expression.value)) if _is_bool(expression) else str(expression.value)
    return str(getattr(expression, "name", None) or expression.name_hint)


def _is_bool(expression: Any) -> bool:
    return str(getattr(expression, "dtype", "") or expression.ty) == "bool"
