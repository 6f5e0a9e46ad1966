"""Matrix products on tensor cores: the source in CUDA, and numbers on a simulated GPU."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.ir.errors import TVMError
from mlcweb.script import from_source
from mlcweb.tensor_intrin.tensor_cores import get_wmma_intrin_group
from mlcweb.tir import Schedule
from tests.gpu import compile_cuda


def product(m, n, k, transposed=False, out="float32", dtype="float16"):
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k) if transposed else (k, n), dtype, name="B")
    axis = te.reduce_axis((0, k), "k")

    def element(i, j):
        right = b[j, axis] if transposed else b[axis, j]
        return te.sum(a[i, axis].astype(out) * right.astype(out), axis=axis)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")])


def schedule(func, group, warps=2, tiles=2):
    """Blocks of `warps` x `tiles` tiles of 16 x 16, whose operands go through shared memory."""
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, warps, 16])
    j0, j1, j2 = sch.split(j, [None, tiles, 16])
    k0, k1, k2 = sch.split(k, [None, 2, 16])
    sch.reorder(i0, j0, i1, k0, k1, j1, i2, j2, k2)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    result = sch.cache_write(block, 0, "wmma.accumulator")
    sch.reverse_compute_at(result, i1)
    for n, name in enumerate("ab"):
        shared = sch.cache_read(block, n, "shared")
        fragment = sch.cache_read(block, n, f"wmma.matrix_{name}")
        sch.compute_at(fragment, k1)
        sch.compute_at(shared, k0)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, warp, lane = sch.split(fused, [None, warps, 32])
        sch.bind(warp, "threadIdx.y")
        sch.bind(lane, "threadIdx.x")
        x, y = sch.get_loops(fragment)[-2:]
        x0, x1 = sch.split(x, [None, 16])
        y0, y1 = sch.split(y, [None, 16])
        sch.reorder(x0, y0, x1, y1)
        sch.tensorize(x1, group[f"load_{name}"])
    x, y = sch.get_loops(result)[-2:]
    x0, x1 = sch.split(x, [None, 16])
    y0, y1 = sch.split(y, [None, 16])
    sch.reorder(x0, y0, x1, y1)
    sch.tensorize(x1, group["store"])
    init = sch.decompose_reduction(block, k0)
    sch.tensorize(sch.get_loops(init)[-2], group["init"])
    sch.tensorize(i2, group["compute"])
    return sch.mod["main"]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("out", ["float32", "float16"])
def test_a_product_through_shared_memory(transposed, out):
    group = get_wmma_intrin_group("shared", "global", "float16", out, transposed)
    func = schedule(product(64, 96, 64, transposed, out), group)
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    order = "col" if transposed else "row"
    space = "nvcuda::wmma::"
    kind = "float" if out == "float32" else "half"
    assert "#include <mma.h>" in text
    assert f"{space}fragment<{space}accumulator, 16, 16, 16, {kind}> C_wmma_accumulator[2];" in text
    assert f"{space}matrix_b, 16, 16, 16, half, {space}{order}_major> B_shared_wmma" in text
    assert text.count("load_matrix_sync(") == 2
    assert text.count("__syncthreads();") == 2
    assert "mma_sync(C_wmma_accumulator[j_1], " in text
    for architecture in ("compute_75", "compute_90", "compute_100"):
        assert compile_cuda(text, architecture) == ""
    a = np.random.default_rng(0).integers(-4, 5, (64, 64)).astype("float16")
    b = np.random.default_rng(1).integers(-4, 5, (64, 96)).astype("float16")
    c = tvm.nd.empty((64, 96), out)
    right = np.ascontiguousarray(b.T) if transposed else b
    for target in ("cuda", "interpreter"):
        kernel = tvm.build(func, target=target)
        device = tvm.runtime.cuda(0) if target == "cuda" else tvm.runtime.cpu()
        c = tvm.nd.array(np.full((64, 96), -7, out), device)
        kernel["main"](tvm.nd.array(a, device), tvm.nd.array(right, device), c)
        np.testing.assert_array_equal(c.numpy(), (a.astype("float32") @ b.astype("float32")))


def test_integers_on_tensor_cores():
    group = get_wmma_intrin_group("shared", "global", "int8", "int32", True)
    func = schedule(product(32, 32, 32, True, "int32", "int8"), group)
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert "16, 16, 16, signed char, nvcuda::wmma::col_major>" in text
    assert compile_cuda(text) == ""
    a, b = np.random.default_rng(2).integers(-128, 128, (2, 32, 32)).astype("int8")
    for target in ("llvm", "simulated"):
        c = tvm.nd.array(np.zeros((32, 32), "int32"))
        tvm.build(func, target=target)["main"](tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a.astype("int32") @ b.astype("int32").T)


BY_HAND = """
@T.prim_func
def main(
    A: T.Buffer((32, 16), "float16"), B: T.Buffer((16, 32), "float16"),
    C: T.Buffer((32, 32), "float32"),
):
    for tile in T.thread_binding(2, thread="blockIdx.x"):
        for lane in T.thread_binding({lanes}, thread="threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:32, 0:16], B[0:16, 0:32])
                T.writes(C[0:32, 0:32])
                a = T.alloc_buffer((256,), "float16", scope="wmma.matrix_a")
                b = T.alloc_buffer((16, 32), "float16", scope="wmma.matrix_b")
                c = T.alloc_buffer((1, 2, 16, 16), "float32", scope="wmma.accumulator")
                d = T.alloc_buffer((2, 256), "float32", scope="wmma.accumulator")
                {guard}
                T.tvm_load_matrix_sync(a.data, 16, 16, 16, 0, T.tvm_access_ptr(
                    T.type_annotation("float16"), A.data, tile * 256, 256, 1), 16, "row_major")
                for n in range(2):
                    T.tvm_load_matrix_sync(b.data, 16, 16, 16, n, T.address_of(B[0, n * 16]),
                        32, "{layout}")
                    T.tvm_fill_fragment(c.data, 16, 16, 16, n, T.float32(3))
                    T.tvm_fill_fragment(d.data, 16, 16, 16, n, T.float32(0))
                    T.tvm_mma_sync(d.data, n, a.data, 0, b.data, n, c.data, n)
                    T.tvm_store_matrix_sync(d.data, 16, 16, 16, n, T.address_of(
                        C[tile * 16, n * 16]), 32, "row_major")
"""


def by_hand(lanes=32, guard="T.evaluate(0)", layout="row_major"):
    return from_source(BY_HAND.format(lanes=lanes, guard=guard, layout=layout))


def test_instructions_written_by_hand():
    func = by_hand()
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert "load_matrix_sync(a[0], A + ((int)blockIdx.x) * 256, 16);" in text
    assert "load_matrix_sync(b[0], B + n * 16, 32);" in text
    assert "mma_sync(d[0], a[0], b[0], c[n]);" in text
    assert compile_cuda(text) == ""
    a = np.random.default_rng(3).integers(-4, 5, (32, 16)).astype("float16")
    b = np.random.default_rng(4).integers(-4, 5, (16, 32)).astype("float16")
    for target in ("llvm", "numpy", "interpreter"):
        c = tvm.nd.array(np.zeros((32, 32), "float32"))
        tvm.build(func, target=target)["main"](tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a.astype("float32") @ b.astype("float32") + 3)


@pytest.mark.parametrize(
    ("options", "target", "reason"),
    [
        ({}, "opencl", "Tensor cores are NVIDIA's, and opencl has no instruction for them"),
        ({}, "webgpu", "float16|webgpu has no instruction"),
        ({}, "metal", "metal has no instruction for them: build for \"cuda\""),
        ({"lanes": 16}, "cuda", "the 32 threads of a warp work together, and has 16 along"),
        ({"layout": "col_major", "guard": "T.tvm_load_matrix_sync(b.data, 16, 16, 16, 0, "
          "T.address_of(B[0, 0]), 32, 'row_major')"}, "cuda",
         r'"b" has fragments of 16x16x16 \(row_major\) and of 16x16x16 \(col_major\)'),
        ({"guard": "if lane < 8: T.tvm_fill_fragment(c.data, 16, 16, 16, 0, T.float32(0))"}, "cuda",
         "not all of them come: the condition .*lane < 8.* depends on threadIdx.x"),
        ({"guard": "c[0, 0, 0, 0] = T.float32(1)"}, "cuda", "one thread cannot reach"),
    ],
)  # fmt: skip
def test_what_tensor_cores_refuse(options, target, reason):
    with pytest.raises(TVMError, match=reason):
        tvm.build(by_hand(**options), target=target)
