"""What threads pass each other: through global memory, by atomics, and what they cannot."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir.errors import TVMError
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.script import from_source
from tests.gpu import assert_kernels_give, compile_cuda, runners


def through(blocks, threads, read, size=1024):
    """B is a copy of A, and C reads it."""
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32"),
         C: T.Buffer(({size},), "float32")):
    for b in T.thread_binding({blocks}, thread="blockIdx.x"):
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            B[b * {threads} + t] = A[b * {threads} + t] * T.float32(2)
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            C[b * {threads} + t] = B[{read}]
"""
    )


def source(func, target):
    return tvm.build(func, target=target).imported_modules[0].get_source()


@pytest.mark.parametrize(
    ("read", "blocks"), [("1023 - b * 256 - t", r"\(0\).*\(3\)"), ("(b * 256 + t + 1) % 1024", "")]
)
def test_blocks_do_not_wait_for_each_other(read, blocks):
    with pytest.raises(ThreadError, match=r"reads an element of .B. that block") as caught:
        source(through(4, 256, read), "cuda")
    assert blocks == "" or blocks.replace(r"\(", "(").replace(r"\)", ")").split(".*")[0] in str(
        caught.value
    )
    assert "C[b * 256 + t] = B[" in str(caught.value)
    assert ":7:13) in the same kernel" in str(caught.value)


def test_threads_of_a_block_wait_for_what_others_write_to_global_memory():
    func = through(4, 256, "b * 256 + 255 - t")
    assert source(func, "cuda").count("__syncthreads();") == 1
    assert "CLK_GLOBAL_MEM_FENCE" in source(func, "opencl")
    assert "storageBarrier();" in source(func, "webgpu")
    assert "mem_flags::mem_device" in source(func, "metal")
    a = np.arange(1024, dtype="float32")
    b, c = np.zeros((2, 1024), "float32")
    kernel = tvm.build(func, target="llvm")
    arrays = [tvm.nd.array(x) for x in (a, b, c)]
    kernel["main"](*arrays)
    expected = (a * 2).reshape(4, 256)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(arrays[2].numpy(), expected)


def test_a_thread_does_not_wait_for_itself():
    assert "__syncthreads" not in source(through(4, 256, "b * 256 + t"), "cuda")


def histogram(dtype="int32", place="T.address_of(B[A[b * 256 + t]])"):
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((1024,), "int32"), B: T.Buffer((16,), "{dtype}")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(256, thread="threadIdx.x"):
            with T.block("count"):
                T.reads(A[0:1024])
                T.writes(B[0:16])
                T.evaluate(T.atomic_add("{dtype}", {place}, T.{dtype}(1)))
"""
    )


@pytest.mark.parametrize(
    "place",
    [
        "T.address_of(B[A[b * 256 + t]])",
        'T.tvm_access_ptr(T.type_annotation("int32"), B.data, A[b * 256 + t], 1, 3)',
    ],
)
def test_atomics(place):
    func = histogram(place=place)
    assert "atomicAdd(&B[A[((int)blockIdx.x) * 256 + ((int)threadIdx.x)]], 1);" in source(
        func, "cuda"
    )
    assert "atomic_add(&B[" in source(func, "opencl")
    assert "atomic_fetch_add_explicit((device atomic_int*)&B[" in source(func, "metal")
    assert compile_cuda(source(func, "cuda")) == ""
    a = np.random.default_rng(0).integers(0, 16, 1024).astype("int32")
    for target in ("llvm", "numpy", "interpreter"):
        b = tvm.nd.array(np.zeros(16, "int32"))
        tvm.build(func, target=target)["main"](tvm.nd.array(a), b)
        np.testing.assert_array_equal(b.numpy(), np.bincount(a, minlength=16))


def test_atomics_in_shared_memory():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((256,), "int32"), B: T.Buffer((16,), "int32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("counts"):
            T.reads(A[0:256])
            T.writes(B[0:16])
            S = T.alloc_buffer((16,), "int32", scope="shared")
            for t in T.thread_binding(256, thread="threadIdx.x"):
                if t < 16:
                    S[t] = 0
            for t in T.thread_binding(256, thread="threadIdx.x"):
                T.evaluate(T.atomic_add("int32", T.address_of(S[A[t]]), 1))
            for t in T.thread_binding(256, thread="threadIdx.x"):
                if t < 16:
                    B[t] = S[t]
"""
    )
    text = source(func, "cuda")
    assert text.count("__syncthreads();") == 2
    assert "atomic_int*" in source(func, "metal") and "(threadgroup " in source(func, "metal")
    text = source(func, "webgpu")
    assert "var<workgroup> S : array<atomic<i32>, 16>;" in text
    assert "B : array<i32>;" in text
    assert "atomicStore(&S[i32(threadIdx.x)], 0);" in text
    assert "atomicAdd(&S[A[i32(threadIdx.x)]], 1);" in text
    assert "B[i32(threadIdx.x)] = atomicLoad(&S[i32(threadIdx.x)]);" in text
    a = np.random.default_rng(1).integers(0, 16, 256).astype("int32")
    for run in runners().values():
        b = np.zeros(16, "int32")
        run(func, [a, b])
        np.testing.assert_array_equal(b, np.bincount(a, minlength=16))
    b = tvm.nd.array(np.zeros(16, "int32"))
    tvm.build(func, target="llvm")["main"](tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), np.bincount(a, minlength=16))


