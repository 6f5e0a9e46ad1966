"""The target "wasm": kernels compiled to WebAssembly, run by the engine that is there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from mlcweb.codegen.processor.checks import FAULT_CHECK, FAULT_INDEX
from mlcweb.codegen.registry import BOUNDS_CHECK, RELAXED_MADD, FunctionLookup
from mlcweb.codegen.wasm.kernel import REPEAT_SUFFIX, WasmModule, compile_functions
from mlcweb.codegen.wasm.module import Module
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.codegen.wasm.select_types import stack_type
from mlcweb.codegen.wasm.text import Text
from mlcweb.ir.errors import TVMError
from mlcweb.lower.options import BOUND_CHECKERS
from mlcweb.runtime.direct_call import PointerCall
from mlcweb.runtime.host.compiled_kernel import CompiledKernel, build_kernels, known_by
from mlcweb.runtime.host.engine import Host, Instance, Launcher, engine
from mlcweb.runtime.host.parallel_launch import Explain
from mlcweb.runtime.host.python_calls import HostFunction, host_function
from mlcweb.runtime.host.ranges import merged, piece_of
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.runtime.storage import Storage
from mlcweb.tir.function import PrimFunc

_log = logging.getLogger("mlcweb")


def build(
    functions: Mapping[str, PrimFunc],
    lookup: FunctionLookup,
    options: Options | None = None,
    host: Host | None = None,
    *,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """A kernel for each function, by default with the options that suit the engine."""
    host = host or engine()
    options = options or options_for(host, config)
    return build_kernels(
        functions, lookup, lambda name, func: WasmKernel(name, func, options, host, lookup)
    )


def options_for(host: Host, config: Mapping[str, Any] = MappingProxyType({})) -> Options:
    """The options that suit an engine, and those that were asked for: products and sums are fused
    unless they may not be, where the engine can do that."""
    checked = config.get(BOUND_CHECKERS, host.options.bounds_check)
    return replace(
        host.options,
        bounds_check=config.get(BOUNDS_CHECK, checked),
        relaxed_madd=config.get(RELAXED_MADD, True) and host.relaxed_simd,
    )


def compile_together(kernels: Mapping[str, WasmKernel]) -> WasmModule:
    """One module of several kernels that stand alone. Its loops are serial."""
    first = next(iter(kernels.values()))
    functions = {name: kernel.function for name, kernel in kernels.items()}
    lookup = partial(known_by, first.lookup)
    options = replace(first.options, parallel=False)
    return compile_functions(functions, options, first.host.shared, lookup, first.distinct)


@dataclass(frozen=True)
class LoadedModule(WasmModule):
    """A module from a file. What its text would be is what its function is compiled to again."""

    kernel: WasmKernel | None = None
    loaded: bytes = b""

    @property
    def code(self) -> bytes:  # type: ignore[override]
        return self.loaded

    @cached_property
    def text(self) -> Text:
        assert self.kernel is not None
        return self.kernel.compiled((), self.kernel.host.shared).text


def load_code(
    code: bytes, functions: Mapping[str, PrimFunc], scratch_bytes: int, lookup: FunctionLookup
) -> dict[str, Any] | None:
    """Kernels with code from a file; None where the engine does not take it, for want of an
    instruction, or because its memory is of another kind."""
    host = engine()
    kernels: dict[str, Any] = {}
    try:
        for name, func in functions.items():
            kernel = WasmKernel(name, func, options_for(host), host, lookup)
            functions = {name: func}
            compiled = LoadedModule(
                Module(), functions, {}, scratch_bytes, kernel=kernel, loaded=code
            )
            kernel.variants[()] = _Variant(host, name, compiled, lookup)
            kernels[name] = kernel
    except Exception as error:  # each engine has errors of its own
        _log.info("compiled again: %s", error)
        return None
    return kernels


class WasmKernel(CompiledKernel["_Variant"]):
    """A `Kernel` whose code is WebAssembly. Arrays outside of its memory are copied in and out."""

    language = "wat"

    def __init__(
        self,
        name: str,
        func: PrimFunc,
        options: Options,
        host: Host,
        lookup: FunctionLookup,
        distinct: bool = True,
    ) -> None:
        super().__init__(name, func, lookup, distinct)
        self.options = options
        self.host = host

    def new_variant(self, sizes: tuple[int, ...]) -> _Variant:
        compiled = self.compiled(sizes, self.host.shared)
        return _Variant(self.host, self.name, compiled, self.lookup)

    def compiled(self, sizes: tuple[int, ...], shared: bool) -> WasmModule:
        """The module for these values of the symbolic sizes, for memory that is shared or not.

        Raises:
            UnsupportedError: something in the function has no WebAssembly form.
        """
        func = self.specialized(sizes)
        lookup = partial(known_by, self.lookup)
        functions = {self.name: func}
        compiled = compile_functions(functions, self.options, shared, lookup, self.distinct)
        if compiled.parallel and compiled.python_calls and not self.host.python_in_threads:
            serial = replace(self.options, parallel=False)
            return compile_functions(functions, serial, shared, lookup, self.distinct)
        return compiled

    @property
    def stands_alone(self) -> bool:
        """Whether code for constant sizes is all that a call needs."""
        if self.symbols:
            return False
        compiled = self.variant(()).compiled
        return not (compiled.python_calls or compiled.checks)

    @property
    def is_parallel(self) -> bool:
        """Whether code for constant sizes has loops that threads share."""
        return not self.symbols and bool(self.variant(()).compiled.parallel)

    def pointers(self, arguments: tuple[Any, ...]) -> PointerCall | None:
        if len(self._positions) < len(self.function.params):
            return None
        variant = self.variant_for(arguments)
        if variant.compiled.python_calls:
            return None
        return PointerCall(self.host, variant.bind, variant.failure, variant.explain)

    def run_code(self, *arguments: Any) -> None:
        variant = self.variant_for(arguments)
        with self._in_memory(arguments) as values:
            variant.run(*values)

    def time_batch(self, number: int, *arguments: Any) -> float:
        """Seconds that `number` calls take, in a loop of the module's own."""
        with self._in_memory(arguments) as values:
            arrays = [values[position] for position in self._positions]
            shared = self.distinct and len({*arrays}) < len(arrays)
            variant = (self._aliased if shared else self).variant_for(arguments)
            return variant.time(number, *values)

    @contextmanager
    def _in_memory(self, arguments: tuple[Any, ...]) -> Iterator[list[Any]]:
        """The arguments with addresses for arrays. What lies outside of the memory is copied in,
        pieces that overlap as one; what may have been written is copied back at the end."""
        values = list(arguments)
        outside: dict[int, np.ndarray[Any, Any]] = {}
        for position in self._positions:
            array = arguments[position]
            address = self.host.address_of(array)
            if address is None:
                outside[position] = array if isinstance(array, np.ndarray) else array.view()
            values[position] = address
        if not outside:
            yield values
            return
        compact = {position: np.ascontiguousarray(array) for position, array in outside.items()}
        starts = {p: a.__array_interface__["data"][0] for p, a in compact.items()}
        pieces = merged((starts[p], array.nbytes) for p, array in compact.items())
        copies: dict[tuple[int, int], Storage] = {}
        for piece in pieces:
            copies[piece] = self.host.allocate(piece[1])
            copies[piece].write(np.asarray(_Bytes(*piece)))
        nothing = self.host.allocate(0)
        changed: set[tuple[int, int]] = set()
        for position, array in compact.items():
            values[position] = nothing.address
            if array.nbytes:
                piece = piece_of(starts[position], pieces)
                values[position] = copies[piece].address + starts[position] - piece[0]
                if position in self._written:
                    changed.add(piece)
        yield values
        for piece in changed:
            np.asarray(_Bytes(*piece))[...] = copies[piece].read()
        for position in self._written & outside.keys():
            if compact[position] is not outside[position]:
                outside[position][...] = compact[position]

    def for_shared_arrays(self) -> WasmKernel:
        return WasmKernel(
            self.name, self.function, self.options, self.host, self.lookup, distinct=False
        )

    @property
    def source(self) -> str:
        """The code as text: of the latest sizes, where they are symbolic."""
        if not self.variants:
            return f";; {self.name} is compiled when its sizes are known\n"
        return next(reversed(self.variants.values())).compiled.text.text


