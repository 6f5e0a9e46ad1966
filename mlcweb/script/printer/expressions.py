"""Expressions as TVMScript, with as few parentheses as Python's operator precedence allows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node
from mlcweb.script.printer.names import Names
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.builtins import FIRST, Builtin, builtin, result_type, takes_type
from mlcweb.tir.intrinsics import BUILDERS
from mlcweb.tir.operators import (
    ATOM,
    BINARY_NODES,
    COMPARISON,
    NOT,
    OPERATORS,
    PRODUCT,
    UNARY,
    Family,
    key_of,
    keys,
)
from mlcweb.tir.reduction import CommReducer, Reduce
from mlcweb.tir.stmt import IterType, IterVar
from mlcweb.tir.target_description import TargetDescription, as_described

Text = tuple[str, int]
"""A piece of source and the precedence of its outermost operator."""

INFIX = tuple(key for key in BINARY_NODES if OPERATORS[key].symbol and key is not E.Div)
"""Nodes that are written as operators of Python."""


def expression(names: Names, value: E.PrimExpr) -> str:
    """The source text of an expression."""
    return _text(names, value)[0]


def arguments(names: Names, values: Sequence[E.PrimExpr]) -> str:
    return ", ".join([expression(names, value) for value in values])


def tuple_text(items: Sequence[str]) -> str:
    """Items as a Python tuple."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def literal(names: Names, value: Any) -> str:
    """The value of an attribute or annotation as source text."""
    if isinstance(value, E.IntImm) and value.dtype in ("int32", "bool"):
        return str(bool(value.value) if value.dtype == "bool" else value.value)
    if isinstance(value, E.StringImm):
        return string(value.value)
    if isinstance(value, E.PrimExpr):
        return expression(names, value)
    if isinstance(value, BufferRegion):
        return region(names, value)
    if isinstance(value, Buffer):
        return names.of(value, value.name)
    if isinstance(value, IterVar):
        return names.of(value.var, value.var.name)
    value = as_described(value)
    if isinstance(value, TargetDescription):
        host = f", host={literal(names, value.host)}" if value.host else ""
        return f"T.target({literal(names, value.target_config)}{host})"
    if isinstance(value, CommReducer):
        return reducer(names, value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(names, item) for item in value) + "]"
    if isinstance(value, dict):
        return dictionary(names, value)
    return repr(value)


def reducer(names: Names, value: CommReducer) -> str:
    identity = f"[{arguments(names, value.identity_element)}]"
    with names.scope():
        parameters = ", ".join(names.define(var, var.name) for var in (*value.lhs, *value.rhs))
        results = [expression(names, part) for part in value.result]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"T.comm_reducer(lambda {parameters}: {result}, {identity})"


def dictionary(names: Names, values: Any) -> str:
    """Attributes as a dictionary display, sorted by key."""
    entries = sorted((str(key), value) for key, value in values.items())
    return "{" + ", ".join(f"{string(key)}: {literal(names, v)}" for key, v in entries) + "}"


def string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def float_literal(value: float, with_point: bool = False) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point where
    none is asked for."""
    if math.isinf(value) or math.isnan(value):
        return string(str(value))
    is_negative_zero = value == 0 and math.copysign(1.0, value) < 0
    if value == int(value) and not with_point and not is_negative_zero:
        return str(int(value))
    return repr(value)


def region(names: Names, value: BufferRegion) -> str:
    """A buffer region: `A[0:16, j]`; a range of one element prints as an index."""
    parts = [range_index(names, part) for part in value.region]
    return _subscript(names.of(value.buffer, value.buffer.name), parts)


def range_index(names: Names, value: Range) -> str:
    start = expression(names, value.min)
    if arithmetic.is_const_int(value.extent, 1):
        return start
    return f"{start}:{expression(names, arithmetic.add(value.min, value.extent))}"


def element(
    names: Names, buffer: Buffer, indices: Sequence[E.PrimExpr], is_stored: bool = False
) -> str:
    """An element of a buffer: `A[i, j]`, or `A[i, 0:4]` for a vector."""
    steps = None if names.dialect.loads_slices else (1,) if is_stored else ()
    parts = [_index(names, index, steps) for index in indices]
    return _subscript(names.of(buffer, buffer.name), parts)


def _subscript(name: str, parts: list[str]) -> str:
    return f"{name}[{', '.join(parts) or '()'}]"


def _index(names: Names, index: E.PrimExpr, steps: Sequence[int] | None) -> str:
    """An index; a vector's is a slice where its step is one of `steps` (None: any)."""
    if not (isinstance(index, E.Ramp) and isinstance(index.stride, E.IntImm)):
        return expression(names, index)
    if not isinstance(index.lanes, int):
        steps = (1,)  # a slice of other steps would have no number of lanes
    if steps is not None and index.stride.value not in steps:
        return expression(names, index)
    stop = arithmetic.add(index.base, arithmetic.multiply(index.stride, index.lanes))
    bounds = f"{expression(names, index.base)}:{expression(names, stop)}"
    return bounds if index.stride.value == 1 else f"{bounds}:{index.stride.value}"


