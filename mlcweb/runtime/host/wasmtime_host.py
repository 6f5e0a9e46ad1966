"""WebAssembly natively: one memory for all arrays and kernels, and kernels that run in wasmtime.

Every kernel has a store of its own, which is freed with it, but all import the same memory. The
memory never moves (its address space is reserved as a whole), so that NumPy views of arrays in it
stay valid while it grows.
"""

from __future__ import annotations

import ctypes
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from mlcweb.codegen.wasm.select_function import Options
from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.arena import FIRST_ADDRESS, MAXIMUM_PAGES, PAGE_BYTES, Arena
from mlcweb.runtime.host.clock import clock
from mlcweb.runtime.host.traps import KernelTrap

try:
    import wasmtime
    from wasmtime import _bindings
    from wasmtime import _ffi as ffi
except ImportError as missing:
    raise TVMError(
        'Running WebAssembly natively needs wasmtime: pip install "mlcweb[native]"'
    ) from missing

NO_DEADLINE = 1 << 40


class _Memory(wasmtime.SharedMemory):
    """A shared memory that can be imported (the binding passes its pointer wrongly)."""

    def _as_extern(self) -> Any:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


class WasmtimeHost:
    """An engine and its memory.

    An `interruptible` host can stop a kernel after a time limit; its loops count a little slower.
    """

    shared = True
    options = Options(load_splat=False, keep_order=True)

    def __init__(self, interruptible: bool = False) -> None:
        config = wasmtime.Config()
        config.cranelift_opt_level = "speed"
        config.wasm_threads = True
        config.shared_memory = True
        config.wasm_relaxed_simd = True
        config.epoch_interruption = interruptible
        self.interruptible = interruptible
        self.engine = wasmtime.Engine(config)
        limits = wasmtime.Limits(1, MAXIMUM_PAGES)
        self.memory = _Memory(self.engine, wasmtime.MemoryType(limits, shared=True))
        self.base = ctypes.addressof(self.memory.data_ptr().contents)
        self._arena = Arena(self._grow)
        self._lock = threading.Lock()

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
        """The bytes that the memory takes now."""
        return self._arena.pages * PAGE_BYTES

    def allocate(self, nbytes: int) -> WasmStorage:
        """A piece of the memory, its content undefined. It is reused when nobody holds it.

        Raises:
            OutOfMemory: the memory cannot grow so far.
        """
        with self._lock:
            address = self._arena.allocate(nbytes)
        storage = WasmStorage(self, address, nbytes)
        weakref.finalize(storage, self._release, address, nbytes)
        return storage

    def _release(self, address: int, nbytes: int) -> None:
        with self._lock:
            self._arena.release(address, nbytes)

    def address_of(self, array: Any) -> int | None:
        """Where an NDArray or a NumPy array lies in the memory; None where it lies elsewhere."""
        storage = getattr(array, "storage", None)
        if storage is not None:
            return storage.address if type(storage) is WasmStorage else None
        address = array.__array_interface__["data"][0] - self.base
        return address if FIRST_ADDRESS <= address < self._arena.end else None

    def instantiate(self, code: bytes) -> Instance:
        """A module, ready to be called.

        Raises a TVMError where the bytes are no valid module.
        """
        try:
            module = wasmtime.Module(self.engine, code)
        except wasmtime.WasmtimeError as error:
            raise TVMError(f"The engine refuses the module: {error}") from None
        return Instance(self, module)


class WasmStorage:
    """Memory of an array: a `Storage`. `address` counts from the start of the memory."""

    __slots__ = ("__weakref__", "address", "host", "nbytes")

    visible = True
    """Python sees the bytes in place."""

    def __init__(self, host: WasmtimeHost, address: int, nbytes: int) -> None:
        self.host = host
        self.address = address
        self.nbytes = nbytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        place = (self.host.base + self.address, False)
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": place, "version": 3}

    def view(self) -> np.ndarray[Any, Any]:
        """The bytes in place; the view keeps them from being reused."""
        return np.asarray(self)

    def read(self) -> np.ndarray[Any, Any]:
        return self.view().copy()

    def write(self, data: np.ndarray[Any, Any]) -> None:
        self.view()[...] = data.reshape(-1).view(np.uint8)


class Instance:
    """A module instantiated on the host's memory."""

    def __init__(self, host: WasmtimeHost, module: wasmtime.Module) -> None:
        self.host = host
        self.store = wasmtime.Store(host.engine)
        if host.interruptible:
            self.store.set_epoch_deadline(NO_DEADLINE)
        instance = wasmtime.Instance(self.store, module, [host.memory])
        self.exports: Any = instance.exports(self.store)

    def function(self, name: str, types: Sequence[str]) -> Callable[..., None]:
        """An exported function without results as a Python function of plain numbers.

        `types` are the WebAssembly types of its parameters. It raises a KernelTrap where the kernel
        is stopped.
        """
        function = self.exports[name]
        store, handle = self.store, ctypes.byref(function._func)
        count = len(types)
        slots = (ffi.wasmtime_val_raw_t * max(count, 1))()
        setters = [(slots[index], kind) for index, kind in enumerate(types)]
        call = _bindings._wasmtime_func_call_unchecked
        no_trap = ctypes.POINTER(ffi.wasm_trap_t)

        def run(*arguments: float) -> None:
            trap = no_trap()
            for (slot, kind), value in zip(setters, arguments, strict=True):
                setattr(slot, kind, value)
            error = call(store._context(), handle, slots, count, ctypes.byref(trap))
            if error:
                raise TVMError(str(wasmtime.WasmtimeError._from_ptr(error)))
            if trap:
                raise _as_error(wasmtime.Trap._from_ptr(trap))

        return run

    def timer(self, name: str, types: Sequence[str]) -> Callable[..., float]:
        """For an exported function whose first parameter says how often to repeat: a Python
        function of the same parameters that gives the seconds that it took."""
        function = self.function(name, types)

        def run(*arguments: float) -> float:
            start = clock()
            function(*arguments)
            return clock() - start

        return run

    def variable(self, name: str) -> int:
        """The value of an exported global."""
        return self.exports[name].value(self.store)

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """While active, a kernel that runs longer is stopped; the host has to be interruptible."""
        timer = threading.Timer(seconds, self.host.engine.increment_epoch)
        timer.daemon = True
        self.store.set_epoch_deadline(1)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.store.set_epoch_deadline(NO_DEADLINE)


def _as_error(trap: wasmtime.Trap) -> KernelTrap:
    code, frames = trap.trap_code, trap.frames
    found = re.search(r"wasm address (0x[0-9a-f]+)", str(trap))
    return KernelTrap(
        frames[0].func_name if frames else None,
        code.name if code is not None else "UNKNOWN",
        frames[0].module_offset if frames else None,
        int(found[1], 16) if found else None,
    )


@lru_cache(maxsize=1)
def wasmtime_host() -> WasmtimeHost:
    """The host of this process."""
    return WasmtimeHost()
