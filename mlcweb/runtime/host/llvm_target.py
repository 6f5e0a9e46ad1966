"""The target "llvm": kernels compiled to machine code, called with pointers."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from mlcweb.codegen.llvm.calls import python_name
from mlcweb.codegen.llvm.expressions import CHECK_FAILED, DIVIDED_BY_ZERO, PYTHON_FAILED
from mlcweb.codegen.llvm.kernel import REPEAT_SUFFIX, LlvmModule, compile_functions, symbol
from mlcweb.codegen.llvm.machine import Processor
from mlcweb.codegen.llvm.parallel import LAUNCH, THREADS
from mlcweb.codegen.llvm.types import argument_type
from mlcweb.codegen.processor.calls import Pointer, PythonCall, Scalar
from mlcweb.codegen.processor.checks import FAULT_CHECK, FAULT_INDEX
from mlcweb.codegen.registry import (
    BOUNDS_CHECK,
    LLVM_OPT_LEVEL,
    LLVM_PROCESSOR,
    RELAXED_MADD,
    FunctionLookup,
)
from mlcweb.ir.errors import TVMError
from mlcweb.lower.options import BOUND_CHECKERS
from mlcweb.runtime.direct_call import PointerCall
from mlcweb.runtime.host import engine
from mlcweb.runtime.host import llvm_launch as threads
from mlcweb.runtime.host.compiled_kernel import CompiledKernel, build_kernels, known_by
from mlcweb.runtime.host.llvm_engine import (
    C_TYPES,
    Compilation,
    Stopped,
    linked,
    load,
    processor,
    runs_here,
)
from mlcweb.runtime.host.python_calls import host_function
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.runtime.storage import HOST_MEMORY
from mlcweb.tir.function import PrimFunc

DEFAULT_LEVEL = 3

_log = logging.getLogger("mlcweb")


@dataclass(frozen=True, slots=True)
class Options:
    """What code is made for, and how."""

    processor: Processor
    level: int = DEFAULT_LEVEL
    bounds_check: bool = False
    fused: bool = True


def build(
    functions: Mapping[str, PrimFunc],
    lookup: FunctionLookup,
    *,
    config: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """A kernel for each function."""
    options = options_of(config)
    return build_kernels(
        functions, lookup, lambda name, func: LlvmKernel(name, func, options, lookup)
    )


def options_of(config: Mapping[str, Any]) -> Options:
    """What the options of a build and of its target ask for."""
    options = config.get(LLVM_PROCESSOR, {})
    level = config.get(LLVM_OPT_LEVEL, DEFAULT_LEVEL)
    if level not in range(4):
        raise TVMError(f"-opt-level is a number from 0 to 3, not {level}")
    features = options.get("mattr", "")
    return Options(
        processor(
            str(options.get("mtriple", "")),
            str(options.get("mcpu", "")),
            features if isinstance(features, str) else ",".join(features),
        ),
        level,
        config.get(BOUNDS_CHECK, config.get(BOUND_CHECKERS, False)),
        config.get(RELAXED_MADD, True),
    )


def write_machine_code(path: Path, kernels: Sequence[Any], library: bytes) -> bool:
    """Write an object file, or a shared library, in which there are also these bytes; False where
    nothing here links a library, or code for it cannot stand alone."""
    try:
        compilation = compile_together(kernels)
        for kernel in kernels:
            for call in kernel.variant(()).compiled.python_calls:
                raise TVMError(
                    f'"{call.name}" is a Python function: code that calls it cannot stand alone'
                )
    except TVMError:
        if path.suffix == ".o":
            raise
        return False
    content = "".join(f"\\{byte:02X}" for byte in library)
    text = f'@mlcweb.library = constant [{len(library)} x i8] c"{content}"\n'
    code = replace(compilation, text=text + compilation.text).object_code()
    if path.suffix == ".o":
        path.write_bytes(code)
        return True
    return linked(code, path)


def compile_together(kernels: Sequence[Any]) -> Compilation:
    """One module of all functions, on its way to machine code.

    Raises:
        TVMError: one has symbolic sizes, and no code until it is called, or is left to NumPy.
    """
    without = [k for k in kernels if not isinstance(k, LlvmKernel) or k.symbols]
    if without:
        raise TVMError(
            f'"{without[0].name}" has no machine code of its own: it has symbolic sizes, or what '
            "LLVM has no form for; export_library with another suffix writes the program"
        )
    first = kernels[0]
    compiled = first.compiled({kernel.name: kernel.function for kernel in kernels})
    return Compilation(compiled.text, first.options.processor, first.options.level)


class LlvmKernel(CompiledKernel["_Variant"]):
    """A `Kernel` whose code is that of the processor."""

    language = "ll"

    def __init__(
        self,
        name: str,
        func: PrimFunc,
        options: Options,
        lookup: FunctionLookup,
        distinct: bool = True,
    ) -> None:
        super().__init__(name, func, lookup, distinct)
        self.options = options

    def new_variant(self, sizes: tuple[int, ...]) -> _Variant:
        compiled = self.compiled({self.name: self.specialized(sizes)})
        return _Variant(self.name, compiled, self.options, self.lookup)

    def compiled(self, functions: Mapping[str, PrimFunc]) -> LlvmModule:
        """The module of functions, with the options of this one."""
        return compile_functions(
            functions,
            self.options.processor,
            lookup=partial(known_by, self.lookup),
            distinct=self.distinct,
            bounds_check=self.options.bounds_check,
            fused=self.options.fused,
        )

    def pointers(self, arguments: tuple[Any, ...]) -> PointerCall | None:
        if len(self._positions) < len(self.function.params):
            return None
        if not runs_here(self.options.processor):
            return None
        variant = self.variant_for(arguments)
        if variant.compiled.python_calls:
            return None
        memory, base = _arrays_memory()
        return PointerCall(memory, partial(variant.bind, base), Stopped, variant.explain)

    def run_code(self, *arguments: Any) -> None:
        self._call(lambda variant, values: variant.run(*values), arguments)

    def time_batch(self, number: int, *arguments: Any) -> float:
        """Seconds that `number` calls take, in a loop of the module's own."""
        addresses = [address_of(arguments[position]) for position in self._positions]
        shared = self.distinct and len({*addresses}) < len(addresses)
        kernel = self._aliased if shared else self
        return kernel._call(lambda variant, values: variant.time(number, *values), arguments)

    def _call(self, call: Callable[[_Variant, list[Any]], Any], arguments: tuple[Any, ...]) -> Any:
        """Call with addresses for arrays; those that are not compact are copied in and out."""
        values = list(arguments)
        copies: dict[int, np.ndarray[Any, Any]] = {}
        for position in self._positions:
            array = arguments[position]
            if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
                array = copies[position] = np.ascontiguousarray(array)
            values[position] = address_of(array)
        result = call(self.variant_for(arguments), values)
        for position in self._written & copies.keys():
            arguments[position][...] = copies[position]
        return result

    def for_shared_arrays(self) -> LlvmKernel:
        return LlvmKernel(self.name, self.function, self.options, self.lookup, distinct=False)

    @property
    def source(self) -> str:
        """The module as text: of the latest sizes, where they are symbolic."""
        if not self.variants:
            return f"; {self.name} is compiled when its sizes are known\n"
        return next(reversed(self.variants.values())).compiled.text