@pytest.mark.parametrize("kind", ["opencl", "webgpu", "cuda"])
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_devices_run_atomics(kind, dtype):
    if (run := runners().get(kind)) is None:
        pytest.skip(f"no {kind} is here")
    a = np.random.default_rng(2).integers(0, 16, 1024).astype("int32")
    b = np.zeros(16, dtype)
    run(histogram(dtype=dtype), [a, b])
    np.testing.assert_array_equal(b, np.bincount(a, minlength=16))


def test_an_atomic_addition_that_a_language_lacks_is_refused():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((32,), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        T.evaluate(T.atomic_add("float32", T.address_of(A[0]), T.float32(1)))
"""
    )
    for target in ("opencl", "webgpu"):
        with pytest.raises(TVMError, match=f"{target} has no atomic addition of float32"):
            source(func, target)


def test_lanes_exchange_in_both_ways():
    func = through(1, 64, "63 - t", 64)
    a = np.arange(64, dtype="float32")
    assert_kernels_give(func, [a, np.zeros(64, "float32")], (a * 2)[::-1])


OWN_ROWS = """
@T.prim_func
def main(A: T.Buffer((4, 32, 8), "float32"), C: T.Buffer((4, 32, 8), "float32")):
    for b in T.thread_binding(4, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            for i in range(8):
                with T.block("C"):
                    vb, vt, vi = T.axis.remap("SSS", [b, t, i])
                    C[vb, vt, vi] = A[vb, vt, vi] + T.float32(1)
"""


@pytest.mark.parametrize("step", ["write_at", "cache_write"])
@pytest.mark.parametrize("scope", ["local", "shared"])
def test_local_memory_is_not_read_outside_of_the_threads_that_write_it(step, scope):
    sch = tvm.tir.Schedule(from_source(OWN_ROWS))
    block, thread, _ = sch.get_loops("C")
    if step == "write_at":
        sch.write_at(block, "C", 0, scope)
    else:
        sch.reverse_compute_at(sch.cache_write("C", 0, scope), block)
    if scope == "local":
        with pytest.raises(ThreadError, match=r'"C_local" is local memory.*"threadIdx.x"'):
            tvm.build(sch.mod, target="cuda")
        if step == "cache_write":
            sch.reverse_compute_at("C_local", thread)
    if scope == "shared" or step == "cache_write":
        x = np.arange(1024, dtype="float32").reshape(4, 32, 8)
        assert_kernels_give(sch.mod["main"], [x], x + 1)


def test_each_thread_may_read_what_it_copied_itself():
    sch = tvm.tir.Schedule(from_source(OWN_ROWS))
    sch.read_at(sch.get_loops("C")[0], "C", 0, "local")
    x = np.arange(1024, dtype="float32").reshape(4, 32, 8)
    assert_kernels_give(sch.mod["main"], [x], x + 1)
