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
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mlcweb.ir.errors import TVMError

try:
    import wasmtime
    from wasmtime import _bindings, _ffi as ffi
except ImportError as missing:
    raise TVMError(
        'Running WebAssembly natively needs wasmtime: pip install "mlcweb[wasm]"'
    ) from missing

PAGE_BYTES = 65536
MAXIMUM_PAGES = 65536
ALIGNMENT = 64
FIRST_ADDRESS = 4096
"""Nothing lies below, so that a null pointer, and what is a little beside it, hits no array."""

_SLOTS = {"i32": "i32", "i64": "i64", "f32": "f32", "f64": "f64"}


class KernelTrap(TVMError):
    """A kernel was stopped by the machine. `reason` is the machine's word for it; `offset` the
    place in the module's bytes, and `address` the place in memory, where they are known."""

    def __init__(self, message: str, reason: str, offset: int | None, address: int | None) -> None:
        super().__init__(message)
        self.reason = reason
        self.offset = offset
        self.address = address


class OutOfMemory(TVMError, MemoryError):
    """The memory of WebAssembly, four gigabytes, is full."""


class _Memory(wasmtime.SharedMemory):
    """A shared memory that can be imported (the binding passes its pointer wrongly)."""

    def _as_extern(self) -> Any:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


class WasmtimeHost:
    """An engine and its memory.

    An `interruptible` host can stop a kernel after a time limit; its loops count a little slower.
    """

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
        self.pages = 1
        self.end = FIRST_ADDRESS
        self._free: dict[int, list[int]] = {}
        self._lock = threading.Lock()

    def allocate(self, nbytes: int) -> WasmStorage:
        """A piece of the memory, its content undefined. It is reused when nobody holds it."""
        room = _rounded(nbytes)
        with self._lock:
            blocks = self._free.get(room)
            address = blocks.pop() if blocks else self._extend(room)
        storage = WasmStorage(self, address, nbytes)
        weakref.finalize(storage, self._release, address, room)
        return storage

    def _extend(self, room: int) -> int:
        address = self.end
        needed = -(-(address + room) // PAGE_BYTES)
        if needed > MAXIMUM_PAGES:
            raise OutOfMemory(
                f"The memory of WebAssembly is full: {address >> 20} MB are in use and "
                f"{room >> 20} MB were asked for"
            )
        if needed > self.pages:
            wanted = min(max(needed, self.pages * 5 // 4), MAXIMUM_PAGES)
            self.memory.grow(wanted - self.pages)
            self.pages = wanted
        self.end = address + room
        return address

    def _release(self, address: int, room: int) -> None:
        with self._lock:
            self._free.setdefault(room, []).append(address)

    def address_of(self, array: np.ndarray[Any, Any]) -> int | None:
        """Where an array lies in the memory; None where it lies elsewhere."""
        address = array.__array_interface__["data"][0] - self.base
        return address if FIRST_ADDRESS <= address < self.end else None

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
            self.store.set_epoch_deadline(1 << 40)
        instance = wasmtime.Instance(self.store, module, [host.memory])
        self.exports = instance.exports(self.store)

    def function(self, name: str, types: Sequence[str]) -> Callable[..., None]:
        """An exported function without results as a Python function of plain numbers.

        `types` are the WebAssembly types of its parameters. It raises a KernelTrap where the kernel
        is stopped.
        """
        function: Any = self.exports[name]
        store, handle = self.store, ctypes.byref(function._func)
        count = len(types)
        slots = (ffi.wasmtime_val_raw_t * max(count, 1))()
        setters = [(slots[index], _SLOTS[kind]) for index, kind in enumerate(types)]
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

    def variable(self, name: str) -> int:
        """The value of an exported global."""
        return self.exports[name].value(self.store)

    def set_time_limit(self, seconds: float) -> threading.Timer:
        """Stop the kernel that runs `seconds` from now on. Cancel the timer when it is done."""
        self.store.set_epoch_deadline(1)
        timer = threading.Timer(seconds, self.host.engine.increment_epoch)
        timer.daemon = True
        timer.start()
        return timer


_REASONS = {
    "MEMORY_OUT_OF_BOUNDS": "it touched memory that does not exist",
    "INTEGER_DIVISION_BY_ZERO": "it divided an integer by zero",
    "INTEGER_OVERFLOW": "an integer division overflowed",
    "UNREACHABLE": "a check failed",
    "STACK_OVERFLOW": "its stack overflowed",
    "INTERRUPT": "it ran longer than its time limit",
}


def _as_error(trap: wasmtime.Trap) -> KernelTrap:
    code = trap.trap_code
    name = code.name if code is not None else "UNKNOWN"
    reason = _REASONS.get(name, name.lower().replace("_", " "))
    frames = trap.frames
    offset = frames[0].module_offset if frames else None
    where = frames[0].func_name if frames else None
    found = re.search(r"wasm address (0x[0-9a-f]+)", str(trap))
    address = int(found[1], 16) if found else None
    label = f'The kernel "{where}"' if where else "The kernel"
    return KernelTrap(f"{label} was stopped: {reason}", name, offset, address)


def _rounded(nbytes: int) -> int:
    """The size of the block for so many bytes: one of four sizes between powers of two, so that
    freed blocks fit other arrays, too."""
    units = max(1, -(-nbytes // ALIGNMENT))
    step = 1 << max(0, units.bit_length() - 3)
    return -(-units // step) * step * ALIGNMENT


@lru_cache(maxsize=1)
def wasmtime_host() -> WasmtimeHost:
    """The host of this process."""
    return WasmtimeHost()
