"""A host for kernels in this process, on wasmtime: the smallest one that is fast and frees memory.

A store keeps every instance that was ever made in it, so each kernel gets a store of its own, to be
dropped with it; only a shared memory can be used from several stores. Its base never moves, so
NumPy's views stay valid when it grows.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import wasmtime
from wasmtime import _ffi as ffi

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.module import PAGE_BYTES, Module

MAXIMUM_PAGES = 65536


class SharedMemory(wasmtime.SharedMemory):
    """wasmtime 50's own class cannot be imported: it passes a pointer to the pointer."""

    def _as_extern(self) -> Any:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


class Host:
    """The engine and the memory that all kernels share.

    With `interruptible`, `engine.increment_epoch()` from another thread stops what runs; checking
    for that in every loop about halves the speed of short loops.
    """

    def __init__(self, pages: int = 1, interruptible: bool = False) -> None:
        config = wasmtime.Config()
        config.shared_memory = True
        config.parallel_compilation = False
        config.epoch_interruption = interruptible
        self.engine = wasmtime.Engine(config)
        limits = wasmtime.Limits(pages, MAXIMUM_PAGES)
        self.memory = SharedMemory(self.engine, wasmtime.MemoryType(limits, shared=True))

    def view(self, address: int, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
        """An array in the memory, not a copy."""
        base = ctypes.addressof(self.memory.data_ptr().contents)
        size = self.memory.data_len()
        buffer = (ctypes.c_ubyte * size).from_address(base)
        return np.ndarray(shape, dtype, buffer, address)

    def grow(self, size: int) -> None:
        """Make the memory at least `size` bytes long."""
        missing = size - self.memory.data_len()
        if missing > 0:
            self.memory.grow(-(-missing // PAGE_BYTES))

    def load(self, module: Module) -> Kernel:
        """Compile a module with one exported function."""
        return Kernel(self, encode(module), module.exports[0].field)


class Kernel:
    """A compiled function of 32-bit integers without a result.

    `wasmtime.Func.__call__` asks for the function's type each time and takes 28 µs; this takes 2.
    """

    def __init__(self, host: Host, code: bytes, name: str) -> None:
        self.store = wasmtime.Store(host.engine)
        instance = wasmtime.Instance(self.store, wasmtime.Module(host.engine, code), [host.memory])
        function = instance.exports(self.store)[name]
        assert isinstance(function, wasmtime.Func)
        self.function = function._func

    def __call__(self, *values: int) -> None:
        self.store.set_epoch_deadline(1)
        arguments = (ffi.wasmtime_val_t * len(values))()
        for argument, value in zip(arguments, values, strict=True):
            argument.kind = ffi.WASMTIME_I32
            argument.of.i32 = value
        trap = ctypes.POINTER(ffi.wasm_trap_t)()
        error = ffi.wasmtime_func_call(
            self.store._context(),
            ctypes.byref(self.function),
            arguments,
            len(values),
            None,
            0,
            ctypes.byref(trap),
        )
        if error:
            raise wasmtime.WasmtimeError._from_ptr(error)
        if trap:
            raise wasmtime.Trap._from_ptr(trap)
