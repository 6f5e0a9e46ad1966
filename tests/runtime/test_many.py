"""A long session: thousands of modules and arrays, made and dropped, leave memory bounded."""

import gc
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import engine
from mlcweb.script import from_source

BUILDS = 5_000
ARRAYS = 50_000
MEGABYTE = 1 << 20

FUNCTIONS = [
    from_source(
        "@T.prim_func\n"
        f"def main(A: T.Buffer(({size},), 'float32'), B: T.Buffer(({size},), 'float32')):\n"
        f"    for i in range({size}):\n        B[i] = A[i] + T.float32({size})\n"
    )
    for size in (1, 3, 4)
]


def resident():
    """Bytes of the process that are in memory; skips the test where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        pytest.skip("no /proc")


@pytest.mark.thorough
def test_builds():
    """Code of a kernel takes tens of kilobytes, so that keeping all would take hundreds of MB."""
    arrays = [[nd.array(np.zeros(size, "float32")) for _ in "AB"] for size in (1, 3, 4)]

    def work(count):
        for index in range(count):
            kind = index % len(FUNCTIONS)
            build(FUNCTIONS[kind], "wasm")["main"](*arrays[kind])
        gc.collect()

    work(300)
    before, pages = resident(), engine().nbytes
    work(BUILDS - 300)
    assert engine().nbytes == pages
    assert resident() - before < 40 * MEGABYTE
    assert arrays[2][1].numpy().tolist() == [4] * 4


def test_arrays():
    sizes = [1, 10, 100, 1000, 4096, 10_000]

    def work(count):
        held = []
        for index in range(count):
            held.append(nd.array(np.full(sizes[index % len(sizes)], index, "float32")))
            if len(held) > 50:
                assert held.pop(index * 7 % 50) is not None

    work(2_000)
    tracemalloc.start()
    try:
        pages, (before, _) = engine().nbytes, tracemalloc.get_traced_memory()
        work(ARRAYS - 2_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert engine().nbytes == pages
    assert after - before < MEGABYTE


def test_an_array_that_is_too_large():
    kept = nd.array(np.arange(4.0))
    with pytest.raises(MemoryError) as caught:
        nd.empty((1 << 20, 1 << 14), "float32")
    message = str(caught.value)
    assert "shape (1048576, 16384) and type float32, which takes 68719476736 bytes" in message
    assert "memory of WebAssembly is full" in message
    assert kept.numpy().tolist() == [0, 1, 2, 3]
    assert nd.array(np.ones(1000)).numpy().sum() == 1000
