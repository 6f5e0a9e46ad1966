"""Phases between barriers, and who fetches what into shared memory."""

import pytest

from mlcweb.codegen.gpu.kernels import NO_THREADS
from mlcweb.ir import TVMError
from mlcweb.playground.gpu.profile import profiles
from mlcweb.script import from_source
from tests.playground.gpu.kernels import kernel

TILED = """
S = T.alloc_buffer((1024,), scope="shared")
L = T.alloc_buffer((1,), scope="local")
for k in range(8):
    for r in range({iterations}):
        S[r * 256 + y * 32 + x] = A[(r * 8 + y) * 256 + k * 32 + x]
    for i in range(32):
        L[0] = L[0] + S[i * 32 + x]
B[b * 256 + y * 32 + x] = L[0]
"""


def test_phases_in_a_loop() -> None:
    profile = kernel(TILED.format(iterations=4), threads="y=8 x=32", blocks=4)
    steps = [
        (step.kind, step.depth, step.loop.extent if step.loop else step.phase)
        for step in profile.parts.steps
    ]
    assert steps == [
        ("loop", 0, 8),
        ("barrier", 1, 0),
        ("phase", 1, 0),
        ("barrier", 1, 0),
        ("phase", 1, 1),
        ("phase", 0, 2),
    ]
    phases = [(site.kind, site.buffer.name, site.phase) for site in profile.sites]
    assert phases == [("load", "A", 0), ("store", "S", 0), ("load", "S", 1), ("store", "B", 2)]
    assert profile.operations == 4 * 256 * 8 * 32
    assert profile.sectors == 4 * (8 * 32 * 4 + 8 * 4)


def test_threads_share_out_a_fetch() -> None:
    profile = kernel(TILED.format(iterations=4), threads="y=8 x=32")
    (fetch,) = profile.fetches
    assert fetch.source == "A"
    assert fetch.elements == 1024
    assert fetch.threads[:34].tolist() == [*range(32), 32, 33]
    assert fetch.threads[256:258].tolist() == [0, 1]
    assert fetch.iterations[[0, 255, 256, 1023]].tolist() == [0, 0, 1, 3]


def test_what_all_rows_of_threads_would_store_one_row_does() -> None:
    body = """
S = T.alloc_buffer((64,), scope="shared")
for r in range(2):
    S[r * 32 + x] = A[r * 32 + x]
B[y * 32 + x] = S[63 - x]
"""
    (fetch,) = kernel(body, threads="y=4 x=32").fetches
    assert fetch.threads.tolist() == [*range(32), *range(32)]
    assert fetch.iterations.tolist() == [0] * 32 + [1] * 32


def test_vectors_are_fetched_by_one_thread() -> None:
    body = """
S = T.alloc_buffer((128,), scope="shared")
for v in T.vectorized(4):
    S[x * 4 + v] = A[x * 4 + v]
B[x] = S[127 - x]
"""
    (fetch,) = kernel(body).fetches
    assert fetch.threads.tolist() == [lane for lane in range(32) for _ in range(4)]


def test_atomic_updates_are_accesses_of_their_own() -> None:
    buffers = 'A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")'
    profile = kernel(
        "T.evaluate(T.call_intrin('int32', 'tir.atomic_add', T.address_of(B[0]), A[x]))",
        buffers=buffers,
    )
    kinds = [(site.kind, site.buffer.name) for site in profile.sites]
    assert kinds == [("load", "A"), ("atomic", "B")]


def test_functions_without_threads_and_without_sizes_are_refused() -> None:
    plain = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((8,), 'float32')):\n"
        "    for i in range(8):\n        A[i] = T.float32(0)"
    )
    with pytest.raises(TVMError) as caught:
        profiles(plain, "main")
    assert NO_THREADS in str(caught.value)
    symbolic = from_source(
        "@T.prim_func\ndef main(a: T.handle, n: T.int32):\n"
        "    A = T.match_buffer(a, (n,), 'float32')\n"
        "    for b in T.thread_binding(n, thread='blockIdx.x'):\n"
        "        A[b] = T.float32(0)"
    )
    (profile,) = profiles(symbolic, "main")
    with pytest.raises(TVMError, match="bind its sizes to numbers"):
        _ = profile.launch
