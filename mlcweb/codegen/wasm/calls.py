"""Calls out of a kernel as WebAssembly's: of functions of the module, or of imported ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.codegen.external import called_name
from mlcweb.codegen.processor.calls import (
    Calls,
    Part,
    Pointer,
    PythonCall,
    Scalar,
    operands_for,
    python_call,
    reach_of,
    result_type,
)
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import FunctionType, Import
from mlcweb.codegen.wasm.select_parallel import LAUNCH_IMPORT, SelectedLoop
from mlcweb.codegen.wasm.select_types import stack_type
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import cast
from mlcweb.tir.function import PrimFunc

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector, Selected

IMPORT_MODULE = "python"
"""The module that Python functions are imported from; a field is the number of the call."""


class WasmCalls(Calls["Selected"]):
    """The calls out of the functions of a module, and the loops that threads share."""

    def __init__(
        self, lookup: Callable[[str], Any], select: Callable[[str, PrimFunc, WasmCalls], Selected]
    ) -> None:
        super().__init__(lookup, select)
        self.loops: list[SelectedLoop] = []

    def imports(self) -> tuple[Import, ...]:
        """The Python functions, numbered, and what launches loops."""
        functions = [
            Import(IMPORT_MODULE, str(number), import_type(call), _import_name(call, number))
            for call, number in self.python.items()
        ]
        return (*functions, LAUNCH_IMPORT) if self.loops else tuple(functions)


def import_type(call: PythonCall) -> FunctionType:
    """The type of the function that a kind of call imports."""
    parameters: list[ValueType] = []
    for argument in call.arguments:
        if isinstance(argument, Pointer):
            parameters += ["i32", "i32"]
        elif isinstance(argument, Scalar):
            parameters.append(stack_type(argument.dtype))
    return FunctionType(tuple(parameters), (stack_type(call.result),))


def _import_name(call: PythonCall, number: int) -> str:
    return f"{call.name}.{number}"


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
    for operand in operands_for(selector.function, func, name, call):
        if isinstance(operand, Part):
            _push_address(selector, operand)
        else:
            selector.push(operand)
    selector.push_scratch()
    needed = selector.scratch + selected.scratch_bytes
    selector.scratch_bytes = max(selector.scratch_bytes, needed)
    selector.emit("call", selected.function.name)
    selector.emit(f"{stack_type(result_type(call))}.const", 0)


def _call_python(selector: FunctionSelector, name: str, call: E.Call) -> None:
    python, operands = python_call(selector.function, name, call)
    for operand in operands:
        if isinstance(operand, Part):
            _push_address(selector, operand)
            selector.push(cast("int32", reach_of(selector.function, operand)))
        else:
            selector.push(operand)
    selector.emit("call", _import_name(python, selector.calls.number(python)))


def _push_address(selector: FunctionSelector, part: Part) -> None:
    selector.push(part.data)
    selector.addresses.add_scaled(part.offset, dtypes.size_in_bytes(part.pointer.dtype))
