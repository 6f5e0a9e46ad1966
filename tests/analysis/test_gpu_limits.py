"""Whether kernels are within the limits of a GPU."""

import pytest

from mlcweb.analysis import verify_gpu_code
from mlcweb.ir import TVMError
from mlcweb.script import tir as T


@T.prim_func
def staged(A: T.Buffer((8, 64, 4), "float32"), B: T.Buffer((8, 64, 4), "float32")):
    for bx in T.thread_binding(8, thread="blockIdx.x"):
        with T.block("tile"):
            vb = T.axis.spatial(8, bx)
            tile = T.alloc_buffer((64, 4), "float32", scope="shared")
            own = T.alloc_buffer((4,), "float32", scope="local")
            for ty in T.thread_binding(4, thread="threadIdx.y"):
                for tx in T.thread_binding(16, thread="threadIdx.x"):
                    for i in T.vectorized(4):
                        with T.block("load"):
                            v, w = T.axis.remap("SS", [ty, i])
                            vx = T.axis.spatial(16, tx)
                            tile[v * 16 + vx, w] = A[vb, v * 16 + vx, w]
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                for i, j in T.grid(4, 4):
                    with T.block("store"):
                        vx, v, w = T.axis.remap("SSS", [tx, i, j])
                        own[w] = tile[v * 16 + vx, w]
                        B[vb, v * 16 + vx, w] = own[w]


@T.prim_func
def two(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for tx in T.thread_binding(256, thread="threadIdx.x"):
        A[tx] = T.float32(1)
    for vx in T.thread_binding(2, thread="vthread.x"):
        for tx in T.thread_binding(128, thread="threadIdx.x"):
            B[vx * 128 + tx] = A[vx * 128 + tx]


@pytest.mark.parametrize(
    ("func", "limit", "least"),
    [
        (staged, "max_threads_per_block", 64), (staged, "max_thread_x", 16),
        (staged, "max_thread_y", 4), (staged, "max_thread_z", 1),
        (staged, "max_shared_memory_per_block", 1024), (staged, "max_local_memory_per_block", 16),
        (staged, "max_vector_bytes", 16), (staged, "max_kernels", 1),
        (two, "max_kernels", 2), (two, "max_thread_x", 256), (two, "max_vthread", 2),
        (two, "max_vector_bytes", 4),
    ],
)  # fmt: skip
def test_the_least_limit_that_a_program_is_within(func, limit, least):
    assert verify_gpu_code(func, {"max_threads_per_block": 256, limit: least})
    assert not verify_gpu_code(func, {"max_threads_per_block": 256, limit: least - 1})


def test_limits_are_checked_by_name():
    with pytest.raises(TVMError, match="there is no limit max_threads; there are max_kernels"):
        verify_gpu_code(two, {"max_threads": 1})
