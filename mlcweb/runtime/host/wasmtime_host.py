"""WebAssembly natively: one memory for all arrays and kernels, and kernels that run in wasmtime.

Every kernel has a store of its own, which is freed with it, but all import the same memory. The
memory never moves (its address space is reserved as a whole), so that NumPy views of arrays in it
stay valid while it grows.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any

import numpy as np

from mlcweb.codegen.wasm.module import MAXIMUM_PAGES, PAGE_BYTES
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.codegen.wasm.select_parallel import THREADS_ADDRESS
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host import engine
from mlcweb.runtime.host.arena import FIRST_ADDRESS, Arena, ArenaStorage
from mlcweb.runtime.host.clock import timer_of
from mlcweb.runtime.host.parallel_launch import Explain, Launcher
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.runtime.thread_pool import on_change

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.kernel import WasmModule
    from mlcweb.codegen.wasm.module import FunctionType
    from mlcweb.runtime.host.python_calls import HostFunction

try:
    import wasmtime
    from wasmtime import _ffi as ffi
    from wasmtime import _func
except ImportError as missing:
    raise TVMError(
        'Running WebAssembly natively needs wasmtime: pip install "mlcweb[native]"'
    ) from missing

_RAW_VALUES = {"i32": "q8x", "i64": "q8x", "f32": "f12x", "f64": "d8x"}
"""How `struct` writes a value of 16 bytes. The upper half of a wide integer is not looked at where
a narrow one is meant, so that signed and unsigned ones go the same way."""

_library: Any = vars(ffi)["dll"]
_call_unchecked = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
)(("wasmtime_func_call_unchecked", _library))
"""The binding's own, without its checks of types."""


class _Memory(wasmtime.SharedMemory):
    """A shared memory that can be imported (the binding passes its pointer wrongly)."""

    def _as_extern(self) -> Any:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


