"""Kernels made by hand run in a real engine, and what a native host needs from it holds."""

import ctypes
import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import PAGE_BYTES
from mlcweb.codegen.wasm.text import print_text
from tests.codegen.wasm.decode import decode
from tests.codegen.wasm.kernels import kernel_module, matmul, multiply_add_peak
from tests.codegen.wasm.validate import validate

wasmtime = pytest.importorskip("wasmtime")

from tests.codegen.wasm.wasmtime_host import Host  # noqa: E402

A, B, C = PAGE_BYTES, 2 * PAGE_BYTES, 3 * PAGE_BYTES


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    ("size", "rows", "vectors", "unroll"),
    [(128, 4, 2, 1), (128, 2, 4, 4), (64, 4, 2, 64), (24, 6, 3, 8), (8, 1, 1, 2)],
)
def test_matmul(size: int, rows: int, vectors: int, unroll: int, fused: bool) -> None:
    module = kernel_module(matmul(size, rows, vectors, unroll, fused), shared=True)
    validate(module)
    host = Host(pages=4)
    a, b, c = (host.view(address, (size, size)) for address in (A, B, C))
    random = np.random.default_rng(0)
    a[:], b[:] = random.standard_normal((2, size, size))
    host.load(module)(A, B, C)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_an_unrolled_kernel_keeps_its_meaning_through_text_and_bytes() -> None:
    module = kernel_module(matmul(64, unroll=64))
    assert len(module.functions[0].body) > 3000
    assert decode(encode(module)) == module
    assembled = decode(bytes(wasmtime.wat2wasm(print_text(module).text)), names=False)
    assert assembled == decode(encode(module), names=False)


@pytest.mark.parametrize("fused", [False, True])
def test_the_peak_loop_computes_what_it_says(fused: bool) -> None:
    module = kernel_module(multiply_add_peak(3, fused, unroll=2), shared=True)
    validate(module)
    host = Host()
    store = wasmtime.Store(host.engine)
    code = wasmtime.Module(host.engine, encode(module))
    peak = wasmtime.Instance(store, code, [host.memory]).exports(store)["peak"]
    assert peak(store, 10, 2.0, 0.25) == 10 * 2 * 3 * 4 * 0.5


def test_views_stay_valid_when_the_memory_grows() -> None:
    host = Host()
    view = host.view(1024, (4,))
    view[:] = 1, 2, 3, 4
    base = ctypes.addressof(host.memory.data_ptr().contents)
    host.grow(100 * PAGE_BYTES + 1)
    assert host.memory.data_len() == 101 * PAGE_BYTES
    assert ctypes.addressof(host.memory.data_ptr().contents) == base
    view[0] = 7
    assert host.view(1024, (4,)).tolist() == [7, 2, 3, 4]
    assert host.view(100 * PAGE_BYTES, (2,)).tolist() == [0, 0]


def test_a_trap_is_an_exception() -> None:
    f = FunctionBuilder("sum", [("address", "i32")])
    f.emit("local.get", f.parameter("address"))
    f.emit("f32.load", 8)
    f.emit("drop")
    module = kernel_module(f.build(), shared=True)
    kernel = Host().load(module)
    kernel(16)
    with pytest.raises(wasmtime.Trap, match="out of bounds memory access") as caught:
        kernel(-16)
    assert caught.value.trap_code == wasmtime.TrapCode.MEMORY_OUT_OF_BOUNDS
    kernel(16)


def test_an_endless_kernel_is_stopped_from_another_thread() -> None:
    f = FunctionBuilder("spin", [("n", "i32")])
    with f.loop("forever") as forever:
        f.jump(forever)
    host = Host(interruptible=True)
    kernel = host.load(kernel_module(f.build(), shared=True))
    stopped = threading.Event()

    def interrupt() -> None:
        while not stopped.wait(0.01):
            host.engine.increment_epoch()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(wasmtime.Trap) as caught:
            kernel(0)
    finally:
        stopped.set()
        thread.join()
    assert caught.value.trap_code == wasmtime.TrapCode.INTERRUPT


def test_a_dropped_kernel_leaves_nothing_in_the_host() -> None:
    host = Host()
    module = kernel_module(matmul(8, 1, 1, 1), shared=True)
    kernels = [host.load(replace(module, name=f"kernel {index}")) for index in range(20)]
    stores = [weakref.ref(kernel.store) for kernel in kernels]
    kernels.clear()
    gc.collect()
    assert not any(store() for store in stores)
