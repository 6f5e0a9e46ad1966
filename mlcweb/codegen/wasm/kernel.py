"""Functions to WebAssembly modules: what is exported, how it is called, and the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mlcweb.codegen.wasm.binary import Encoded, encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.checks import FAULT_CHECK, FAULT_INDEX, Check, lower_with_checks
from mlcweb.codegen.wasm.helpers import helper_functions
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import (
    Export,
    Function,
    Global,
    GlobalType,
    Import,
    Memory,
    Module,
)
from mlcweb.codegen.wasm.select_function import FunctionSelector, Options
from mlcweb.codegen.wasm.text import Text, print_text
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.transform import lower
from mlcweb.tir.transform.optimize import optimize

MAXIMUM_PAGES = 65536
REPEAT_SUFFIX = "_repeat"
DEFAULT_OPTIONS = Options()


@dataclass(frozen=True)
class WasmModule:
    """A compiled module.

    It imports one memory, ("env", "memory"), shared between threads if `shared`. For each function
    it exports the function under its name, which takes i32 pointers to buffers and plain scalars in
    the order of its parameters and then a pointer to `scratch_bytes` of memory that it may use, and
    a function `<name>_repeat`, which takes how often to call it first. Where there are `checks`,
    the globals `fault_check` and `fault_index` say which one stopped a kernel.
    """

    module: Module
    functions: Mapping[str, PrimFunc]
    lowered: Mapping[str, PrimFunc]
    scratch_bytes: int
    checks: tuple[Check, ...] = ()

    @cached_property
    def encoded(self) -> Encoded:
        """The bytes, and where in them each instruction is."""
        return encode(self.module)

    @cached_property
    def text(self) -> Text:
        """The module in the text format, with a source tag for each line."""
        return print_text(self.module)


def compile_functions(
    functions: Mapping[str, PrimFunc], options: Options = DEFAULT_OPTIONS, shared: bool = False
) -> WasmModule:
    """Compile TensorIR functions of constant shapes.

    Raises:
        UnsupportedError: something in them has no WebAssembly form.
    """
    checks: list[Check] = []
    if options.bounds_check:
        lowered = {name: lower_with_checks(func, checks) for name, func in functions.items()}
    else:
        lowered = {name: optimize(lower(func)) for name, func in functions.items()}
    selected = {
        name: FunctionSelector(func, name, options, checks).select()
        for name, func in lowered.items()
    }
    made = [entry.function for entry in selected.values()]
    loops = [_repeat(function) for function in made]
    helpers = helper_functions(name for entry in selected.values() for name in entry.helpers)
    exports = [Export(function.name, "function", function.name) for function in (*made, *loops)]
    memory = Memory(1, MAXIMUM_PAGES, True) if shared else Memory(1)
    variables = (FAULT_CHECK, FAULT_INDEX) if checks else ()
    exports += [Export(name, "global", name) for name in variables]
    module = Module(
        functions=(*made, *loops, *helpers),
        imports=(Import("env", "memory", memory),),
        globals=tuple(
            Global(name, GlobalType("i32", True), ("i32.const", 0)) for name in variables
        ),
        exports=tuple(exports),
    )
    scratch = max((entry.scratch_bytes for entry in selected.values()), default=0)
    return WasmModule(module, dict(functions), lowered, scratch, tuple(checks))


def _repeat(function: Function) -> Function:
    """A function that calls another so many times as its first argument says."""
    names = [*function.local_names[: len(function.type.parameters)]]
    parameters: list[tuple[str, ValueType]] = [("number", "i32")]
    parameters += zip(names, function.type.parameters, strict=True)
    builder = FunctionBuilder(function.name + REPEAT_SUFFIX, parameters)
    emit = builder.emit
    emit("local.get", 0)
    with builder.branch(), builder.loop("calls") as again:
        for index in range(len(names)):
            emit("local.get", index + 1)
        emit("call", function.name)
        emit("local.get", 0)
        emit("i32.const", 1)
        emit("i32.sub")
        emit("local.tee", 0)
        builder.jump_if(again)
    return builder.build()
