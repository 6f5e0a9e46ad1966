"""Functions to WebAssembly modules: what is exported, how it is called, and the bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlcweb.codegen.processor.calls import PythonCall
from mlcweb.codegen.processor.checks import FAULT_CHECK, FAULT_INDEX, Check
from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.calls import WasmCalls
from mlcweb.codegen.wasm.helpers import helper_functions
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.codegen.wasm.module import (
    MAXIMUM_PAGES,
    Export,
    Function,
    Global,
    GlobalType,
    Import,
    Memory,
    Module,
)
from mlcweb.codegen.wasm.pipeline import lower_for_wasm
from mlcweb.codegen.wasm.select_function import FunctionSelector, Options, Selected
from mlcweb.codegen.wasm.select_parallel import ParallelLoop
from mlcweb.codegen.wasm.text import Text, print_text
from mlcweb.lower.outline_parallel import outline_parallel
from mlcweb.tir.function import PrimFunc

REPEAT_SUFFIX = "_repeat"
DEFAULT_OPTIONS = Options()


@dataclass(frozen=True)
class WasmModule:
    """A compiled module.

    It imports one memory, ("env", "memory"), shared between threads if `shared`. For each function
    it exports the function under its name, which takes i32 pointers to buffers and plain scalars in
    the order of its parameters and then a pointer to `scratch_bytes` of memory that it may use, and
    a function `<name>_repeat`, which takes how often to call it first. Where there are `checks`,
    the globals `fault_check` and `fault_index` say which one stopped a kernel. The Python functions
    that it calls are imported after the memory, as ("python", "0"), ("python", "1"), …, and after
    them, where there are `parallel` loops, ("parallel", "launch"); see `select_parallel`.
    """

    module: Module
    functions: Mapping[str, PrimFunc]
    lowered: Mapping[str, PrimFunc]
    scratch_bytes: int
    checks: tuple[Check, ...] = ()
    python_calls: tuple[PythonCall, ...] = ()
    parallel: tuple[ParallelLoop, ...] = ()

    @cached_property
    def code(self) -> bytes:
        """The module in the binary format."""
        return encode(self.module)

    @cached_property
    def text(self) -> Text:
        """The module in the text format, with a source tag for each line."""
        return print_text(self.module)


def compile_functions(
    functions: Mapping[str, PrimFunc],
    options: Options = DEFAULT_OPTIONS,
    shared: bool = False,
    lookup: Callable[[str], Any] = lambda name: None,
    distinct: bool | None = None,
) -> WasmModule:
    """Compile TensorIR functions of constant shapes. `lookup` finds the micro-kernels that they
    call by name; what it finds no PrimFunc for is called in Python. `distinct` is that of
    `lower_for_wasm`.

    Raises:
        UnsupportedError: something in them has no WebAssembly form.
    """
    if distinct is False or options.bounds_check:
        # Threads would see each other's writes, or find another fault first.
        options = replace(options, parallel=False)
    checks: list[Check] = []
    lowered = {
        name: lower_for_wasm(func, options, checks, distinct) for name, func in functions.items()
    }
    return compile_lowered(functions, lowered, options, shared, checks, lookup)


def compile_lowered(
    functions: Mapping[str, PrimFunc],
    lowered: Mapping[str, PrimFunc],
    options: Options = DEFAULT_OPTIONS,
    shared: bool = False,
    checks: Sequence[Check] = (),
    lookup: Callable[[str], Any] = lambda name: None,
) -> WasmModule:
    """Compile functions that are lowered and optimised already; `checks` are those in them."""
    checks = list(checks)

    def select_callee(name: str, func: PrimFunc, calls: WasmCalls) -> Selected:
        func = lower_for_wasm(func, options, checks)
        return FunctionSelector(func, name, options, checks, calls).select()

    calls = WasmCalls(lookup, select_callee)
    selected: dict[str, Selected] = {}
    for name, func in lowered.items():
        regions = outline_parallel(func) if options.parallel else {}
        selector = FunctionSelector(func, name, options, checks, calls, regions)
        selected[name] = selector.select()
    callees = [entry for _, entry in calls.callees.values()]
    kernels = [entry.function for entry in selected.values()]
    loops = [_repeat(function) for function in kernels]
    needed = [*selected.values(), *callees]
    helpers = helper_functions(name for entry in needed for name in entry.helpers)
    exports = [Export(function.name, "function", function.name) for function in (*kernels, *loops)]
    memory = Memory(1, MAXIMUM_PAGES, True) if shared else Memory(1)
    variables = (FAULT_CHECK, FAULT_INDEX) if checks else ()
    exports += [Export(name, "global", name) for name in variables]
    entries = [selected.entry for selected in calls.loops]
    exports += [Export(each.loop.entry, "function", each.entry.name) for each in calls.loops]
    threaded = (*(parallel_loop.function for parallel_loop in calls.loops), *entries)
    module = Module(
        functions=(*kernels, *loops, *(entry.function for entry in callees), *threaded, *helpers),
        imports=(Import("env", "memory", memory), *calls.imports()),
        globals=tuple(
            Global(name, GlobalType("i32", True), ("i32.const", 0)) for name in variables
        ),
        exports=tuple(exports),
    )
    scratch = max((entry.scratch_bytes for entry in selected.values()), default=0)
    python = tuple(calls.python)
    parallel = tuple(parallel_loop.loop for parallel_loop in calls.loops)
    return WasmModule(
        module, dict(functions), dict(lowered), scratch, tuple(checks), python, parallel
    )


def _repeat(function: Function) -> Function:
    """A function that calls another so many times as its first argument says."""
    names = [*function.local_names[: len(function.type.parameters)]]
    parameters: list[tuple[str, ValueType]] = [("number", "i32")]
    parameters += zip(names, function.type.parameters, strict=True)
    builder = FunctionBuilder(function.name + REPEAT_SUFFIX, parameters)
    builder.code("local.get 0")
    with builder.branch(), builder.loop("calls"):
        for index in range(len(names)):
            builder.emit("local.get", index + 1)
        builder.emit("call", function.name)
        builder.code("local.get 0  i32.const 1  i32.sub  local.tee 0  br_if calls")
    return builder.build()
