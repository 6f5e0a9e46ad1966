"""The operators of expressions: one table of what is known of each.

An operator is a class of nodes (`Add`, `Select`) or an intrinsic, which a `Call` calls by its name
("exp" for `tir.exp`). None of them has an effect. A layer above adds what it knows (a code
generator its instructions) as a column: a mapping from the keys of operators. `register_column`
checks it, so that a new operator cannot be forgotten anywhere. Calls of anything else are no
operators.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import inf
from typing import Any, TypeVar

from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import children
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E

Key = type | str
"""How an operator is known: the class of its nodes, or the name of an intrinsic."""

Value = TypeVar("Value")

OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(12)
"""Python's operator precedences, loosest first."""


class Family(Enum):
    """What operators are about, and what types their operands and results have."""

    ARITHMETIC = "numbers to a number of their type"
    COMPARISON = "numbers to a truth value"
    LOGIC = "truth values to a truth value"
    BITWISE = "integers to an integer of their type"
    FUNCTION = "floats to a float of their type"
    PREDICATE = "a number to a truth value"
    CHOICE = "a condition and two values to one of them"
    CONVERSION = "a value to another type"


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """What is known of an operator on all targets.

    Attributes:
        key: How it is known.
        name: The name of the function of `T` that builds it.
        family: What it is about.
        arity: How many operands it has.
        fold: Its value for constants, exact: the caller brings it into the range of its type.
        symbol: The operator of Python that it is written as; "" where it is a call.
        precedence: The precedence of that.
        overflows: Whether what it gives for integers of a type may lie outside of it: `fold`, and
            C for integers of fewer bits than an int.
        is_exact: Whether what it gives for floats is an operand, but for its sign.
        divides: Whether it fails for integers where the last operand is zero. Every other operator
            may be computed where its value is not needed.
        identity: The value of a type that changes nothing, where the order of operands is free (but
            for rounding).
        is_elementary: Whether it takes many operations.
    """

    key: Key
    name: str
    family: Family
    arity: int = 2
    fold: Callable[..., Any] | None = None
    symbol: str = ""
    precedence: int = ATOM
    overflows: bool = False
    is_exact: bool = False
    divides: bool = False
    identity: Callable[[str], int | float] | None = None
    is_elementary: bool = False


def _truncdiv(a: Any, b: Any) -> Any:
    """The quotient of floats, that of integers rounded towards zero."""
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncmod(a: Any, b: Any) -> Any:
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _minimum(a: Any, b: Any) -> Any:
    """The lesser of two numbers, the first of equal ones (zeros); NaN if either is."""
    return a if a <= b or a != a else b


def _maximum(a: Any, b: Any) -> Any:
    """The greater of two numbers, the first of equal ones (zeros); NaN if either is."""
    return a if a >= b or a != a else b


def _greatest(dtype: str) -> int | float:
    return inf if dtypes.is_float(dtype) else dtypes.max_value(dtype)


def _least(dtype: str) -> int | float:
    return -inf if dtypes.is_float(dtype) else dtypes.min_value(dtype)


