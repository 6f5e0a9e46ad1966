"""Calls out of a kernel: to a micro-kernel, which is compiled into the same module, or to Python.

A micro-kernel is called directly, with pointers. A Python function is imported once for each kind
of call; of a pointer it is told the address and how many elements are there to be reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.external import (
    call_arguments,
    called_name,
    check_count,
    check_pointer,
    micro_kernel,
)
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import FunctionType, Import
from mlcweb.codegen.wasm.select_parallel import LAUNCH_IMPORT, SelectedLoop
from mlcweb.codegen.wasm.select_types import UnsupportedError, stack_type
from mlcweb.ir.node import Node
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import children
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.builtins import OPS
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector, Selected

IMPORT_MODULE = "python"
"""The module that Python functions are imported from; a field is the number of the call."""

WRITES = 2
"""The bit of the mask of an access pointer that says that elements are written."""


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

    @property
    def type(self) -> FunctionType:
        """The type of the imported function."""
        parameters: list[ValueType] = []
        for argument in self.arguments:
            if isinstance(argument, Pointer):
                parameters += ["i32", "i32"]
            elif isinstance(argument, Scalar):
                parameters.append(stack_type(argument.dtype))
        return FunctionType(tuple(parameters), (stack_type(self.result),))


class Calls:
    """The calls out of the functions of one module. `lookup` finds what a name means (None where
    that is not known yet), `select` compiles a micro-kernel. `loops` are those that threads
    share."""

    def __init__(
        self, lookup: Callable[[str], Any], select: Callable[[str, PrimFunc, Calls], Selected]
    ) -> None:
        self.callees: dict[str, tuple[PrimFunc, Selected]] = {}
        self.python: dict[PythonCall, str] = {}
        self.loops: list[SelectedLoop] = []
        self._lookup = lookup
        self._select = select
        self._open: set[str] = set()

    def callee(self, name: str, call: E.Call) -> tuple[PrimFunc, Selected] | None:
        """The micro-kernel of a name, compiled; None for a Python function."""
        known = self.callees.get(name)
        if known is not None:
            return known
        func = self._lookup(name)
        if not isinstance(func, PrimFunc):
            return None
        if name in self._open:
            raise UnsupportedError(f'"{name}" calls itself', call.span)
        self._open.add(name)
        func = micro_kernel(func)
        self.callees[name] = func, self._select(name, func, self)
        self._open.remove(name)
        return self.callees[name]

    def imported(self, call: PythonCall) -> str:
        """The name of the function that a Python function is imported as."""
        return self.python.setdefault(call, f"{call.name}.{len(self.python)}")

    def imports(self) -> tuple[Import, ...]:
        """The Python functions, numbered, and what launches loops."""
        functions = [
            Import(IMPORT_MODULE, str(number), call.type, name)
            for number, (call, name) in enumerate(self.python.items())
        ]
        return (*functions, LAUNCH_IMPORT) if self.loops else tuple(functions)


def calls_in_expressions(func: PrimFunc) -> bool:
    """Whether a value that a function computes with comes from a call out of it."""
    pending: list[Node] = [func.body]
    while pending:
        node = pending.pop()
        if isinstance(node, E.Call) and called_name(node) is not None:
            return True
        # A call that is a statement is no expression, but its arguments are.
        pending += children(node.value if isinstance(node, S.Evaluate) else node)
    return False


def external_call(selector: FunctionSelector, call: E.Call) -> None:
    """Emit a call out of the kernel, which leaves its result on the stack."""
    name = called_name(call)
    assert name is not None
    callee = selector.calls.callee(name, call)
    if callee is None:
        _call_python(selector, name, call)
    else:
        _call_function(selector, name, call, *callee)


def _call_function(
    selector: FunctionSelector, name: str, call: E.Call, func: PrimFunc, selected: Selected
) -> None:
    arguments = call_arguments(call)
    check_count(func, name, len(arguments))
    for param, argument in zip(func.params, arguments, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            selector.push(cast(param.dtype, argument))
            continue
        part = part_of(selector.function, argument)
        check_pointer(name, buffer, part.pointer.dtype)
        _push_address(selector, part)
    selector.emit("local.get", selector.builder.parameter("scratch"))
    selector.emit("i32.const", selector.scratch)
    selector.emit("i32.add")
    needed = selector.scratch + selected.scratch_bytes
    selector.scratch_bytes = max(selector.scratch_bytes, needed)
    selector.emit("call", selected.function.name)
    selector.emit(f"{stack_type(result_type(call))}.const", 0)


def _call_python(selector: FunctionSelector, name: str, call: E.Call) -> None:
    arguments: list[Pointer | Scalar | Text] = []
    for argument in call_arguments(call):
        if isinstance(argument, E.StringImm):
            arguments.append(Text(argument.value))
        elif dtypes.kind(argument.dtype) == "handle":
            part = part_of(selector.function, argument)
            arguments.append(part.pointer)
            _push_address(selector, part)
            selector.push(cast("int32", reach_of(selector.function, part)))
        else:
            arguments.append(Scalar(argument.dtype))
            selector.push(argument)
    python = PythonCall(name, tuple(arguments), result_type(call))
    selector.emit("call", selector.calls.imported(python))


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
    writes = bool(mask.value & WRITES) if isinstance(mask, E.IntImm) else True
    return Part(Pointer(element.dtype, writes), data, offset, extent, pointer.span)


def _push_address(selector: FunctionSelector, part: Part) -> None:
    selector.push(part.data)
    selector.addresses.add_scaled(part.offset, dtypes.size_in_bytes(part.pointer.dtype))


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
    for part in S.statements_in(function.body):
        if isinstance(part, S.AllocBuffer) and part.buffer.data is data:
            return part.buffer
    raise UnsupportedError(f'"{data.name}" is no buffer of this function', data.span)