class WasmtimeHost(engine.Host):
    """An engine and its memory."""

    shared = True
    visible = True
    """Python sees the memory in place."""
    carries_exceptions = False
    python_in_threads = True
    addresses = 1 << 32
    options = Options(load_splat=False, spill_workaround=True, parallel=True)

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.cranelift_opt_level = "speed"
        config.wasm_threads = True
        config.shared_memory = True
        config.wasm_relaxed_simd = True
        self.engine = wasmtime.Engine(config)
        limits = wasmtime.Limits(1, MAXIMUM_PAGES)
        self.memory = _Memory(self.engine, wasmtime.MemoryType(limits, shared=True))
        self.base = ctypes.addressof(self.memory.data_ptr().contents)
        self._arena = Arena(self._grow)
        on_change(self._set_threads)

    def _set_threads(self, number: int) -> None:
        ctypes.c_int32.from_address(self.base + THREADS_ADDRESS).value = number

    def _grow(self, pages: int) -> None:
        try:
            self.memory.grow(pages)
        except wasmtime.WasmtimeError as error:
            raise MemoryError(str(error)) from None

    @property
    def relaxed_simd(self) -> bool:
        """The engine has fused multiply-add and its like."""
        return True

    @property
    def nbytes(self) -> int:
        return self._arena.pages * PAGE_BYTES

    def allocate(self, nbytes: int) -> WasmStorage:
        address, free = self._arena.take(nbytes)
        return WasmStorage(self, address, nbytes, None, free)

    def address_of(self, array: Any) -> int | None:
        """Where an NDArray or a NumPy array lies in the memory; None where it lies elsewhere."""
        storage = getattr(array, "storage", None)
        if type(storage) is WasmStorage:
            return storage.address if storage.memory is self else None
        if storage is not None:
            array = storage.view()
        address = array.__array_interface__["data"][0] - self.base
        return address if FIRST_ADDRESS <= address < self._arena.end else None

    def view(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        # The bytes may be reused when their arrays go.
        return WasmStorage(self, address, nbytes).view()

    def read(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        return self.view(address, nbytes).copy()

    def write(self, address: int, data: np.ndarray[Any, Any]) -> None:
        self.view(address, data.nbytes)[...] = data.reshape(-1).view(np.uint8)

    def chain(self, calls: Sequence[Callable[[], Any]]) -> engine.Chain:
        reached = 0
        numbered = tuple(enumerate(calls))

        def run() -> None:
            nonlocal reached
            for at, call in numbered:
                reached = at
                call()

        return run, lambda: reached

    def launcher(
        self, compiled: WasmModule, another: Callable[[], tuple[engine.Instance, Explain]]
    ) -> Launcher:
        return Launcher(compiled, another, self.allocate)

    def instantiate(self, code: bytes, imports: Sequence[HostFunction] = ()) -> Instance:
        try:
            module = wasmtime.Module(self.engine, code)
        except wasmtime.WasmtimeError as error:
            raise TVMError(f"The engine refuses the module: {error}") from None
        return Instance(self, module, imports)


class WasmStorage(ArenaStorage):
    """Memory of an array, which Python sees in place: a view keeps it from being reused."""

    __slots__ = ()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        place = (self.memory.base + self.address, False)
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": place, "version": 3}

    def view(self) -> np.ndarray[Any, Any]:
        return np.asarray(self)


class Instance(engine.Instance):
    """A module instantiated on the host's memory."""

    failure: type[BaseException] = TVMError

    def __init__(
        self, host: WasmtimeHost, module: wasmtime.Module, imports: Sequence[HostFunction] = ()
    ) -> None:
        self.host = host
        self.module = module
        self.store = wasmtime.Store(host.engine)
        functions = [wasmtime.Func(self.store, _type(item.type), item.run) for item in imports]
        instance = wasmtime.Instance(self.store, module, [host.memory, *functions])
        self.exports: Any = instance.exports(self.store)
        # A store serves one thread at a time; a function of Python that it calls may call again.
        self._lock = threading.RLock()

    def another(self, imports: Sequence[HostFunction] = ()) -> Instance:
        return Instance(self.host, self.module, imports)

    def explain(self, failure: BaseException) -> BaseException:
        """The error itself: they all are ours."""
        return failure

    def bound(self, name: str, types: Sequence[str], values: Sequence[int]) -> Callable[[], None]:
        slots, run = self._invocation(name, len(types))
        for slot, value in zip(slots, values, strict=True):
            slot.i32 = value
        return run

    def function(self, name: str, types: Sequence[str]) -> Callable[..., None]:
        slots, invoke = self._invocation(name, len(types))
        pack = Struct("<" + "".join(_RAW_VALUES[kind] for kind in types)).pack_into
        lock = self._lock

        def run(*arguments: float) -> None:
            with lock:
                try:
                    pack(slots, 0, *arguments)
                except (OverflowError, StructError):
                    for slot, kind, value in zip(slots, types, arguments, strict=True):
                        setattr(slot, kind, value)
                invoke()

        return run

    def _invocation(self, name: str, count: int) -> tuple[Any, Callable[[], None]]:
        """Slots for arguments, and what calls an exported function with them."""
        function = self.exports[name]
        slots = (ffi.wasmtime_val_raw_t * max(count, 1))()
        trap = ctypes.c_void_p()
        invoke = partial(
            _call_unchecked,
            ctypes.cast(self.store._context(), ctypes.c_void_p),
            ctypes.byref(function._func),
            slots,
            count,
            ctypes.byref(trap),
        )
        lock = self._lock

        def run() -> None:
            with lock:
                error = invoke()
                if error or trap:
                    raise _failure(error, trap)

        run.keeps = self.store  # type: ignore[attr-defined]  # All are pointers into it.
        return slots, run

    def timer(self, name: str, types: Sequence[str]) -> Callable[..., float]:
        return timer_of(self.function(name, types))

    def variable(self, name: str) -> int:
        return self.exports[name].value(self.store)


def _failure(error: int | None, trap: ctypes.c_void_p) -> TVMError:
    """Our error for one of the engine's, and for a trap, which is taken."""
    if error:
        pointer = ctypes.cast(error, ctypes.POINTER(ffi.wasmtime_error_t))
        return TVMError(str(wasmtime.WasmtimeError._from_ptr(pointer)))
    pointer = ctypes.cast(trap, ctypes.POINTER(ffi.wasm_trap_t))
    trap.value = None
    # What a Python function raised is kept elsewhere.
    _func.LAST_EXCEPTION = None
    return _as_error(wasmtime.Trap._from_ptr(pointer))


def _type(type: FunctionType) -> wasmtime.FuncType:
    parameters = [getattr(wasmtime.ValType, kind)() for kind in type.parameters]
    return wasmtime.FuncType(
        parameters, [getattr(wasmtime.ValType, kind)() for kind in type.results]
    )


def _as_error(trap: wasmtime.Trap) -> KernelTrap:
    code, frames = trap.trap_code, trap.frames
    match = re.search(r"wasm address (0x[0-9a-f]+)", str(trap))
    return KernelTrap(
        frames[0].func_name if frames else None,
        code.name if code is not None else "UNKNOWN",
        frames[0].module_offset if frames else None,
        int(match[1], 16) if match else None,
    )


@lru_cache(maxsize=1)
def wasmtime_host() -> WasmtimeHost:
    """The host of this process."""
    return WasmtimeHost()
