"""Calls out of a kernel: to a micro-kernel, which is compiled into the same module, or to Python.

A micro-kernel is called directly, with pointers. A Python function is called in one way for each
kind of call; of a pointer it is told the address and how many elements are there to be reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

from mlcweb.codegen.external import (
    call_arguments,
    called_name,
    check_count,
    check_pointer,
    micro_kernel,
)
from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.ir.node import Node
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import children
from mlcweb.lower.parameters import RESULT
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.builtins import OPS
from mlcweb.tir.contents import calls_in
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import WRITE_ACCESS

Code = TypeVar("Code")


@dataclass(frozen=True, slots=True)
class Pointer:
    """An argument that is memory: `dtype` elements. It takes two values: address and count."""

    dtype: str
    writes: bool


@dataclass(frozen=True, slots=True)
class Scalar:
    """An argument that is a number."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Text:
    """An argument that is known already."""

    value: str


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A kind of call of a Python function: its name, its arguments, the type of its result."""

    name: str
    arguments: tuple[Pointer | Scalar | Text, ...]
    result: str


class Calls(Generic[Code]):
    """The calls out of the functions of one module. `lookup` finds what a name means (None where
    that is not known yet), `select` selects the code of a micro-kernel."""

    def __init__(
        self, lookup: Callable[[str], Any], select: Callable[[str, PrimFunc, Any], Code]
    ) -> None:
        self.callees: dict[str, tuple[PrimFunc, Code]] = {}
        self.python: dict[PythonCall, int] = {}
        self._lookup = lookup
        self._select = select
        self._open: set[str] = set()

    def callee(self, name: str, call: E.Call) -> tuple[PrimFunc, Code] | None:
        """The micro-kernel of a name, selected; None for a Python function."""
        callee = self.callees.get(name)
        if callee is not None:
            return callee
        func = self._lookup(name)
        if not isinstance(func, PrimFunc):
            return None
        if RESULT in func.attrs:
            raise UnsupportedError(f'A kernel calls "{name}", which returns a number', call.span)
        if name in self._open:
            raise UnsupportedError(f'"{name}" calls itself', call.span)
        self._open.add(name)
        func = micro_kernel(func)
        self.callees[name] = func, self._select(name, func, self)
        self._open.remove(name)
        return self.callees[name]

    def number(self, call: PythonCall) -> int:
        """The number of a kind of call in the module."""
        return self.python.setdefault(call, len(self.python))


def calls_in_expressions(func: PrimFunc) -> bool:
    """Whether a value that a function computes with comes from a call out of it."""
    if all(called_name(call) is None for call in calls_in(func.body)):
        return False
    pending: list[Node] = [func.body]
    while pending:
        node = pending.pop()
        if isinstance(node, E.Call) and called_name(node) is not None:
            return True
        # A call that is a statement is no expression, but its arguments are.
        pending += children(node.value if isinstance(node, S.Evaluate) else node)
    return False


def operands_for(
    function: PrimFunc, callee: PrimFunc, name: str, call: E.Call
) -> list[Part | E.PrimExpr]:
    """What a call in a function passes to a micro-kernel: a part of memory, or a number of the type
    of the parameter."""
    arguments = call_arguments(call)
    check_count(callee, name, len(arguments))
    operands: list[Part | E.PrimExpr] = []
    for param, argument in zip(callee.params, arguments, strict=True):
        buffer = callee.buffer_map.get(param)
        if buffer is None:
            operands.append(cast(param.dtype, argument))
        else:
            part = part_of(function, argument)
            check_pointer(name, buffer, part.pointer.dtype)
            operands.append(part)
    return operands


def python_call(
    function: PrimFunc, name: str, call: E.Call
) -> tuple[PythonCall, list[Part | E.PrimExpr]]:
    """The kind of a call of a Python function, and what it passes while running."""
    arguments: list[Pointer | Scalar | Text] = []
    operands: list[Part | E.PrimExpr] = []
    for argument in call_arguments(call):
        if isinstance(argument, E.StringImm):
            arguments.append(Text(argument.value))
        elif dtypes.kind(argument.dtype) == "handle":
            part = part_of(function, argument)
            operands.append(part)
            arguments.append(part.pointer)
        else:
            operands.append(argument)
            arguments.append(Scalar(argument.dtype))
    return PythonCall(name, tuple(arguments), result_type(call)), operands


def result_type(call: E.Call) -> str:
    """The type of a call's value, also where it has none."""
    return "int32" if dtypes.kind(call.dtype) in ("void", "handle") else call.dtype


@dataclass(frozen=True, slots=True)
class Part:
    """What a pointer of a call points to: a part of a buffer, from `offset` on, in elements; to its
    end where no `extent` is said."""

    pointer: Pointer
    data: E.Var
    offset: E.PrimExpr
    extent: E.PrimExpr | None
    span: Span | None


def part_of(function: PrimFunc, pointer: E.PrimExpr) -> Part:
    """What a pointer that a function passes points to."""
    if isinstance(pointer, E.Var):
        dtype = _owner(function, pointer).dtype
        return Part(Pointer(dtype, True), pointer, const(0), None, pointer.span)
    if not (isinstance(pointer, E.Call) and pointer.op is OPS["tvm_access_ptr"]):
        raise UnsupportedError(f"{pointer} is no pointer that can be passed", pointer.span)
    element, data, offset, extent, mask = pointer.args
    assert isinstance(data, E.Var)
    writes = bool(mask.value & WRITE_ACCESS) if isinstance(mask, E.IntImm) else True
    return Part(Pointer(element.dtype, writes), data, offset, extent, pointer.span)


def reach_of(function: PrimFunc, part: Part) -> E.PrimExpr:
    """How many elements a pointer reaches, to the end of its buffer at most."""
    owner = _owner(function, part.data)
    shape = None if owner.strides else constant_shape(owner)
    if shape is not None:
        left = const(prod(shape), part.offset.dtype) - part.offset
        return left if part.extent is None else E.Min(cast(left.dtype, part.extent), left)
    if part.extent is None:
        raise UnsupportedError(
            f'The size of "{owner.name}" is not known; pass an access_ptr with an extent',
            part.span,
        )
    return part.extent


def _owner(function: PrimFunc, data: E.Var) -> Buffer:
    """The buffer that a pointer belongs to."""
    for buffer in function.parameter_buffers:
        if buffer.data is data:
            return buffer
    for part in S.find_statements(function.body, S.AllocBuffer):
        if part.buffer.data is data:
            return part.buffer
    raise UnsupportedError(f'"{data.name}" is no buffer of this function', data.span)
