"""The target "wasm": kernels compiled to WebAssembly, run by the engine that is there.

Symbolic sizes become constants: a function is compiled once for each combination of sizes that it
meets. What has no WebAssembly form is left to NumPy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mlcweb.codegen.interpreter.support import AssertionFailed, IndexOutOfBounds
from mlcweb.codegen.registry import FunctionLookup, find_target
from mlcweb.codegen.wasm.checks import FAULT_CHECK, FAULT_INDEX
from mlcweb.codegen.wasm.kernel import REPEAT_SUFFIX, WasmModule, compile_functions
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.codegen.wasm.select_types import UnsupportedError, stack_type
from mlcweb.runtime.host.engine import Host, engine
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.runtime.storage import Storage
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.transform.specialize import specialize

MOST_VARIANTS = 64
"""A function keeps the code for so many combinations of sizes."""

_log = logging.getLogger("mlcweb")


def build(
    functions: Mapping[str, PrimFunc],
    lookup: FunctionLookup,
    options: Options | None = None,
    host: Host | None = None,
) -> dict[str, Any]:
    """A kernel for each function, by default with the options that suit the engine."""
    host = host or engine()
    options = options or host.options
    kernels: dict[str, Any] = {}
    for name, func in functions.items():
        try:
            kernel = WasmKernel(name, func, options, host)
            if not kernel.symbols:
                kernel.variant(())
            kernels[name] = kernel
        except UnsupportedError as error:
            _log.info('"%s" runs in NumPy: %s', name, error.message)
            kernels.update(find_target("numpy").build({name: func}, lookup))
    return kernels


class WasmKernel:
    """A `Kernel` whose code is WebAssembly. Arrays outside of its memory are copied in and out."""

    language = "wat"
    takes_arrays = True

    def __init__(self, name: str, func: PrimFunc, options: Options, host: Host) -> None:
        self.name = name
        self.function = func
        self.options = options
        self.host = host
        self.symbols = _symbols(func)
        self._variants: dict[tuple[int, ...], _Variant] = {}
        self._positions = [
            index for index, param in enumerate(func.params) if param in func.buffer_map
        ]

    def variant(self, sizes: tuple[int, ...]) -> _Variant:
        """The code for these values of the symbolic sizes."""
        known = self._variants.get(sizes)
        if known is None:
            func = self.function
            if sizes:
                func = specialize(func, dict(zip(self.symbols, sizes, strict=True)))
            compiled = compile_functions({self.name: func}, self.options, self.host.shared)
            known = _Variant(self.host, self.name, compiled)
            if len(self._variants) >= MOST_VARIANTS:
                self._variants.pop(next(iter(self._variants)))
            self._variants[sizes] = known
        return known

    def variant_for(self, arguments: tuple[Any, ...]) -> _Variant:
        if not self.symbols:
            return self.variant(())
        places = self.symbols.values()
        return self.variant(tuple(arguments[position].shape[axis] for position, axis in places))

    def run(self, *arguments: Any) -> None:
        """Call the kernel with NumPy arrays and numbers."""
        self._call(self.variant_for(arguments).run, arguments)

    def time_batch(self, number: int, *arguments: Any) -> float:
        """Seconds that `number` calls take, in a loop of the module's own."""
        variant = self.variant_for(arguments)
        return self._call(lambda *values: variant.time(number, *values), arguments)

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        values = list(arguments)
        copies: list[tuple[np.ndarray[Any, Any], Storage]] = []
        for position in self._positions:
            array = values[position]
            address = self.host.address_of(array)
            if address is None:
                storage = self.host.allocate(array.nbytes)
                storage.write(np.ascontiguousarray(array))
                copies.append((array, storage))
                address = storage.address
            values[position] = address
        result = function(*values)
        for array, storage in copies:
            array[...] = storage.read().view(array.dtype).reshape(array.shape)
        return result

    @cached_property
    def run_aliased(self) -> Callable[..., None]:
        """The same for arrays that share memory."""
        func = self.function.without_attr("tir.noalias")
        return WasmKernel(self.name, func, self.options, self.host).run  # type: ignore[arg-type]

    @property
    def source(self) -> str:
        """The code as text: of the latest sizes, where they are symbolic."""
        if not self._variants:
            return f";; {self.name} is compiled when its sizes are known\n"
        return next(reversed(self._variants.values())).compiled.text.text


class _Variant:
    """Code on its way to be called, with the scratch memory that it needs."""

    def __init__(self, host: Host, name: str, compiled: WasmModule) -> None:
        self.compiled = compiled
        instance = host.instantiate(compiled.encoded.code)
        func = compiled.functions[name]
        types = [
            "i32" if param in func.buffer_map else stack_type(param.dtype) for param in func.params
        ]
        self.scratch = host.allocate(compiled.scratch_bytes)
        address = self.scratch.address
        run = instance.function(name, [*types, "i32"])
        timer = instance.timer(name + REPEAT_SUFFIX, ["i32", *types, "i32"])
        self.instance = instance
        self.run = lambda *values: self.guarded(run, (*values, address))
        self.time = lambda number, *values: self.guarded(timer, (number, *values, address))

    def guarded(self, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """Call a function; a failed check is reported in the program's own terms."""
        try:
            return function(*values)
        except KernelTrap as trap:
            checks = self.compiled.checks
            number = self.instance.variable(FAULT_CHECK) if checks else 0
            if trap.reason != "UNREACHABLE" or not number:
                raise
            check = checks[number - 1]
            error = AssertionFailed if check.message else IndexOutOfBounds
            message = check.report(self.instance.variable(FAULT_INDEX))
            raise error(message, check.span) from trap


def _symbols(func: PrimFunc) -> dict[E.Var, tuple[int, int]]:
    """Variables that stand for sizes: the argument that tells the value, and its axis."""
    symbols: dict[E.Var, tuple[int, int]] = {}
    for position, param in enumerate(func.params):
        buffer = func.buffer_map.get(param)
        for axis, extent in enumerate(buffer.shape if buffer else ()):
            if isinstance(extent, E.Var):
                symbols.setdefault(extent, (position, axis))
    return symbols
