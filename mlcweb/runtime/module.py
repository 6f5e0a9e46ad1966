"""Runnable modules: the functions that `build` made, callable by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlcweb.codegen.registry import Kernel
from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.visitor import walk
from mlcweb.runtime.arguments import Signature
from mlcweb.runtime.benchmark import LONG, BenchmarkResult, measure, prepare_repeat, time_in_python
from mlcweb.runtime.device import Device, cpu, device
from mlcweb.runtime.direct_call import direct_call
from mlcweb.runtime.ndarray import NDArray, empty
from mlcweb.runtime.storage import Storage, StorageView
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.tir.operators import operator_name

SYMBOL = "global_symbol"
"""The attribute of a function that says what others call it."""


class FunctionNotFound(TVMError, AttributeError):
    """A module has no function of the name."""


class PackedFunc:
    """A function of a runnable module. Arguments are checked before each call."""

    # What is called is a slot of its own, so that no method stands between the caller and it.
    __slots__ = ("__call__", "__weakref__", "kernel", "signature")

    __call__: Callable[..., Any]

    def __init__(self, kernel: Kernel, dev: Device) -> None:
        self.kernel = kernel
        self.signature = Signature(kernel.name, kernel.function, dev)
        self.__call__ = _caller(kernel, self.signature)

    @property
    def name(self) -> str:
        return self.kernel.name

    def prepare(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
        """The code to run for these arguments, and what to pass to it."""
        return _prepare(self.kernel, self.signature, arguments)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.signature}>"


def _prepare(
    kernel: Kernel, signature: Signature, arguments: tuple[Any, ...]
) -> tuple[Callable[..., Any], list[Any]]:
    fits = signature.fits(arguments)
    values = list(arguments) if fits else signature.check(arguments)
    aliased = not fits and signature.shares_memory(values)
    if signature.result:
        values.append(empty((1,), signature.result, signature.device))
    return kernel.run_aliased if aliased and kernel.run_aliased else kernel.run, values


def _caller(kernel: Kernel, signature: Signature) -> Callable[..., Any]:
    """The function that a call of the kernel runs. It does not hold the `PackedFunc`, so that a
    module and its code go as soon as nobody holds it."""

    def checked(*arguments: Any) -> Any:
        run, values = _prepare(kernel, signature, arguments)
        if kernel.takes_arrays:
            run(*values)
        else:
            with in_place(values) as views:
                run(*views)
        return values[-1].numpy().item() if signature.result else None

    pointers = None if signature.result else kernel.pointer_call
    layouts = signature.layouts(pointers.memory) if pointers else None
    return direct_call(pointers, layouts, checked) if pointers and layouts else checked


@contextmanager
def in_place(values: Sequence[Any]) -> Iterator[list[Any]]:
    """The same with NumPy arrays for NDArrays: views, or copies that are copied back at the end
    where Python cannot reach an array in place."""
    copies: dict[int, tuple[Storage, Any]] = {}

    def opened(value: Any) -> Any:
        if not isinstance(value, NDArray):
            return value
        storage, start = value.storage, 0
        if storage.visible:
            return value.view()
        if isinstance(storage, StorageView):
            storage, start = storage.whole, storage.start
        if id(storage) not in copies:
            copies[id(storage)] = storage, storage.read()
        return value.shaped(copies[id(storage)][1][start : start + value.nbytes])

    yield [opened(value) for value in values]
    for storage, copy in copies.values():
        storage.write(copy)


@dataclass(frozen=True, slots=True)
class SourceModule:
    """Kernels for another device, as text in a language: "cuda", "opencl", "metal", "webgpu"."""

    language: str
    source: str

    @property
    def kind(self) -> str:
        """`type_key` under its name since 2025."""
        return self.type_key

    @property
    def type_key(self) -> str:
        return self.language

    @property
    def format(self) -> str:
        return _SUFFIXES[self.language]

    def get_source(self, fmt: str = "") -> str:
        """The text. `fmt` is its language, or what its files end in ("cu", "cl").

        Raises:
            TVMError: there is no text in that language.
        """
        if fmt not in ("", self.language, self.format):
            raise TVMError(f'The kernels are written in "{self.language}", not in "{fmt}"')
        return self.source

    def inspect_source(self, fmt: str = "") -> str:
        """`get_source`, by its name since 2025."""
        return self.get_source(fmt)


_SUFFIXES = {"cuda": "cu", "opencl": "cl", "metal": "metal", "webgpu": "wgsl"}


class Module:
    """Functions ready to run: ``module["main"](a, b, c)``."""

    type_key = kind = "mlcweb"

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        entry: str | None = None,
        target: str = "numpy",
        imports: Sequence[SourceModule | Module] = (),
        source_format: str = "",
    ) -> None:
        self.target = target
        self.source_format = source_format
        """The language that `get_source` gives unasked, where that is not what is compiled."""
        self.imports = list(imports)
        self.device = device(target) if target in DEVICE_KINDS else cpu()
        self.functions = {name: PackedFunc(kernel, self.device) for name, kernel in kernels.items()}
        self.entry_name = entry

    @property
    def entry_func(self) -> PackedFunc:
        """The only function, or the one named "main"."""
        return self.get_function(self.entry_name or "main")

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        return name in (self._all_functions() if query_imports else self.functions)

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """A function by its name in the module it was built from, or by its "global_symbol", under
        which TVM has it, and the only one by "main", too; also of imported modules where
        `query_imports` says so. An error (an AttributeError) lists the names there are."""
        functions = self._all_functions() if query_imports else self.functions
        symbols = (f for f in functions.values() if f.kernel.function.attrs.get(SYMBOL) == name)
        function = functions.get(name) or next(symbols, None)
        if name == "main" and self.entry_name is not None:
            function = function or functions.get(self.entry_name)
        if function is None:
            names = ", ".join(functions) or "none"
            raise FunctionNotFound(f'Module has no function "{name}"; there are: {names}')
        return function

    def _all_functions(self) -> dict[str, PackedFunc]:
        """The functions of imported modules, too; its own come first."""
        modules = [module for module in self.imports if isinstance(module, Module)]
        imported = [module._all_functions() for module in modules]
        return {
            name: func
            for functions in (*imported, self.functions)
            for name, func in functions.items()
        }

    def import_module(self, module: Module) -> None:
        """Let `get_function(name, query_imports=True)` give, and `export_library` write, the
        functions of another module as well."""
        if module.target != self.target:
            raise TVMError(
                f'A module for "{self.target}" cannot import one for "{module.target}": build both '
                "for one target"
            )
        self.imports.append(module)

    def clear_imports(self) -> None:
        """Take back what was imported."""
        self.imports.clear()

    @property
    def mod(self) -> Module:
        """The module itself, as TVM's executables have it."""
        return self

    def jit(self, **options: Any) -> Module:
        """Ready to run; it always is."""
        return self

    @property
    def imported_modules(self) -> list[SourceModule | Module]:
        """What runs on another device, as source; and what `import_module` was given."""
        return self.imports

    def inspect_source(self, fmt: str = "") -> str:
        """`get_source`, by its name since 2025."""
        return self.get_source(fmt)

    def get_source(self, fmt: str = "") -> str:
        """The generated text of all functions. `fmt` is its language, "wat", "ll" or "python";
        "asm" means the text of machine code. "c" means the same functions in C, for processors;
        modules that were built for target "c" give it unasked.

        Raises:
            TVMError: there is no text in that language.
        """
        fmt = fmt or self.source_format
        if fmt == "c" and self.target not in DEVICE_KINDS:
            from mlcweb.codegen.c_source import c_source

            return c_source({name: f.kernel.function for name, f in self.functions.items()})
        kernels = [function.kernel for function in self.functions.values()]
        if fmt in ("asm", "s") and any(kernel.language == "ll" for kernel in kernels):
            from mlcweb.runtime.host.llvm_target import compile_together

            return compile_together(kernels).assembly()
        languages = dict.fromkeys(kernel.language for kernel in kernels)
        source_language = "wat" if fmt in ("asm", "s", "wasm") else "python" if fmt == "py" else fmt
        if source_language and source_language not in languages:
            more = () if self.target in DEVICE_KINDS else ("c",)
            there = " and ".join(f'"{language}"' for language in (*languages, *more))
            raise TVMError(f'A module for "{self.target}" has no source in "{fmt}"; it has {there}')
        return "\n\n".join(k.source for k in kernels if source_language in ("", k.language))

    def export_library(self, file_name: Any, **options: Any) -> None:
        """Write the module to one file, which `tvm.runtime.load_module` reads: a WebAssembly module
        whatever its name ends in, but for machine code of "llvm" an object file (".o") or, where
        the machine has a C compiler to link it, a shared library (".so"), whose functions take
        pointers and return zero. Options of other compilers are left alone."""
        kernels = {name: func.kernel for name, func in self._all_functions().items()}
        provided(__name__, "export_library")(file_name, kernels, self.target, self.entry_name)

    def write_to_file(self, file_name: Any, fmt: str = "") -> None:
        """`export_library`, or for the name or suffix of a text ("ll", "asm", "wat", "c") that
        text."""
        path = Path(file_name)
        text = fmt or path.suffix.removeprefix(".")
        if text in ("ll", "s", "asm", "wat", "c"):
            path.write_text(self.get_source(text), encoding="utf-8")
        else:
            self.export_library(file_name)

    save = write_to_file

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures `func_name` on its arguments; see `benchmark.measure`. Its
        result has the seconds of each repeat. Compiled code is warmed up first, by one call if
        it calls packed functions: programs may count their calls.

        `cache_flush_bytes` of memory are touched, and the registered function `f_preproc` is called
        with the arguments, before each repeat.
        """
        function = self.get_function(func_name)
        if dev != self.device:
            raise TVMError(f'"{func_name}" was built for {self.device}, not for {dev}')

        def evaluate(*arguments: Any) -> BenchmarkResult:
            run, values = function.prepare(arguments)
            time_batch = function.kernel.time_batch if run == function.kernel.run else None
            in_memory = nullcontext(values) if function.kernel.takes_arrays else in_place(values)
            with in_memory as views:

                def batch(calls: int) -> float:
                    if time_batch is not None:
                        return time_batch(calls, *views)
                    return time_in_python(run, views, calls)

                result = measure(
                    batch,
                    number,
                    repeat,
                    min_repeat_ms,
                    limit_zero_time_iterations,
                    cooldown_interval_ms,
                    repeats_to_cooldown,
                    lambda: prepare_repeat(arguments, f_preproc, cache_flush_bytes),
                    settle=time_batch is not None and not _calls_python(function.kernel),
                )
            call_seconds = function.kernel.call_seconds if time_batch is not None else None
            if call_seconds is None or result.median > LONG:
                return result
            return replace(result, call=call_seconds())

        return evaluate

    def __getitem__(self, name: str) -> PackedFunc:
        return self.get_function(name)

    def __contains__(self, name: str) -> bool:
        return name in self.functions

    def __call__(self, *arguments: Any) -> Any:
        return self.entry_func(*arguments)

    def __repr__(self) -> str:
        names = ", ".join(self.functions)
        return f"Module({self.target}: {names})"


def _calls_python(kernel: Kernel) -> bool:
    return any(operator_name(node) == "tvm_call_packed" for node in walk(kernel.function.body))