def _operand(names: Names, value: E.PrimExpr, least: int) -> str:
    text, precedence = _text(names, value)
    return text if precedence >= least else f"({text})"


def _infix(names: Names, a: E.PrimExpr, symbol: str, b: E.PrimExpr, precedence: int) -> Text:
    # Python chains comparisons, so that a comparison inside one always needs parentheses.
    left = _operand(names, a, precedence + (precedence == COMPARISON))
    return f"{left} {symbol} {_operand(names, b, precedence + 1)}", precedence


_CONSTANTS = (E.IntImm, E.FloatImm)


def _binary(names: Names, value: Any) -> Text:
    operator = OPERATORS[type(value)]
    if not _reads_back(value, BUILDERS[operator.key]):
        return _named(names, value)
    return _infix(names, value.a, operator.symbol, value.b, operator.precedence)


def _reads_back(value: Any, build: Callable[[Any, Any], Any]) -> bool:
    """Whether reading an operation gives the same node, and nothing is folded."""
    a, b = value.a, value.b
    if type(a) not in _CONSTANTS and type(b) not in _CONSTANTS:
        return True
    try:
        again = build(a, b)
    except DiagnosticError:  # such as a division by zero
        return False
    return type(again) is type(value) and again.a is a and again.b is b


def _named(names: Names, value: Any) -> Text:
    return f"T.{type(value).__name__}({arguments(names, (value.a, value.b))})", ATOM


def _division(names: Names, value: E.Div) -> Text:
    if value.dtype.startswith(("float", "bfloat")) and _reads_back(value, arithmetic.divide):
        return _infix(names, value.a, "/", value.b, PRODUCT)
    return f"T.Div({arguments(names, (value.a, value.b))})", ATOM


def _truncmod(names: Names, value: E.Mod) -> Text:
    if not _reads_back(value, arithmetic.truncmod):
        return _named(names, value)
    return f"T.truncmod({arguments(names, (value.a, value.b))})", ATOM


def _extremum(names: Names, value: E.Min | E.Max) -> Text:
    if value.a is value.b or (type(value.a) in _CONSTANTS and type(value.b) in _CONSTANTS):
        return _named(names, value)
    return f"T.{type(value).__name__.lower()}({arguments(names, (value.a, value.b))})", ATOM


def _not(names: Names, value: E.Not) -> Text:
    if type(value.a) in _CONSTANTS:
        return f"T.Not({expression(names, value.a)})", ATOM
    return f"not {_operand(names, value.a, NOT)}", NOT


def _integer(names: Names, value: E.IntImm) -> Text:
    if value.dtype == names.int_dtype:
        return str(value.value), ATOM if value.value >= 0 else UNARY
    number = bool(value.value) if value.dtype == "bool" else value.value
    return f"T.{value.dtype}({number})", ATOM


def _float(names: Names, value: E.FloatImm) -> Text:
    if value.dtype == names.float_dtype and math.isfinite(value.value):
        return float_literal(value.value, True), ATOM if value.value >= 0 else UNARY
    return f"T.{value.dtype}({float_literal(value.value, names.dialect.writes_points)})", ATOM


def _cast(names: Names, value: E.Cast) -> Text:
    return f"T.Cast({string(value.dtype)}, {expression(names, value.value)})", ATOM


def _select(names: Names, value: E.Select) -> Text:
    parts = (value.condition, value.true_value, value.false_value)
    return f"T.Select({arguments(names, parts)})", ATOM


def _lanes(names: Names, lanes: E.Lanes) -> str:
    return str(lanes) if isinstance(lanes, int) else expression(names, lanes)


def _ramp(names: Names, value: E.Ramp) -> Text:
    line, lanes = arguments(names, (value.base, value.stride)), _lanes(names, value.lanes)
    return f"T.Ramp({line}, {lanes})", ATOM


def _shuffle(names: Names, value: E.Shuffle) -> Text:
    parts = (
        ", ".join(expression(names, part) for part in every)
        for every in (value.vectors, value.indices)
    )
    return f"T.Shuffle([{next(parts)}], [{next(parts)}])", ATOM


def _broadcast(names: Names, value: E.Broadcast) -> Text:
    return f"T.Broadcast({expression(names, value.value)}, {_lanes(names, value.lanes)})", ATOM


def _let(names: Names, value: E.Let) -> Text:
    bound = expression(names, value.value)
    var = names.declare(value.var)
    return f"T.Let({expression(names, value.body)}, where={{{var}: {bound}}})", ATOM


