"""Calls out of a kernel as LLVM's: of functions of the module, or through pointers.

A Python function is called through a pointer that the host sets. It takes the address of its
result and then its arguments, two for a pointer (the address and how many elements are there to be
reached), and returns zero, or another number if it raised an exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcweb.codegen.external import called_name
from mlcweb.codegen.llvm.expressions import PYTHON_FAILED, passed, received
from mlcweb.codegen.llvm.memory import address
from mlcweb.codegen.llvm.types import argument_type
from mlcweb.codegen.processor.calls import Part, operands_for, python_call, reach_of
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector


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
    callee = selector.calls.callee(name, call)
    if callee is None:
        return _call_python(selector, name, call)
    func, _ = callee
    operands = [
        ("ptr", _address(selector, operand))
        if isinstance(operand, Part)
        else passed(selector, selector.value(operand), operand.dtype)
        for operand in operands_for(selector.function, func, name, call)
    ]
    _checked_call(selector, f'@"{callee_name(name)}"', operands)
    return "zeroinitializer"


def _call_python(selector: Selector, name: str, call: E.Call) -> str:
    python, parts = python_call(selector.function, name, call)
    operands: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, Part):
            count = selector.value(cast("int64", reach_of(selector.function, part)))
            operands += [("ptr", _address(selector, part)), ("i64", count)]
        else:
            operands.append(passed(selector, selector.value(part), part.dtype))
    place = selector.builder.allocate(8)
    variable = python_name(selector.calls.number(python))
    function = selector.builder.value(f'load ptr, ptr @"{variable}"')
    _checked_call(selector, function, [("ptr", place), *operands])
    loaded = selector.builder.value(f"load {argument_type(python.result)}, ptr {place}")
    return received(selector, loaded, python.result)


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
