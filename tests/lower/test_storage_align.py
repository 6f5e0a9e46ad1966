"""Rows of shared memory that lie apart as `storage_align` asks, in kernels."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import TVMError
from mlcweb.lower.launch_threads import lower_for_device, passes_to_simulated_threads
from mlcweb.lower.pipeline import run_pipeline
from mlcweb.lower.storage_align import aligned_strides
from mlcweb.playground.gpu.profile import profiles
from mlcweb.script import from_source
from mlcweb.tir.stmt import AllocBuffer, statements_in

TRANSPOSE = """
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32")):
    for i, j in T.grid({n}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""


def transpose(tile=32, **alignment):
    sch = tvm.tir.Schedule(from_source(TRANSPOSE.format(n=2 * tile)))
    i, j = sch.get_loops("B")
    (i, y), (j, x) = sch.split(i, [None, tile]), sch.split(j, [None, tile])
    sch.reorder(i, j, y, x)
    copy = sch.cache_read("B", 0, "shared")
    sch.compute_at(copy, j)
    for loops in ((y, x), sch.get_loops(copy)[-2:]):
        for loop, axis in zip(loops, "yx", strict=True):
            sch.bind(loop, f"threadIdx.{axis}")
    sch.bind(i, "blockIdx.y")
    sch.bind(j, "blockIdx.x")
    if alignment:
        sch.storage_align(copy, 0, **alignment)
    return sch


@pytest.mark.parametrize(
    ("shape", "alignments", "strides"),
    [
        ((32, 32), [], [32, 1]),
        ((32, 32), [(0, 32, 1)], [33, 1]),
        ((16, 16), [(0, 32, 8)], [40, 1]),
        ((4, 8, 8), [(1, 4, 1)], [72, 9, 1]),
        ((4, 8, 8), [(0, 32, 16)], [80, 8, 1]),
    ],
)
def test_strides(shape, alignments, strides):
    assert aligned_strides(shape, alignments) == strides


def test_columns_of_a_tile_lie_in_different_banks():
    plain, padded = (
        tvm.build(sch.mod, target="cuda").imported_modules[0].get_source()
        for sch in (transpose(), transpose(axis=0, factor=32, offset=1))
    )
    assert "A_shared[1024]" in plain
    assert "((int)threadIdx.x) * 32 + ((int)threadIdx.y)" in plain
    assert "A_shared[1056]" in padded
    assert "((int)threadIdx.x) * 33 + ((int)threadIdx.y)" in padded
    lowered = lower_for_device(transpose(axis=0, factor=32, offset=1).mod["main"])
    assert "buffer_dim_align" not in lowered.script()
    a, b = tvm.nd.array(np.random.rand(64, 64).astype("float32")), tvm.nd.empty((64, 64))
    tvm.build(lowered)(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy().T)


def test_the_gpu_view_shows_the_padded_tile():
    plain, padded = (
        profiles(sch.mod["main"], "main")[0]
        for sch in (transpose(), transpose(axis=0, factor=32, offset=1))
    )
    # Each of 4 blocks stores and loads the rows and columns of its tile by 32 warps.
    passes = [sum(cost.passes for cost in each.counts if cost) for each in (plain, padded)]
    assert passes == [4 * (32 + 32 * 32), 4 * (32 + 32)]
    assert (plain.shared_bytes, padded.shared_bytes) == (32 * 32 * 4, 32 * 33 * 4)
    (fetch,) = padded.fetches
    assert padded.columns[fetch.site.buffer.data] == 33
    padding = fetch.threads.reshape(32, 33)[:, 32]
    assert (padding == -1).all()
    assert fetch.elements == 32 * 32


def test_the_simulated_gpu_has_the_padded_tile_too():
    func = transpose(tile=8, axis=0, factor=32, offset=1).mod["main"]
    launches = run_pipeline(func, passes_to_simulated_threads())
    tiles = [s.buffer for s in statements_in(launches.body) if isinstance(s, AllocBuffer)]
    assert [list(map(int, tile.strides)) for tile in tiles] == [[33, 1]]
    a, b = tvm.nd.array(np.random.rand(16, 16).astype("float32")), tvm.nd.empty((16, 16))
    tvm.build(func, target="simulated")(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy().T)


def test_an_annotation_that_is_none_is_refused():
    text = transpose(axis=0, factor=32, offset=1).mod["main"].script()
    func = from_source(text.replace("[[0, 0, 32, 1]]", "[[3, 0, 32, 1]]"))
    with pytest.raises(TVMError, match="a buffer that the block writes, axis, factor, offset"):
        tvm.build(func, target="cuda")


def test_memory_whose_rows_lie_apart_already_stays():
    """TVM prints what the rows were to be with memory that it has laid out so."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    shared = T.alloc_shared((72,), annotations={"buffer_dim_align": [[-1, 1, 8, 2]]})
    with T.launch_thread("threadIdx.x", 64) as tx:
        shared[tx // 8 * 9 + tx % 8] = A[tx]
        T.tvm_storage_sync("shared")
        B[tx] = shared[tx % 8 * 9 + tx // 8]
""")
    a, b = tvm.nd.array(np.arange(64, dtype="float32")), tvm.nd.empty((64,))
    tvm.build(func, "simulated")["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy().reshape(8, 8).T.ravel())
