"""Runnable modules: the functions that `build` made, callable by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.codegen.registry import Kernel
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.arguments import Signature
from mlcweb.runtime.benchmark import BenchmarkResult, measure, time_in_python
from mlcweb.runtime.device import Device, cpu
from mlcweb.runtime.ndarray import NDArray
from mlcweb.runtime.registry import get_global_func


class FunctionNotFound(TVMError, AttributeError):
    """A module has no function of the name."""


class PackedFunc:
    """A function of a runnable module. Arguments are checked before each call."""

    def __init__(self, kernel: Kernel, dev: Device) -> None:
        self.kernel = kernel
        self.signature = Signature(kernel.name, kernel.function, dev)

    @property
    def name(self) -> str:
        return self.kernel.name

    def prepare(self, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
        """The code to run for these arguments, and what to pass to it."""
        if self.signature.fits(arguments):
            return self.kernel.run, list(arguments)
        values = self.signature.check(arguments)
        aliased = self.signature.shares_memory(arguments)
        run = self.kernel.run_aliased if aliased and self.kernel.run_aliased else self.kernel.run
        return run, values

    def __call__(self, *arguments: Any) -> Any:
        run, values = self.prepare(arguments)
        if self.kernel.takes_arrays:
            return run(*values)
        with in_place(values) as views:
            return run(*views)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.signature}>"


@contextmanager
def in_place(values: Sequence[Any]) -> Iterator[list[Any]]:
    """The same with NumPy arrays for NDArrays: views, or copies that are copied back at the end
    where Python cannot reach an array in place."""
    copies: dict[int, tuple[NDArray, Any]] = {}

    def opened(value: Any) -> Any:
        if not isinstance(value, NDArray):
            return value
        if value.storage.visible:
            return value.view()
        return copies.setdefault(id(value.storage), (value, value.numpy()))[1]

    yield [opened(value) for value in values]
    for array, copy in copies.values():
        array.copyfrom(copy)


class Module:
    """Functions ready to run: ``module["main"](a, b, c)``."""

    type_key = "mlcweb"

    def __init__(
        self, kernels: Mapping[str, Kernel], entry: str | None = None, target: str = "numpy"
    ) -> None:
        self.target = target
        self.device = cpu()
        self.functions = {name: PackedFunc(kernel, self.device) for name, kernel in kernels.items()}
        self.entry_name = entry

    @property
    def entry_func(self) -> PackedFunc:
        """The only function, or the one named "main"."""
        return self.get_function(self.entry_name or "main")

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        return name in self.functions

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """A function by name; an error (an AttributeError) that lists the names there are."""
        if name not in self.functions:
            known = ", ".join(self.functions) or "none"
            raise FunctionNotFound(f'Module has no function "{name}"; there are: {known}')
        return self.functions[name]

    def get_source(self, fmt: str = "") -> str:
        """The generated text of all functions."""
        return "\n\n".join(function.kernel.source for function in self.functions.values())

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
        """A function that measures `func_name` on its arguments; see `benchmark.measure`.

        `cache_flush_bytes` of memory are touched, and the registered function `f_preproc` is called
        with the arguments, before each repeat.
        """
        function = self.get_function(func_name)
        if dev != self.device:
            raise TVMError(f'"{func_name}" was built for {self.device}, not for {dev}')

        def evaluate(*arguments: Any) -> BenchmarkResult:
            run, values = function.prepare(arguments)
            if function.kernel.takes_arrays:
                return evaluate_on(run, values, arguments)
            with in_place(values) as views:
                return evaluate_on(run, views, arguments)

        def evaluate_on(
            run: Callable[..., Any], values: list[Any], arguments: tuple[Any, ...]
        ) -> BenchmarkResult:
            time_batch = function.kernel.time_batch if run == function.kernel.run else None

            def batch(calls: int) -> float:
                if time_batch is not None:
                    return time_batch(calls, *values)
                return time_in_python(run, values, calls)

            def before_repeat() -> None:
                if f_preproc:
                    get_global_func(f_preproc)(*arguments)
                if cache_flush_bytes:
                    bytearray(cache_flush_bytes).count(1)

            return measure(
                batch,
                number,
                repeat,
                min_repeat_ms,
                limit_zero_time_iterations,
                cooldown_interval_ms,
                repeats_to_cooldown,
                before_repeat,
            )

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