class _Bytes:
    """Bytes of Python's memory, as NumPy may see them."""

    def __init__(self, start: int, nbytes: int) -> None:
        self.__array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (start, False), "version": 3,
        }  # fmt: skip


class _Variant:
    """Code on its way to be called, with the scratch memory that it needs."""

    def __init__(self, host: Host, name: str, compiled: WasmModule, lookup: FunctionLookup) -> None:
        self.compiled = compiled
        self.host = host
        self.lookup = lookup
        self._failures: list[BaseException] = []
        imports = self._imports(self._failures)
        self.launcher: Launcher | None = None
        if compiled.parallel:
            self.launcher = host.launcher(compiled, self._another_instance)
            imports.append(self.launcher.host_function(self._failures))
        instance = host.instantiate(compiled.code, imports)
        func = compiled.functions[name]
        types = [
            "i32" if param in func.buffer_map else stack_type(param.dtype) for param in func.params
        ]
        self.instance = instance
        self.scratch = host.allocate(compiled.scratch_bytes)
        self.name, self.types = name, [*types, "i32"]
        self.function = instance.function(name, self.types)
        self.timer = instance.timer(name + REPEAT_SUFFIX, ["i32", *self.types])
        self.failure = instance.failure

    def _imports(self, failures: list[BaseException]) -> list[HostFunction]:
        calls = self.compiled.python_calls
        return [host_function(call, self.host, self.lookup, failures) for call in calls]

    def _another_instance(self) -> tuple[Instance, Explain]:
        """An instance for a thread, and what explains its errors."""
        failures: list[BaseException] = []
        launcher = self.launcher
        assert launcher is not None
        imports = [*self._imports(failures), launcher.host_function(failures)]
        instance = self.instance.another(imports)
        return instance, partial(self._explained, instance, failures)

    def bind(self, *addresses: int) -> Callable[[], None]:
        """The engine's own call of the kernel with arrays at these addresses, which raises
        `failure`."""
        return self.instance.bound(self.name, self.types, (*addresses, self.scratch.address))

    def run(self, *values: Any) -> None:
        """Call the kernel with addresses and numbers."""
        self._call(self.function, *values)

    def time(self, number: int, *values: Any) -> float:
        """The seconds that so many calls take."""
        return self._call(self.timer, number, *values)

    def _call(self, function: Callable[..., Any], *values: Any) -> Any:
        scratch = self.scratch
        if self.launcher is not None:
            self.launcher.check_not_within()
        if self.compiled.python_calls:
            # Python may call this kernel again before it is done with its scratch memory.
            scratch = self.host.allocate(self.compiled.scratch_bytes)
        try:
            return function(*values, scratch.address)
        except TVMError as failure:
            raise self.explain(failure) from None

    def explain(self, failure: BaseException) -> BaseException:
        """The error to be raised of one of the engine: the exception of a Python function that the
        kernel called, or the check that failed."""
        return self._explained(self.instance, self._failures, failure)

    def _explained(
        self, instance: Instance, failures: list[BaseException], failure: BaseException
    ) -> BaseException:
        if failures:
            original = failures[0]
            failures.clear()
            return original
        error = instance.explain(failure)
        if not (isinstance(error, KernelTrap) and error.reason == "UNREACHABLE"):
            return error
        checks = self.compiled.checks
        number = instance.variable(FAULT_CHECK) if checks else 0
        if not number:
            return error
        return checks[number - 1].error(instance.variable(FAULT_INDEX))