def trap_of(name: str, stopped: Stopped) -> KernelTrap:
    """Why a kernel stopped that no check of its program stopped."""
    reasons = {DIVIDED_BY_ZERO: "INTEGER_DIVISION_BY_ZERO", CHECK_FAILED: "UNREACHABLE"}
    return KernelTrap(name, reasons.get(stopped.status, "OUT_OF_MEMORY"))


def _arrays_memory() -> tuple[object, int]:
    """What most arrays are a piece of, and where that begins."""
    if not engine.available():
        return HOST_MEMORY, 0
    host: Any = engine.engine()
    return host, host.base


def address_of(array: Any) -> int:
    """Where an NDArray or a NumPy array lies."""
    storage = getattr(array, "storage", None)
    if storage is not None:
        array = storage.view()
    return array.__array_interface__["data"][0]


class _Variant:
    """Machine code for constant sizes; that of another machine cannot be called."""

    def __init__(
        self, name: str, compiled: LlvmModule, options: Options, lookup: FunctionLookup
    ) -> None:
        self.name = name
        self.compiled = compiled
        self.compilation = Compilation(compiled.text, options.processor, options.level)
        self._lookup = lookup
        self._failures: list[BaseException] = []
        func = compiled.functions[name]
        self._kinds = [
            "ptr" if param in func.buffer_map else argument_type(param.dtype)
            for param in func.params
        ]
        if runs_here(options.processor):
            assert self.instance

    @cached_property
    def instance(self) -> Any:
        instance = load(self.compilation.code(), self.compilation.processor)
        if self.compiled.parallel:
            instance.set_pointer(THREADS, ctypes.pointer(threads.THREADS.value))
            instance.set_pointer(LAUNCH, threads.launcher(self._failures))
        for number, call in enumerate(self.compiled.python_calls):
            function = _callback(call, self._lookup, self._failures)
            instance.set_pointer(python_name(number), function)
        return instance

    @cached_property
    def _function(self) -> Callable[..., None]:
        return self.instance.function(symbol(self.name), self._kinds)

    @cached_property
    def _timer(self) -> Callable[..., float]:
        return self.instance.timer(symbol(self.name) + REPEAT_SUFFIX, self._kinds)

    def bind(self, base: int, *addresses: int) -> Callable[[], None]:
        """A call of the kernel with arrays at these places from `base` on."""
        return self.instance.bound(symbol(self.name), [base + address for address in addresses])

    def run(self, *values: Any) -> None:
        """Call the kernel with addresses and numbers."""
        try:
            self._function(*values)
        except Stopped as stopped:
            raise self.explain(stopped) from None

    def time(self, number: int, *values: Any) -> float:
        """The seconds that so many calls take."""
        try:
            return self._timer(number, *values)
        except Stopped as stopped:
            raise self.explain(stopped) from None

    def explain(self, stopped: Stopped) -> BaseException:
        """The error to be raised: the exception of a Python function that the kernel called, the
        check that failed, or why it stopped."""
        failures = [*self._failures]
        self._failures.clear()
        if stopped.status == PYTHON_FAILED:
            return failures[0]
        if stopped.status != CHECK_FAILED:
            return trap_of(self.name, stopped)
        check = self.compiled.checks[self.instance.variable(FAULT_CHECK, "i32") - 1]
        return check.error(self.instance.variable(FAULT_INDEX, "i64"))


class _ProcessMemory:
    """The memory of the process, as `host_function` sees it."""

    visible = True
    carries_exceptions = False
    addresses = 1 << 64
    nbytes = 1 << 64

    def view(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        return np.frombuffer(memory, np.uint8)


def _callback(call: PythonCall, lookup: FunctionLookup, failures: list[BaseException]) -> Any:
    """A function of ctypes that makes a kind of call."""
    kinds: list[Any] = [ctypes.c_void_p]
    for argument in call.arguments:
        if isinstance(argument, Pointer):
            kinds += [ctypes.c_uint64, ctypes.c_int64]
        elif isinstance(argument, Scalar):
            kinds.append(C_TYPES[argument_type(argument.dtype)])
    memory: Any = _ProcessMemory()
    run = host_function(call, memory, lookup, failures).run
    result = C_TYPES[argument_type(call.result)]

    def called(place: int, *values: Any) -> int:
        try:
            result.from_address(place).value = run(*values)
        except BaseException:  # which is in `failures`
            return 1
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(called)
