"""Expressions as Python text with the exact semantics of their types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from mlcweb.arith.interval import ValueRanges
from mlcweb.codegen.external import call_arguments, called_name
from mlcweb.codegen.interpreter.operators import fill, form_of
from mlcweb.codegen.names import NameTable
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import Dispatcher, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.builtins import unsupported
from mlcweb.tir.operators import NODE_OPERATORS, OPERATORS, key_of, operands_of, operator_name

_ATOM = re.compile(r"[\w.]+(\([^()]*\)|\[[^\[\]()]*\])?")

Site = tuple[str, str, str, Span | None]


class ExpressionText(Dispatcher):
    """Writes expressions. `names` names variables and buffers, `ranges` knows their bounds.

    `sites` collects the accesses that need a check while running, `owners` maps the data variable
    of each buffer to the buffer that owns the memory.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.names = NameTable(reserved=("at", "lookup", *reserved))
        self.ranges = ValueRanges()
        self.sites: list[Site] = []
        self.owners: dict[E.PrimExpr, Buffer] = {}
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

    @on(E.Var)
    def variable(self, var: E.Var) -> str:
        if dtypes.kind(var.dtype) == "handle" and var in self.owners:
            return f"{self.names[self.owners[var]]}.reshape(-1)"
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

    @on(*NODE_OPERATORS)
    def operation(self, expression: E.PrimExpr) -> str:
        """An operator, brought back into the range of its type where it may leave it."""
        form = form_of(expression)
        assert form is not None
        operands = operands_of(expression)
        vector = dtypes.lanes(operands[0].dtype) > 1
        template = form.array if vector else form.scalar
        write = self.text if template.endswith(")") else self.operand
        text = fill(template, expression, [write(operand) for operand in operands])
        overflows = OPERATORS[key_of(expression)].overflows
        if overflows and not vector and dtypes.is_integer(expression.dtype):
            if self.ranges.can_overflow(expression):
                return f"{expression.dtype}({text})"
        return text

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

    @on(E.Shuffle)
    def shuffle(self, expression: E.Shuffle) -> str:
        vectors = "".join(f"{self.text(vector)}, " for vector in expression.vectors)
        positions = ", ".join(self.text(index) for index in expression.indices)
        one = len(expression.indices) == 1
        return f"shuffle(({vectors}), {positions if one else f'[{positions}]'})"

    @on(E.Let)
    def let(self, expression: E.Let) -> str:
        if dtypes.is_integer(expression.var.dtype):
            self.ranges.bind(expression.var, *self.ranges.interval(expression.value))
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
        if self.ranges.in_bounds(buffer, indices):
            return f"{name}[{texts or '()'}]"
        return f"{name}[at({self.new_site(action, buffer, span)}, {name}, {texts})]"

    def new_site(self, action: str, buffer: Buffer, span: Span | None) -> int:
        """The number of an access that is checked while running."""
        self.sites.append((action, buffer.name, self.block, span))
        return len(self.sites) - 1

    @on(E.Call)
    def call(self, call: E.Call) -> str:
        if called_name(call) is not None:
            return f"{dtypes.element_of(call.dtype)}({self.effect(call)})"
        if form_of(call) is not None:
            return self.operation(call)
        handler = _CALLS.get(operator_name(call))
        if handler is None:
            raise TVMError(unsupported(operator_name(call), "Python form"), call.span)
        return handler(self, call)

    def effect(self, call: E.Call) -> str:
        """A call whose value is not used."""
        called = called_name(call)
        if called is None:
            return self.text(call)
        texts = (self.text(argument) for argument in call_arguments(call))
        return f"external_call({', '.join((repr(called), 'lookup', *texts))})"


def _owner(writer: ExpressionText, data: E.PrimExpr) -> Buffer:
    owner = writer.owners.get(data) if isinstance(data, E.Var) else None
    if owner is None:
        raise TVMError(f"{data} is not the data of a buffer", data.span)
    return owner


def _access_ptr(writer: ExpressionText, call: E.Call) -> str:
    _, data, offset, extent, _ = call.args
    owner = _owner(writer, data)
    return f"pointer({writer.names[owner]}, {writer.text(offset)}, {writer.text(extent)})"


def _array_argument(writer: ExpressionText, call: E.Call) -> str:
    data, shape, strides, _, _, offset = call.args
    if not isinstance(shape, E.Call) or not is_const_int(strides, 0):
        raise TVMError("Only compact buffers are passed as arrays: pass an access_ptr", call.span)
    owner = _owner(writer, data)
    extents = "".join(f"{writer.text(extent)}, " for extent in shape.args)
    start = "0" if offset is owner.elem_offset else writer.text(offset)
    return f"array_argument({writer.names[owner]}, ({extents}), {start})"


def _nothing(writer: ExpressionText, call: E.Call) -> str:
    return "None"


_CALLS: dict[str, Callable[[ExpressionText, Any], str]] = {
    "tvm_access_ptr": _access_ptr,
    "tvm_stack_make_array": _array_argument,
    "tvm_storage_sync": _nothing,
    "assume": _nothing,
}