def _call(names: Names, value: E.Call) -> Text:
    if isinstance(value.op, GlobalVar):
        return f"Module.{value.op.name_hint}({arguments(names, value.args)})", ATOM
    name = value.op.name
    constant = all(type(arg) in _CONSTANTS for arg in value.args)
    key = key_of(value)
    operator = OPERATORS.get(key)
    if operator is not None and operator.symbol and not constant:
        if operator.arity == 2:
            return _infix(names, value.args[0], operator.symbol, value.args[1], operator.precedence)
        return f"{operator.symbol}{_operand(names, value.args[0], UNARY)}", operator.precedence
    row = builtin(name.removeprefix("tir."))
    if row is not None and (row.dtype != "void" or value.dtype == "void"):
        return _builtin_call(names, value, row), ATOM
    inside = arguments(names, value.args)
    if operator is not None and key not in keys(Family.BITWISE):
        return f"T.{key}({inside})", ATOM
    comma = ", " if inside else ""
    named = string(names.dialect.prefixed(name))
    return f"T.call_intrin({string(value.dtype)}, {named}{comma}{inside})", ATOM


def _builtin_call(names: Names, value: E.Call, row: Builtin) -> str:
    """A call of a builtin; the type of its result is written where the builtin asks for it first,
    or where it would be read as another."""
    parts = [expression(names, arg) for arg in value.args]
    if row.dtype == FIRST:
        parts.insert(0, string(value.dtype))
    elif value.dtype != result_type(row, value.args) or takes_type(row, value.args):
        parts.append(f"dtype={string(value.dtype)}")
    return f"{row.script_name}({', '.join(parts)})"


def iteration_variable(names: Names, value: IterVar) -> str:
    """An `IterVar` as TVM prints one that stands alone."""
    domain = "None" if value.dom is None else f"T.Range({ends(names, value.dom)})"
    kind = ITERATIONS[value.iter_type]
    name = names.of(value.var, value.var.name)
    return f'T.iter_var({name}, {domain}, "{kind}", {string(value.thread_tag or "")})'


def ends(names: Names, domain: Range) -> str:
    """The first integer of a range and the one after its last."""
    return arguments(names, (domain.min, arithmetic.add(domain.min, domain.extent)))


ITERATIONS = {
    IterType.DATA_PARALLEL: "DataPar",
    IterType.THREAD_INDEX: "ThreadIndex",
    IterType.COMM_REDUCE: "CommReduce",
    IterType.ORDERED: "Ordered",
    IterType.OPAQUE: "Opaque",
}


def _reduce(names: Names, value: Reduce) -> Text:
    combiner = reducer(names, value.combiner)
    axes = ", ".join(iteration_variable(names, axis) for axis in value.axis)
    return (
        f"T.reduce({combiner}, source=[{arguments(names, value.source)}], "
        f"init=[{arguments(names, value.init)}], axis=[{axes}], "
        f"condition={expression(names, value.condition)}, value_index={value.value_index})"
    ), ATOM


def _text(names: Names, value: E.PrimExpr) -> Text:
    printer = _PRINTERS.get(type(value))
    # What no program holds, such as an element of a te.Tensor, says by itself what it is.
    text, precedence = printer(names, value) if printer else (repr(value), ATOM)
    return names.with_marks(value, text), precedence


_PRINTERS: dict[type, Callable[[Names, Any], Text]] = {
    **dict.fromkeys(INFIX, _binary),
    E.Var: lambda names, value: (names.of(value, value.name), ATOM),
    E.BufferLoad: lambda names, value: (element(names, value.buffer, value.indices), ATOM),
    E.StringImm: lambda names, value: (string(value.value), ATOM),
    E.IntImm: _integer,
    E.FloatImm: _float,
    E.Div: _division,
    E.Mod: _truncmod,
    E.Min: _extremum,
    E.Max: _extremum,
    E.Not: _not,
    E.Cast: _cast,
    E.Select: _select,
    E.Ramp: _ramp,
    E.Broadcast: _broadcast,
    E.Shuffle: _shuffle,
    E.Let: _let,
    E.Call: _call,
    Reduce: _reduce,
}


def is_expression(value: Node) -> bool:
    return type(value) in _PRINTERS


def type_text(var: E.Var) -> str:
    """The annotation of a scalar or pointer variable."""
    pointer = var.type_annotation
    return f"T.{var.dtype}" if pointer is None else pointer_text(pointer)


def pointer_text(pointer: E.PointerType) -> str:
    """The type of pointers to memory."""
    scope = "" if pointer.storage_scope == "global" else f", {string(pointer.storage_scope)}"
    return f"T.handle({string(pointer.element_type)}{scope})"
