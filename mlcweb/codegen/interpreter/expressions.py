"""Expressions as Python text with the exact semantics of their types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from mlcweb.codegen.external import call_arguments, called_name
from mlcweb.codegen.interpreter.ranges import Ranges
from mlcweb.codegen.names import NameTable
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import Dispatcher, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.intrinsics import BINARY_NAMES, UNARY_NAMES

ELEMENTWISE = frozenset({*UNARY_NAMES, *BINARY_NAMES, "fabs", "abs", "isnan", "isinf"})
_SYMBOLS: dict[type, str] = {
    E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%",
    E.EQ: "==", E.NE: "!=", E.LT: "<", E.LE: "<=", E.GT: ">", E.GE: ">=",
}  # fmt: skip
_BITWISE = {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<",
    "shift_right": ">>",
}  # fmt: skip
_ATOM = re.compile(r"[\w.]+(\([^()]*\)|\[[^\[\]()]*\])?")

Site = tuple[str, str, str, Span | None]


class ExpressionText(Dispatcher):
    """Writes expressions. `names` names variables and buffers, `ranges` knows their bounds.

    `sites` collects the accesses that need a check while running, `owners` maps the data variable
    of each buffer to the buffer that owns the memory.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.names = NameTable(reserved=("at", "lookup", *reserved))
        self.ranges = Ranges()
        self.sites: list[Site] = []
        self.owners: dict[int, Buffer] = {}
        self.block = ""

    def text(self, expression: Node) -> str:
        """Python text of an expression."""
        handler = self.table.get(type(expression))
        if handler is None:
            raise TVMError(f"No Python form for {type(expression).__name__}", expression.span)
        return handler(self, expression)

    def operand(self, expression: E.PrimExpr) -> str:
        """Text that can stand next to any operator."""
        text = self.text(expression)
        return text if _ATOM.fullmatch(text) else f"({text})"

    def wrapped(self, expression: E.PrimExpr, text: str) -> str:
        """`text`, brought back into the range of its type where it may leave it."""
        if (
            dtypes.is_integer(expression.dtype)
            and dtypes.lanes(expression.dtype) == 1
            and self.ranges.can_overflow(expression)
        ):
            return f"{expression.dtype}({text})"
        return text

    @on(E.Var)
    def variable(self, var: E.Var) -> str:
        if dtypes.kind(var.dtype) == "handle" and id(var) in self.owners:
            return f"{self.names[self.owners[id(var)]]}.reshape(-1)"
        return self.names[var]

    @on(E.IntImm)
    def integer(self, constant: E.IntImm) -> str:
        return str(bool(constant.value) if constant.dtype == "bool" else constant.value)

    @on(E.FloatImm)
    def floating(self, constant: E.FloatImm) -> str:
        value = constant.value
        return f"{constant.dtype}({repr(value) if math.isfinite(value) else repr(str(value))})"

    @on(E.StringImm)
    def string(self, constant: E.StringImm) -> str:
        return repr(constant.value)

    @on(E.Cast)
    def cast(self, expression: E.Cast) -> str:
        return (
            f'cast({self.text(expression.value)}, "{expression.value.dtype}", "{expression.dtype}")'
        )

    @on(E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod)
    def arithmetic(self, expression: E.BinaryExpr) -> str:
        symbol = _SYMBOLS[type(expression)]
        return self.wrapped(
            expression, f"{self.operand(expression.a)} {symbol} {self.operand(expression.b)}"
        )

    @on(E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE)
    def comparison(self, expression: E.ComparisonExpr) -> str:
        symbol = _SYMBOLS[type(expression)]
        return f"{self.operand(expression.a)} {symbol} {self.operand(expression.b)}"

    @on(E.Div)
    def division(self, expression: E.Div) -> str:
        if dtypes.is_float(expression.dtype):
            return f"{self.operand(expression.a)} / {self.operand(expression.b)}"
        call = f"truncdiv({self.text(expression.a)}, {self.text(expression.b)})"
        return f"{expression.dtype}({call})" if dtypes.lanes(expression.dtype) == 1 else call

    @on(E.Mod)
    def remainder(self, expression: E.Mod) -> str:
        return f"truncmod({self.text(expression.a)}, {self.text(expression.b)})"

    @on(E.Min, E.Max)
    def extremum(self, expression: E.BinaryExpr) -> str:
        name = "minimum" if isinstance(expression, E.Min) else "maximum"
        prefix = "np." if dtypes.lanes(expression.dtype) > 1 else ""
        return f"{prefix}{name}({self.text(expression.a)}, {self.text(expression.b)})"

    @on(E.And, E.Or)
    def connective(self, expression: E.ComparisonExpr) -> str:
        vector = dtypes.lanes(expression.dtype) > 1
        word = (
            ("&" if vector else "and")
            if isinstance(expression, E.And)
            else ("|" if vector else "or")
        )
        return f"{self.operand(expression.a)} {word} {self.operand(expression.b)}"

    @on(E.Not)
    def negation(self, expression: E.Not) -> str:
        vector = dtypes.lanes(expression.dtype) > 1
        return f"{'~' if vector else 'not '}{self.operand(expression.a)}"

    @on(E.Select)
    def select(self, expression: E.Select) -> str:
        return self.choice(expression.condition, expression.true_value, expression.false_value)

    def choice(self, condition: E.PrimExpr, yes: E.PrimExpr, no: E.PrimExpr) -> str:
        if dtypes.lanes(condition.dtype) > 1:
            return f"np.where({self.text(condition)}, {self.text(yes)}, {self.text(no)})"
        return f"({self.text(yes)} if {self.text(condition)} else {self.text(no)})"

    @on(E.Ramp)
    def ramp(self, expression: E.Ramp) -> str:
        element = dtypes.element_of(expression.dtype)
        return (
            f"ramp({self.text(expression.base)}, {self.text(expression.stride)}, "
            f'{expression.lanes}, "{element}")'
        )

    @on(E.Broadcast)
    def broadcast(self, expression: E.Broadcast) -> str:
        element = dtypes.element_of(expression.dtype)
        return f'broadcast({self.text(expression.value)}, {expression.lanes}, "{element}")'

    @on(E.Let)
    def let(self, expression: E.Let) -> str:
        if dtypes.is_integer(expression.var.dtype):
            self.ranges.bind(expression.var, *self.ranges.of(expression.value))
        name, value = self.names[expression.var], self.text(expression.value)
        return f"(lambda {name}: {self.text(expression.body)})({value})"

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> str:
        element = self.access("Reading", load.buffer, load.indices, load.span)
        if dtypes.lanes(load.dtype) > 1 or dtypes.is_float(load.dtype):
            return element
        return f"{'bool' if dtypes.is_bool(load.dtype) else 'int'}({element})"

    def access(
        self, action: str, buffer: Buffer, indices: tuple[E.PrimExpr, ...], span: Span | None
    ) -> str:
        """An element of a buffer, with a check where its index is not known to be in bounds."""
        name = self.names[buffer]
        texts = ", ".join(self.text(index) for index in indices)
        if self.in_bounds(buffer, indices):
            return f"{name}[{texts or '()'}]"
        return f"{name}[at({self.new_site(action, buffer, span)}, {name}, {texts})]"

    def new_site(self, action: str, buffer: Buffer, span: Span | None) -> int:
        """The number of an access that is checked while running."""
        self.sites.append((action, buffer.name, self.block, span))
        return len(self.sites) - 1

    def in_bounds(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> bool:
        for index, extent in zip(indices, buffer.shape, strict=True):
            if not isinstance(extent, E.IntImm) or dtypes.lanes(index.dtype) > 1:
                return False
            low, high = self.ranges.of(index)
            if low < 0 or high >= extent.value:
                return False
        return True

    @on(E.Call)
    def call(self, call: E.Call) -> str:
        if called_name(call) is not None:
            return f"{dtypes.element_of(call.dtype)}({self.effect(call)})"
        assert isinstance(call.op, Op)
        name = call.op.name.removeprefix("tir.")
        if name in ELEMENTWISE:
            arguments = ", ".join(self.text(argument) for argument in call.args)
            return self.wrapped_result(call, f"intrinsic_{name}({arguments})")
        handler = _CALLS.get(name)
        if handler is None:
            raise TVMError(f"Operator {call.op.name} has no Python form", call.span)
        return handler(self, call)

    def effect(self, call: E.Call) -> str:
        """A call whose value is not used."""
        called = called_name(call)
        if called is None:
            return self.text(call)
        texts = (self.text(argument) for argument in call_arguments(call))
        return f"external_call({', '.join((repr(called), 'lookup', *texts))})"

    def wrapped_result(self, call: E.Call, text: str) -> str:
        if dtypes.is_integer(call.dtype) and dtypes.lanes(call.dtype) == 1:
            return f"{call.dtype}({text})"
        return text


def _if_then_else(writer: ExpressionText, call: E.Call) -> str:
    return writer.choice(*call.args)


def _likely(writer: ExpressionText, call: E.Call) -> str:
    return writer.text(call.args[0])


def _bitwise(writer: ExpressionText, call: E.Call) -> str:
    symbol = _BITWISE[call.op.name.removeprefix("tir.")]  # type: ignore[union-attr]
    a, b = (writer.operand(argument) for argument in call.args)
    return writer.wrapped_result(call, f"{a} {symbol} {b}")


def _bitwise_not(writer: ExpressionText, call: E.Call) -> str:
    return writer.wrapped_result(call, f"~{writer.operand(call.args[0])}")


def _reinterpret(writer: ExpressionText, call: E.Call) -> str:
    value = call.args[0]
    return f'reinterpret({writer.text(value)}, "{value.dtype}", "{call.dtype}")'


def _access_ptr(writer: ExpressionText, call: E.Call) -> str:
    _, data, offset, extent, _ = call.args
    owner = writer.owners[id(data)]
    return f"pointer({writer.names[owner]}, {writer.text(offset)}, {writer.text(extent)})"


def _nothing(writer: ExpressionText, call: E.Call) -> str:
    return "None"


_CALLS: dict[str, Callable[[ExpressionText, Any], str]] = {
    "if_then_else": _if_then_else,
    "likely": _likely,
    **dict.fromkeys(_BITWISE, _bitwise),
    "bitwise_not": _bitwise_not,
    "reinterpret": _reinterpret,
    "tvm_access_ptr": _access_ptr,
    "tvm_storage_sync": _nothing,
    "assume": _nothing,
}
