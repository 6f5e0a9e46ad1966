"""The native host: memory that is reused and bounded, traps, time limits, calls of every kind."""

import gc
import weakref

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb.codegen.wasm.kernel import compile_functions
from mlcweb.ir import TVMError
from mlcweb.runtime.host import wasm_target
from mlcweb.runtime.host.arena import OutOfMemory
from mlcweb.runtime.host.wasmtime_host import WasmtimeHost
from mlcweb.script import from_source


def build(text, **options):
    return wasm_target.build({"main": from_source(text)}, lambda name: None, **options)["main"]


def add(size, **options):
    """C = A + B."""
    buffers = ", ".join(f'{name}: T.Buffer(({size},), "float32")' for name in "ABC")
    return build(
        f"@T.prim_func\ndef main({buffers}):\n"
        '    T.func_attr({"tir.noalias": True})\n'
        f"    for i in range({size}):\n        C[i] = A[i] + B[i]\n",
        **options,
    )


SYMBOLIC_ADD = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    T.func_attr({"tir.noalias": True})
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = A[i] + T.float32(1)
"""
ENDLESS = """
@T.prim_func
def main(A: T.Buffer((1,), "int32")):
    while A[0] == 0:
        A[0] = 0
"""


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 63, 64, 1000])
def test_sizes_that_no_vector_divides(size):
    a, b = (np.arange(start, start + size, dtype="float32") for start in (1, 10))
    c = np.zeros(size, "float32")
    add(size).run(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_symbolic_sizes_are_compiled_once_each():
    kernel = build(SYMBOLIC_ADD)
    for size in (0, 1, 7, 7, 100):
        a, b = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        kernel.run(a, b)
        np.testing.assert_array_equal(b, a + 1)
    assert len(kernel.variants) == 4


def test_scalars_are_passed_by_value():
    kernel = build(
        "@T.prim_func\n"
        "def main(A: T.Buffer((3,), 'float64'), x: T.float64, n: T.int64, k: T.int32):\n"
        "    for i in range(3):\n"
        "        A[i] = x * T.Cast('float64', n) + T.Cast('float64', k)\n"
    )
    values = np.zeros(3)
    kernel.run(values, 0.5, 2**40, -3)
    assert values.tolist() == [2.0**39 - 3] * 3


def test_arrays_that_share_memory():
    text = (
        "@T.prim_func\n"
        "def main(A: T.Buffer((9,), 'int32'), B: T.Buffer((9,), 'int32')):\n"
        "    T.func_attr({'tir.noalias': False})\n"
        "    for i in range(8):\n"
        "        B[i + 1] = A[i] + 1\n"
    )
    host = WasmtimeHost()
    storage = host.allocate(36)
    array = storage.view().view("int32")
    array[...] = 0
    build(text, host=host).run_aliased(array, array)
    assert array.tolist() == list(range(9))


def test_arrays_in_the_memory_are_used_in_place():
    host = WasmtimeHost()
    kernel = add(64, host=host)
    arrays = [host.allocate(256).view().view("float32") for _ in range(3)]
    for array in arrays:
        array[...] = 1
    before = host.nbytes
    for _ in range(10):
        kernel.run(*arrays)
    assert host.nbytes == before
    assert arrays[2].tolist() == [2.0] * 64


def test_memory_grows_under_the_arrays_and_is_reused():
    host = WasmtimeHost()
    first = host.allocate(1000).view()
    first[...] = 7
    held = [host.allocate(1 << 20) for _ in range(20)]
    assert host.nbytes > len(held) << 20
    assert (first == 7).all()
    before = host.nbytes
    for _ in range(50_000):
        host.allocate(1 << 16)
    assert host.nbytes <= before * 1.3


def test_a_view_keeps_its_memory():
    host = WasmtimeHost()
    view = host.allocate(64).view()
    view[...] = 1
    gc.collect()
    for _ in range(3):
        host.allocate(64).view()[...] = 2
    assert (view == 1).all()


def test_too_much_memory():
    host = WasmtimeHost()
    with pytest.raises(OutOfMemory, match="memory of WebAssembly is full"):
        host.allocate(5 << 30)
    assert host.allocate(64).nbytes == 64


def test_modules_leave_nothing_behind():
    host = WasmtimeHost()
    compiled = compile_functions({"main": from_source(ENDLESS)}, shared=True)
    code = compiled.code

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    seen = weakref.WeakSet()
    for _ in range(200):
        seen.add(host.instantiate(code))
    before = resident()
    for _ in range(1000):
        seen.add(host.instantiate(code))
    gc.collect()
    assert len(seen) <= 1
    assert resident() - before < 64 << 20


def test_bytes_that_are_no_module_are_refused():
    with pytest.raises(TVMError, match="refuses the module"):
        WasmtimeHost().instantiate(b"\0asm\1\0\0\0nonsense")


def test_the_loop_beside_the_kernel_runs_so_many_times():
    kernel = build("@T.prim_func\ndef main(A: T.Buffer((1,), 'int32')):\n    A[0] = A[0] + 1\n")
    values = np.zeros(1, "int32")
    assert kernel.time_batch(1000, values) > 0
    assert values[0] == 1000
    assert kernel.time_batch(0, values) >= 0
    assert values[0] == 1000
