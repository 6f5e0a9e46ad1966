"""WebAssembly in a page: one memory for all arrays and kernels, and kernels that the browser runs.

The memory is not that of Python, which no kernel can reach; NumPy therefore does not see it, and
arrays are copied in and out (64 KB take some microseconds). Modules and their code are freed by the
browser when the last proxy of them goes.

JavaScript objects are held by the host alone, and never while modules are imported: a snapshot of
Python's memory could not be taken else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import js  # pyright: ignore[reportMissingImports]
from pyodide.ffi import JsException, create_proxy, to_js  # pyright: ignore[reportMissingImports]

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import MAXIMUM_PAGES, Module
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.codegen.wasm.select_parallel import LAUNCH_TYPE
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host import engine
from mlcweb.runtime.host.arena import Arena, ArenaStorage
from mlcweb.runtime.host.clock import shares_memory
from mlcweb.runtime.host.page_script import page_script
from mlcweb.runtime.host.page_threads import PageLauncher, PageThreads
from mlcweb.runtime.host.traps import trap_in_browser
from mlcweb.runtime.storage import StorageView

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.codegen.wasm.kernel import WasmModule
    from mlcweb.runtime.host.python_calls import HostFunction


class PyodideHost(engine.Host):
    """The browser's engine and a memory of our own, shared between threads where the page may."""

    options = Options(parallel=True)
    visible = False
    """Python does not see the memory in place."""
    carries_exceptions = True
    python_in_threads = False
    addresses = 1 << 32

    def __init__(self) -> None:
        script = page_script()
        self.shared = shares_memory()
        self.memory = script.memory(self.shared, MAXIMUM_PAGES)
        self._bytes = script.bytes
        self._instantiate = script.instantiate
        self._arena = Arena(self._grow)
        self.with_wide = script.withWide
        self.bind = script.bind
        self._chain = script.chain
        self.timer = script.timer
        self._threads = PageThreads(self)

    def _grow(self, pages: int) -> None:
        try:
            self.memory.grow(pages)
        except JsException as error:
            raise MemoryError(error.message) from None

    @property
    def relaxed_simd(self) -> bool:
        """Whether this browser has fused multiply-add and its like."""
        return _validates_relaxed_simd()

    @property
    def nbytes(self) -> int:
        return int(self.memory.buffer.byteLength)

    def allocate(self, nbytes: int) -> ArenaStorage:
        address, free = self._arena.take(nbytes)
        return ArenaStorage(self, address, nbytes, None, free)

    def bytes(self, address: int, nbytes: int) -> Any:
        """A piece as an Uint8Array, which is valid until the memory grows."""
        return self._bytes(self.memory, address, nbytes)

    def address_of(self, array: Any) -> int | None:
        """Where an NDArray lies in the memory; None for arrays in the memory of Python."""
        storage = getattr(array, "storage", None)
        owner = storage.whole if isinstance(storage, StorageView) else storage
        return array.address if type(owner) is ArenaStorage else None

    def view(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Not in a page: raises a TVMError."""
        raise TVMError(
            "In a browser arrays lie outside of Python's memory and cannot be viewed in place; "
            "copy them out by .numpy() and in by .copyfrom(x)"
        )

    def read(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        import numpy as np

        data = np.empty(nbytes, np.uint8)
        if nbytes:
            self.bytes(address, nbytes).assign_to(data)
        return data

    def write(self, address: int, data: np.ndarray[Any, Any]) -> None:
        if data.nbytes:
            self.bytes(address, data.nbytes).assign(data.reshape(-1).view("uint8"))

    def chain(self, calls: Sequence[Callable[[], Any]]) -> engine.Chain:
        chain = self._chain(to_js(calls))
        return chain.run, chain.reached

    def launcher(self, compiled: WasmModule, another: object) -> PageLauncher:
        """What runs parallel loops; the page makes the instances that its threads need."""
        return self._threads.launcher(compiled)

    def instantiate(self, code: bytes, imports: Sequence[HostFunction] = ()) -> PageInstance:
        launch = next((item.run for item in imports if item.type is LAUNCH_TYPE), None)
        python = [item for item in imports if item.type is not LAUNCH_TYPE]
        functions = [create_proxy(item.run) for item in python]
        wide = to_js([item.type.results == ("i64",) for item in python])
        try:
            exports = self._instantiate(self.memory, to_js(code), to_js(functions), wide, launch)
            return PageInstance(self, exports, functions)
        except JsException as error:
            for function in functions:
                function.destroy()
            raise TVMError(f"The browser refuses the module: {error.message}") from None


@lru_cache(maxsize=1)
def _validates_relaxed_simd() -> bool:
    f = FunctionBuilder("probe")
    for _ in range(3):
        f.emit("v128.const", bytes(16))
    f.emit("f32x4.relaxed_madd")
    f.emit("drop")
    return bool(js.WebAssembly.validate(to_js(encode(Module((f.build(),))))))


class PageInstance(engine.Instance):
    """A module instantiated on the host's memory. `functions` are proxies of the Python functions
    that it imports, which go with it."""

    failure: type[BaseException] = JsException

    def __init__(self, host: PyodideHost, exports: Any, functions: Sequence[Any] = ()) -> None:
        self.host = host
        self.exports = exports
        self._functions = functions

    def __del__(self) -> None:
        for function in self._functions:
            function.destroy()

    def another(self, imports: Sequence[HostFunction] = ()) -> PageInstance:
        """Not in a page, whose threads make instances of their own: raises a TVMError."""
        raise TVMError("In a browser threads have instances of their own")

    def function(self, name: str, types: Sequence[str]) -> Callable[..., None]:
        return _trapping(self._export(name, types))

    def bound(self, name: str, types: Sequence[str], values: Sequence[int]) -> Callable[[], None]:
        """The browser's own function with all its arguments, which are i32."""
        return self.host.bind(self._export(name, types), to_js(values))

    def explain(self, failure: BaseException) -> BaseException:
        """A KernelTrap, or another TVMError, for what the browser threw."""
        if not isinstance(failure, JsException):
            return failure
        error: Any = failure
        return trap_in_browser(error.name, error.message, error.stack)

    def timer(self, name: str, types: Sequence[str]) -> Callable[..., float]:
        """A function of (number, *arguments): the seconds that a function takes which repeats a
        kernel `number` times. Before the first time it is warmed up (see `page_script`)."""
        return _trapping(self.host.timer(self._export(name, types)))

    def variable(self, name: str) -> int:
        return getattr(self.exports, name).value

    def _export(self, name: str, types: Sequence[str]) -> Any:
        function = getattr(self.exports, name)
        wide = [index for index, kind in enumerate(types) if kind == "i64"]
        return self.host.with_wide(function, to_js(wide)) if wide else function


def _trapping(function: Any) -> Callable[..., Any]:
    def run(*arguments: float) -> Any:
        try:
            return function(*arguments)
        except JsException as error:
            raise trap_in_browser(error.name, error.message, error.stack) from None

    return run