def _rows() -> tuple[Operator, ...]:
    """The table, one operator a line."""
    one, exact, wide = Operator, partial(Operator, is_exact=True), partial(Operator, overflows=True)
    arithmetic, comparison, bitwise = Family.ARITHMETIC, Family.COMPARISON, Family.BITWISE
    elementary = "exp exp2 exp10 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan "
    elementary += "asinh acosh atanh sigmoid erf"
    simple = "sqrt rsqrt floor ceil round nearbyint trunc"

    def functions(names: str, arity: int, is_elementary: bool) -> Iterator[Operator]:
        for name in names.split():
            yield wide(name, name, Family.FUNCTION, arity, is_elementary=is_elementary)

    return (
        wide(E.Add, "Add", arithmetic, 2, operator.add, "+", SUM, identity=lambda dtype: 0),
        wide(E.Sub, "Sub", arithmetic, 2, operator.sub, "-", SUM),
        wide(E.Mul, "Mul", arithmetic, 2, operator.mul, "*", PRODUCT, identity=lambda dtype: 1),
        wide(E.Div, "truncdiv", arithmetic, 2, _truncdiv, "/", PRODUCT, divides=True),
        one(E.Mod, "truncmod", arithmetic, 2, _truncmod, divides=True),
        wide(E.FloorDiv, "floordiv", arithmetic, 2, operator.floordiv, "//", PRODUCT, divides=True),
        one(E.FloorMod, "floormod", arithmetic, 2, operator.mod, "%", PRODUCT, divides=True),
        exact(E.Min, "min", arithmetic, 2, _minimum, identity=_greatest),
        exact(E.Max, "max", arithmetic, 2, _maximum, identity=_least),
        one(E.EQ, "EQ", comparison, 2, operator.eq, "==", COMPARISON),
        one(E.NE, "NE", comparison, 2, operator.ne, "!=", COMPARISON),
        one(E.LT, "LT", comparison, 2, operator.lt, "<", COMPARISON),
        one(E.LE, "LE", comparison, 2, operator.le, "<=", COMPARISON),
        one(E.GT, "GT", comparison, 2, operator.gt, ">", COMPARISON),
        one(E.GE, "GE", comparison, 2, operator.ge, ">=", COMPARISON),
        one(E.And, "And", Family.LOGIC, 2, None, "and", AND, identity=lambda dtype: 1),
        one(E.Or, "Or", Family.LOGIC, 2, None, "or", OR, identity=lambda dtype: 0),
        one(E.Not, "Not", Family.LOGIC, 1, operator.not_, "not", NOT),
        one("bitwise_and", "bitwise_and", bitwise, 2, operator.and_, "&", BIT_AND),
        one("bitwise_or", "bitwise_or", bitwise, 2, operator.or_, "|", BIT_OR),
        one("bitwise_xor", "bitwise_xor", bitwise, 2, operator.xor, "^", BIT_XOR),
        wide("bitwise_not", "bitwise_not", bitwise, 1, operator.invert, "~", UNARY),
        wide("shift_left", "shift_left", bitwise, 2, operator.lshift, "<<", SHIFT),
        one("shift_right", "shift_right", bitwise, 2, operator.rshift, ">>", SHIFT),
        *functions(elementary, 1, is_elementary=True),
        *functions(simple, 1, is_elementary=False),
        exact("fabs", "abs", arithmetic, 1),
        wide("abs", "abs", arithmetic, 1),
        one("popcount", "popcount", arithmetic, 1),
        *functions("pow atan2 hypot", 2, is_elementary=True),
        *functions("fmod copysign nextafter ldexp", 2, is_elementary=False),
        one("isnan", "isnan", Family.PREDICATE, 1),
        one("isinf", "isinf", Family.PREDICATE, 1),
        exact(E.Select, "Select", Family.CHOICE, 3),
        exact("if_then_else", "if_then_else", Family.CHOICE, 3),
        exact("likely", "likely", Family.LOGIC, 1),
        one(E.Cast, "Cast", Family.CONVERSION, 1),
        exact("reinterpret", "reinterpret", Family.CONVERSION, 1),
    )


OPERATORS: dict[Key, Operator] = {row.key: row for row in _rows()}
"""The table."""


DIVISIONS = frozenset(row.key for row in OPERATORS.values() if row.divides)
"""The operators that fail for integers where the last operand is zero."""

NODE_OPERATORS: tuple[Any, ...] = tuple(key for key in OPERATORS if isinstance(key, type))
"""The operators that have a class of nodes."""

BINARY_NODES: tuple[Any, ...] = tuple(key for key in NODE_OPERATORS if OPERATORS[key].arity == 2)
"""The classes of nodes with operands `a` and `b`."""


def operator_name(node: Node) -> str:
    """The name of the operator that an expression calls, if it is a call."""
    called = node.op if isinstance(node, E.Call) else None
    return called.name.removeprefix("tir.") if isinstance(called, Op) else ""


def key_of(node: Node) -> Key:
    """The key of an expression's operator, if it is one of the table."""
    return operator_name(node) if isinstance(node, E.Call) else type(node)


def operands_of(node: Any) -> list[Any]:
    """The operands of an operator, in order."""
    return list(node.args if isinstance(node, E.Call) else children(node))


def keys(*families: Family, arity: int = 0) -> tuple[Any, ...]:
    """The keys of the operators of some families, in order; of some `arity` where it is given."""
    return tuple(
        row.key for row in OPERATORS.values() if row.family in families and arity in (0, row.arity)
    )


columns: dict[str, Mapping[Key, Any]] = {}
"""What layers above know of operators, by the name of the column."""


def register_column(
    name: str, entries: Mapping[Any, Value], absent: Mapping[Any, str] = {}
) -> Mapping[Any, Value]:
    """A column of the table: for each operator an entry, or, in `absent`, why there is none.

    Raises:
        ValueError: an operator has neither or both, or a key is none of an operator.
    """
    named = [*entries, *absent]
    missing = OPERATORS.keys() - set(named)
    if missing or len(named) != len(OPERATORS):
        extra = [key for key in named if key not in OPERATORS or named.count(key) > 1]
        raise ValueError(
            f'The column "{name}" needs one entry for each operator, or the reason why there is '
            f"none; it lacks {sorted(map(str, missing))}, and too much are {extra}"
        )
    columns[name] = entries
    return entries
