"""Rows of shared memory that lie apart as `storage_align` asks, in kernels."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import TVMError
from mlcweb.lower.launch_threads import lower_for_device
from mlcweb.lower.storage_align import aligned_strides
from mlcweb.script import from_source

TRANSPOSE = from_source(
    """
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""
)


def transpose(**alignment):
    sch = tvm.tir.Schedule(TRANSPOSE)
    i, j = sch.get_loops("B")
    (i, y), (j, x) = sch.split(i, [None, 32]), sch.split(j, [None, 32])
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


def test_an_annotation_that_is_none_is_refused():
    sch = transpose()
    sch.annotate("A_shared", "buffer_dim_align", [[3, 0, 32, 1]])
    with pytest.raises(TVMError, match="a buffer that the block writes, axis, factor, offset"):
        tvm.build(sch.mod, target="cuda")
