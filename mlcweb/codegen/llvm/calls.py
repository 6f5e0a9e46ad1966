"""Calls out of a kernel: to a micro-kernel, which is a function of the same module, or to Python.

A Python function is called through a pointer that the host sets. It takes the address of its
result and then its arguments, two for a pointer (the address and how many elements are there to be
reached), and returns zero, or another number if it raised an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.external import (
    call_arguments,
    called_name,
    check_count,
    check_pointer,
    micro_kernel,
)
from mlcweb.codegen.llvm.expressions import PYTHON_FAILED, passed, received
from mlcweb.codegen.llvm.memory import address
from mlcweb.codegen.llvm.types import argument_type
from mlcweb.codegen.wasm.calls import (
    Part,
    Pointer,
    PythonCall,
    Scalar,
    Text,
    part_of,
    reach_of,
    result_type,
)
from mlcweb.codegen.wasm.select_types import UnsupportedError
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector


class Calls:
    """The calls out of the functions of one module. `lookup` finds what a name means (None where
    that is not known yet), `select` writes a micro-kernel under a name."""

    def __init__(
        self, lookup: Callable[[str], Any], select: Callable[[str, PrimFunc, Calls], None]
    ) -> None:
        self.callees: dict[str, PrimFunc] = {}
        self.python: dict[PythonCall, str] = {}
        self._lookup = lookup
        self._select = select
        self._open: set[str] = set()

    def callee(self, name: str, call: E.Call) -> PrimFunc | None:
        """The micro-kernel of a name, written; None for a Python function."""
        if name in self._open:
            raise UnsupportedError(f'"{name}" calls itself', call.span)
        if name not in self.callees:
            func = self._lookup(name)
            if not isinstance(func, PrimFunc):
                return None
            self._open.add(name)
            func = self.callees[name] = micro_kernel(func)
            self._select(callee_name(name), func, self)
            self._open.remove(name)
        return self.callees[name]

    def imported(self, call: PythonCall) -> str:
        """The variable that holds the pointer for a kind of call."""
        return self.python.setdefault(call, python_name(len(self.python)))


def callee_name(name: str) -> str:
    """What a micro-kernel is called in the module."""
    return f"callee {name}"


def python_name(number: int) -> str:
    """The variable with the pointer of a Python function, by the number of the call."""
    return f"python.{number}"


def external_call(selector: Selector, call: E.Call) -> str:
    """A call out of the kernel; its result."""
    name = called_name(call)
    assert name is not None
    func = selector.calls.callee(name, call)
    if func is None:
        return _call_python(selector, name, call)
    arguments = call_arguments(call)
    check_count(func, name, len(arguments))
    operands: list[tuple[str, str]] = []
    for param, argument in zip(func.params, arguments, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            value = selector.value(cast(param.dtype, argument))
            operands.append(passed(selector, value, param.dtype))
            continue
        part = part_of(selector.function, argument)
        check_pointer(name, buffer, part.pointer.dtype)
        operands.append(("ptr", _address(selector, part)))
    _checked_call(selector, f'@"{callee_name(name)}"', operands)
    return "zeroinitializer"


def _call_python(selector: Selector, name: str, call: E.Call) -> str:
    kinds: list[Pointer | Scalar | Text] = []
    operands: list[tuple[str, str]] = []
    for argument in call_arguments(call):
        if isinstance(argument, E.StringImm):
            kinds.append(Text(argument.value))
        elif dtypes.kind(argument.dtype) == "handle":
            part = part_of(selector.function, argument)
            kinds.append(part.pointer)
            count = selector.value(cast("int64", reach_of(selector.function, part)))
            operands += [("ptr", _address(selector, part)), ("i64", count)]
        else:
            kinds.append(Scalar(argument.dtype))
            operands.append(passed(selector, selector.value(argument), argument.dtype))
    result = result_type(call)
    python = PythonCall(name, tuple(kinds), result)
    variable = selector.calls.imported(python)
    place = selector.builder.allocate(8)
    function = selector.builder.value(f'load ptr, ptr @"{variable}"')
    _checked_call(selector, function, [("ptr", place), *operands])
    loaded = selector.builder.value(f"load {argument_type(result)}, ptr {place}")
    return received(selector, loaded, result)


def _checked_call(selector: Selector, function: str, operands: list[tuple[str, str]]) -> None:
    """A call; if it failed, this function does."""
    arguments = ", ".join(f"{kind} {value}" for kind, value in operands)
    status = selector.builder.value(f"call i32 {function}({arguments})")
    if not function.startswith("@"):
        good = selector.builder.value(f"icmp eq i32 {status}, 0")
        selector.builder.stop_unless(good, str(PYTHON_FAILED), lambda: None)
        return
    selector.builder.stop_if_failed(status)


def _address(selector: Selector, part: Part) -> str:
    return address(selector, part.data, part.offset, part.pointer.dtype)
