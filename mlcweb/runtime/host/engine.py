"""The WebAssembly engine that is there: the browser's own in a page, wasmtime natively."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from mlcweb.codegen.wasm.select_function import Options
from mlcweb.runtime.host.clock import in_browser
from mlcweb.runtime.storage import Storage, allocate_on_host

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.codegen.wasm.kernel import WasmModule
    from mlcweb.runtime.host.python_calls import HostFunction


class Instance(Protocol):
    """A module instantiated on the memory of its host. `failure` is what the engine raises."""

    failure: type[BaseException]

    def bound(self, name: str, types: Sequence[str], values: Sequence[int]) -> Callable[[], None]:
        """An exported function with all its arguments, which are i32. The engine's own errors go
        through."""
        ...

    def another(self, imports: Sequence[HostFunction] = ()) -> Instance:
        """Another instance of the module, for another thread."""
        ...

    def explain(self, failure: BaseException) -> BaseException:
        """A KernelTrap, or another TVMError, for what the engine raised."""
        ...

    def function(self, name: str, types: Sequence[str]) -> Callable[..., None]:
        """An exported function without results as a Python function of plain numbers.

        `types` are the WebAssembly types of its parameters. It raises a KernelTrap where the kernel
        is stopped.
        """
        ...

    def timer(self, name: str, types: Sequence[str]) -> Callable[..., float]:
        """For an exported function whose first parameter says how often to repeat: a Python
        function of the same parameters that gives the seconds that it took."""
        ...

    def variable(self, name: str) -> int:
        """The value of an exported global."""
        ...


class Launcher(Protocol):
    """Runs the parallel loops of a kernel."""

    def host_function(self, failures: list[BaseException]) -> HostFunction:
        """The launch function, which the kernel imports after all others."""
        ...

    def check_not_within(self) -> None:
        """Refuse a call of the kernel that would wait for itself."""
        ...


Chain = tuple[Callable[[], Any], Callable[[], int]]


class Host(Protocol):
    """An engine and the memory that its kernels import.

    `shared` is whether threads share it, `visible` whether Python sees it, `relaxed_simd` whether
    the engine has the relaxed vector instructions, and `options` how instructions are best selected
    for the engine. `carries_exceptions` is whether an exception of a Python function that a kernel
    calls arrives at the caller of the kernel, and `python_in_threads` whether the parallel loops of
    a kernel may call Python functions. There are so many `addresses`.
    """

    options: Options
    shared: bool
    visible: bool
    carries_exceptions: bool
    python_in_threads: bool
    addresses: int

    @property
    def relaxed_simd(self) -> bool: ...

    def allocate(self, nbytes: int) -> Storage:
        """A piece of the memory, its content undefined. It is reused when nobody holds it.

        Raises:
            OutOfMemory: the memory cannot grow so far.
        """
        ...

    @property
    def nbytes(self) -> int:
        """The bytes that the memory takes now."""
        ...

    def view(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Bytes of the memory in place; a TVMError where Python does not see it."""
        ...

    def read(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        """A copy of bytes of the memory."""
        ...

    def write(self, address: int, data: np.ndarray[Any, Any]) -> None:
        """Overwrite bytes of the memory."""
        ...

    def address_of(self, array: Any) -> int | None:
        """Where an NDArray or a NumPy array lies in the memory; None where it lies elsewhere."""
        ...

    def chain(self, calls: Sequence[Callable[[], Any]]) -> Chain:
        """Several bound functions as one, and what tells, after a failure, which of them was
        running."""
        ...

    def launcher(self, compiled: WasmModule, another: Callable[[], tuple[Any, Any]]) -> Launcher:
        """What runs the parallel loops of a module. `another` makes another instance of it, with
        what explains its errors."""
        ...

    def instantiate(self, code: bytes, imports: Sequence[HostFunction] = ()) -> Instance:
        """A module, ready to be called. `imports` are the functions that it imports after the
        memory. A TVMError where the bytes are no valid module, or there is no room for it."""
        ...


@lru_cache(maxsize=1)
def engine() -> Host:
    """The host of this process or page, made when first asked for."""
    if in_browser():
        from mlcweb.runtime.host.pyodide_host import PyodideHost

        return PyodideHost()
    from mlcweb.runtime.host.wasmtime_host import wasmtime_host

    return wasmtime_host()


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether there is an engine here."""
    return in_browser() or find_spec("wasmtime") is not None


@lru_cache(maxsize=1)
def has_llvm() -> bool:
    """Whether LLVM is here, which makes machine code."""
    return not in_browser() and find_spec("llvmlite") is not None


def chain(calls: Sequence[Callable[[], Any]]) -> Chain:
    """Bound functions of the engine as one; see `Host.chain`."""
    return (calls[0], lambda: 0) if len(calls) == 1 else engine().chain(calls)


def allocate(nbytes: int) -> Storage:
    """Memory for an array, where kernels reach it if there is an engine: an `Allocator`."""
    return engine().allocate(nbytes) if available() else allocate_on_host(nbytes)
