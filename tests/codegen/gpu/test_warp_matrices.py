"""Matrix products by the matrix instructions of PTX: the source in CUDA, and numbers."""

import re

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.ir.errors import TVMError
from mlcweb.script import from_source
from mlcweb.tensor_intrin.cuda import (
    get_mma_intrin_group,
    shared_16x16_to_ldmatrix_32x8_layout,
    shared_16x32_to_ldmatrix_32x16_layout,
    shared_32x16_to_ldmatrix_32x16_layout,
)
from mlcweb.testing.tir import mma_schedule
from mlcweb.tir import Schedule
from tests import cuda_on_cpu
from tests.gpu import compile_cuda

SIZES = (32, 32, 64)


def product(dtype, out, a_transposed, b_transposed):
    m, n, k = SIZES
    a = te.placeholder((k, m) if a_transposed else (m, k), dtype, name="A")
    b = te.placeholder((n, k) if b_transposed else (k, n), dtype, name="B")
    axis = te.reduce_axis((0, k), "k")

    def element(i, j):
        left = a[axis, i] if a_transposed else a[i, axis]
        right = b[j, axis] if b_transposed else b[axis, j]
        return te.sum(left.astype(out) * right.astype(out), axis=axis)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")])


def tiled(layout, rows, columns):
    return lambda i, j: (i // rows, j // columns, *layout(i % rows, j % columns))


def schedule(dtype, out, a_transposed=False, b_transposed=False, simple=False):
    """Two warps of 16 x 32 elements each, whose operands go through shared memory."""
    depth = 16 if dtype == "float16" else 32
    group = get_mma_intrin_group(
        "shared",
        "global",
        dtype,
        out,
        a_transposed,
        b_transposed,
        not_use_mma_store_intrinic=simple,
    )
    sch = Schedule(product(dtype, out, a_transposed, b_transposed))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2, i3 = sch.split(i, [None, 2, 1, 16])
    j0, j1, j2 = sch.split(j, [None, 2, 16])
    k0, k1, k2 = sch.split(k, [None, 32 // depth, depth])
    sch.reorder(i0, j0, i1, k0, k1, i2, j1, i3, j2, k2)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    for n, flag in enumerate((a_transposed, b_transposed)):
        shared = sch.cache_read(block, n, "shared")
        warp = sch.cache_read(block, n, "warp")
        sch.compute_at(warp, k1)
        sch.compute_at(shared, k0)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, y, x = sch.split(fused, [None, 2, 32])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.storage_align(shared, 0, axis=-2, factor=32, offset=16 if dtype == "int8" else 8)
        rows, columns = (16, depth) if flag == bool(n) else (depth, 16)
        layout = {
            (16, 16): shared_16x16_to_ldmatrix_32x8_layout,
            (16, 32): shared_16x32_to_ldmatrix_32x16_layout,
            (32, 16): shared_32x16_to_ldmatrix_32x16_layout,
        }[rows, columns]
        x, y = sch.get_loops(warp)[-2:]
        x0, x1 = sch.split(x, [None, rows])
        y0, y1 = sch.split(y, [None, columns])
        sch.reorder(x0, y0, x1, y1)
        sch.transform_layout(warp, ("write", 0), tiled(layout, rows, columns))
        sch.tensorize(x1, group["load_b" if n else "load_a"])
    result = sch.cache_write(block, 0, "warp")
    sch.reverse_compute_at(result, i1)
    x, y = sch.get_loops(result)[-2:]
    x0, x1 = sch.split(x, [None, 16])
    y0, y1 = sch.split(y, [None, 16])
    sch.reorder(x0, y0, x1, y1)
    sch.transform_layout(result, ("read", 0), tiled(shared_16x16_to_ldmatrix_32x8_layout, 16, 16))
    init = sch.decompose_reduction(block, k0)
    sch.tensorize(sch.get_loops(init)[-2], group["init"])
    sch.tensorize(i3, group["compute"])
    sch.tensorize(x1, group["store"])
    return sch.mod["main"]


def operands(dtype, out, a_transposed=False, b_transposed=False):
    m, n, k = SIZES
    rng = np.random.default_rng(0)
    high = 128 if dtype == "int8" else 4
    a, b = (rng.integers(-high, high, shape).astype(dtype) for shape in ((m, k), (k, n)))
    wide = "int32" if dtype == "int8" else "float32"
    expected = (a.astype(wide) @ b.astype(wide)).astype(out)
    a, b = a.T if a_transposed else a, b.T if b_transposed else b
    return np.ascontiguousarray(a), np.ascontiguousarray(b), expected


KINDS = [
    ("float16", "float32", False, False),
    ("float16", "float32", True, True),
    ("float16", "float16", True, False),
    ("float16", "float16", False, True),
    ("int8", "int32", False, True),
    ("int8", "int32", False, False),
]


def assert_numbers(func, arrays, expected, targets):
    for target in targets:
        device = tvm.runtime.cuda(0) if target == "cuda" else tvm.runtime.cpu()
        out = tvm.nd.array(np.full(expected.shape, -7, expected.dtype), device)
        tvm.build(func, target=target)["main"](*(tvm.nd.array(x, device) for x in arrays), out)
        np.testing.assert_array_equal(out.numpy(), expected, err_msg=target)


def assert_in_registers(func, arrays, expected):
    """The text gives these numbers, run by a C++ compiler's threads, and NVRTC compiles it."""
    if cuda_on_cpu.COMPILER is not None:
        out = np.full(expected.shape, -7, expected.dtype)
        cuda_on_cpu.run_cuda_on_cpu(func, [*arrays, out])
        np.testing.assert_array_equal(out, expected)
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert compile_cuda(text, "compute_80") == ""
    return text


@pytest.mark.parametrize(("dtype", "out", "a_transposed", "b_transposed"), KINDS)
def test_products(dtype, out, a_transposed, b_transposed):
    func = schedule(dtype, out, a_transposed, b_transposed)
    *arrays, expected = operands(dtype, out, a_transposed, b_transposed)
    tvm.ir.assert_structural_equal(from_source(func.script()), func)
    targets = ["interpreter", "simulated"]
    if (out, a_transposed, b_transposed) == ("float32", False, False):
        targets += ["cuda", "llvm", "wasm"]
    assert_numbers(func, arrays, expected, targets)
    text = assert_in_registers(func, arrays, expected)
    short = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}
    types = f"{short[out]}.{short[dtype]}.{short[dtype]}.{short[out]}"
    assert f"mma.sync.aligned.m16n8k{16 if dtype == 'float16' else 32}.row.col.{types}" in text
    assert text.count("__syncthreads();") == 2
    # Of the 16 x 32 elements of a warp's result each of 32 lanes has 16.
    kind = {"float32": "float", "float16": "half", "int32": "int"}[out]
    assert f"alignas(16) {kind} C_warp[16];" in text
    assert re.search(r"alignas\(16\) (half|signed char) A_shared_warp\[(8|16)\];", text)


def test_a_store_by_elements():
    func = schedule("float16", "float32", simple=True)
    *arrays, expected = operands("float16", "float32")
    assert_numbers(func, arrays, expected, ["simulated"])
    assert_in_registers(func, arrays, expected)


@pytest.mark.parametrize(("dtype", "out"), [("float16", "float32"), ("int8", "int32")])
def test_the_schedule_of_tests(dtype, out):
    """tvm.testing.tir.mma_schedule, by which TVM's tests of these instructions schedule."""
    depth = 16 if dtype == "float16" else 32
    group = get_mma_intrin_group("shared", "global", dtype, out, False, True)
    layout = tiled(shared_16x16_to_ldmatrix_32x8_layout, 16, 16)
    operand = tiled(shared_16x32_to_ldmatrix_32x16_layout, 16, 32) if depth == 32 else layout
    sch = mma_schedule(
        product(dtype, out, False, True),
        depth,
        dtype,
        True,
        (1, 1, 2, 1, 1),
        (1, 1, 1, 1, 2),
        (2, 32 // depth, 1),
        *(operand, operand, layout),
        *(group[name] for name in ("load_a", "load_b", "compute", "init", "store")),
    )
    *arrays, expected = operands(dtype, out, b_transposed=True)
    assert_numbers(sch.mod["main"], arrays, expected, ["simulated"])
    assert "mma.sync.aligned" in assert_in_registers(sch.mod["main"], arrays, expected)


LDMATRIX = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float16"), B: T.Buffer((32, 8), "float16")):
    for tx in T.thread_binding({lanes}, thread="threadIdx.x"):
        with T.block("root"):
            T.reads(A[0:16, 0:16])
            T.writes(B[0:32, 0:8])
            A_shared = T.alloc_buffer((16, {stride}), "float16", scope="shared")
            A_local = T.alloc_buffer((8,), "float16", scope="{scope}")
            for i in range(8):
                A_shared[i * 2 + tx // 16, tx % 16] = A[i * 2 + tx // 16, tx % 16]
            {guard}T.ptx_ldmatrix({turns}, {count}, ".b16", A_local.data, 0,
                {pointer}, {stride} * (tx % 16) + 8 * (tx // 16), dtype="float16")
            for i in range({count} * 2):
                B[tx, i] = A_local[i]
"""


ODD_ROWS = "A_shared[tx % 16, 19] = T.float16(0)\n" + " " * 12


def ldmatrix(
    turns=False, count=4, pointer="A_shared.data", lanes=32, stride=16, guard="", scope="local"
):
    return from_source(
        LDMATRIX.format(
            turns=turns, count=count, pointer=pointer, lanes=lanes, stride=stride, guard=guard,
            scope=scope,
        )
    )  # fmt: skip


def test_a_lane_by_the_name_that_a_block_gives_it():
    head, line, body = LDMATRIX.partition('with T.block("root"):\n')
    binding = " " * 12 + "vx = T.axis.spatial(32, tx)\n"
    text = head + line + binding + re.sub(r"\btx\b", "vx", body)
    func = from_source(
        text.format(
            turns=False, count=4, pointer="A_shared.data", lanes=32, stride=16, guard="",
            scope="local",
        )
    )  # fmt: skip
    a = np.arange(256).reshape(16, 16).astype("float16")
    expected = np.concatenate(
        [a[n % 2 * 8 :, n // 2 * 8 :][:8, :8].reshape(32, 2) for n in range(4)], axis=1
    )
    assert_numbers(func, [a], expected, ["interpreter", "simulated", "cuda"])


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("pointer", ["A_shared.data", "T.address_of(A_shared[0, 0])"])
def test_loads_written_by_hand(turns, count, pointer):
    """Registers that each thread has for itself. Of matrix n lane 4 i + j has row i, the columns
    2 j and 2 j + 1, or of its transpose."""
    a = np.arange(256).reshape(16, 16).astype("float16")
    expected = np.full((32, 8), -7, "float16")
    for n in range(count):
        part = a[n % 2 * 8 :, n // 2 * 8 :][:8, :8]
        expected[:, 2 * n : 2 * n + 2] = (part.T if turns else part).reshape(32, 2)
    func = ldmatrix(turns, count, pointer)
    assert_numbers(func, [a], expected, ["interpreter", "simulated", "numpy"])
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if turns else ''}.shared.b16" in text
    assert f"half A_local[{2 * count}];" in text
    assert compile_cuda(text, "compute_80") == ""


PRODUCT = """
@T.prim_func
def main(
    A: T.Buffer(({m}, {k}), "{dtype}"), B: T.Buffer((8, {k}), "{dtype}"),
    C: T.Buffer(({m}, 8), "{out}"),
):
    for block in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:{m}, 0:{k}], B[0:8, 0:{k}])
                T.writes(C[0:{m}, 0:8])
                a = T.alloc_buffer(({m} * {k} // 32,), "{dtype}", scope="local")
                b = T.alloc_buffer((8 * {k} // 32,), "{dtype}", scope="local")
                c = T.alloc_buffer(({m} // 8, 2), "{out}", scope="local")
                T.mma_fill({m} // 4, c.data, 0, dtype="{out}")
                for i in range({m} * {k} // 32):
                    a[i] = A[tx // 4 + i // {word} % ({m} // 8) * 8,
                        tx % 4 * {word} + i // ({word} * {m} // 8) * 4 * {word} + i % {word}]
                for i in range(8 * {k} // 32):
                    b[i] = B[tx // 4, tx % 4 * {word} + i // {word} * 4 * {word} + i % {word}]
                T.ptx_mma("m{m}n8k{k}", "row", "col", "{a_type}", "{a_type}", "{c_type}",
                    a.data, 0, b.data, 0, c.data, 0, {saturates}, dtype="{out}")
                for i in range({m} // 4):
                    C[tx // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = c[i // 2, i % 2]
"""


def one_product(m, k, dtype, a_type, out, c_type, saturates=False):
    word = max(1, 4 // np.dtype(dtype).itemsize)
    return from_source(
        PRODUCT.format(
            m=m, k=k, dtype=dtype, a_type=a_type, out=out, c_type=c_type, word=word,
            saturates=saturates,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        (16, 8, "float16", "fp16", "float32", "fp32"),
        (16, 8, "float16", "fp16", "float16", "fp16"),
        (16, 16, "int8", "int8", "int32", "int32"),
        (16, 32, "uint8", "uint8", "int32", "int32"),
        (8, 16, "int8", "int8", "int32", "int32"),
        (16, 8, "float32", "tf32", "float32", "fp32"),
        (8, 4, "float64", "fp64", "float64", "fp64"),
    ],
)
def test_products_written_by_hand(kind):
    """Each thread loads what its lane has of the tiles, as PTX's manual says."""
    m, k, dtype, _, out, _ = kind
    rng = np.random.default_rng(1)
    low = 0 if dtype == "uint8" else -4
    a, b = (rng.integers(low, 5, shape).astype(dtype) for shape in ((m, k), (8, k)))
    expected = (a.astype(out) @ b.astype(out).T).astype(out)
    func = one_product(*kind)
    assert_numbers(func, [a, b], expected, ["interpreter", "simulated", "llvm"])
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert compile_cuda(text, "compute_80") == ""
    if kind[:3] == (16, 8, "float16"):
        assert f"m16n8k8.row.col.{'f32' if out == 'float32' else 'f16'}.f16.f16" in text


def test_names_that_tvm_has_now():
    """TVM 0.27 calls them so, and prints no types."""
    source = LDMATRIX.replace("T.ptx_ldmatrix", "T.ptx_legacy.ldmatrix").replace(
        ', dtype="float16")', ")"
    )
    func = from_source(
        source.format(
            turns=False, count=4, pointer="A_shared.data", lanes=32, stride=16, guard="",
            scope="local",
        )
    )  # fmt: skip
    a = np.arange(256).reshape(16, 16).astype("float16")
    outs = []
    for each in (func, ldmatrix()):
        out = tvm.nd.empty((32, 8), "float16")
        tvm.build(each, target="simulated")["main"](tvm.nd.array(a), out)
        outs.append(out.numpy())
    np.testing.assert_array_equal(*outs)


def test_bfloat16():
    source = PRODUCT.format(
        m=16, k=16, dtype="bfloat16", a_type="bf16", out="float32", c_type="fp32", word=2,
        saturates=False,
    )  # fmt: skip
    func = from_source(source)
    a, b = np.random.default_rng(0).integers(-4, 5, (2, 16, 16)).astype("float32")
    arrays = [tvm.nd.empty((16, 16), "bfloat16"), tvm.nd.empty((8, 16), "bfloat16")]
    for array, value in zip(arrays, (a, b[:8]), strict=True):
        array.copyfrom(value)
    for target in ("interpreter", "simulated", "llvm"):
        out = tvm.nd.empty((16, 8), "float32")
        tvm.build(func, target=target)["main"](*arrays, out)
        np.testing.assert_array_equal(out.numpy(), a @ b[:8].T, err_msg=target)
    text = tvm.build(func, target="cuda").imported_modules[0].get_source()
    assert "m16n8k16.row.col.f32.bf16.bf16.f32" in text
    assert compile_cuda(text, "compute_80") == ""


@pytest.mark.parametrize(
    ("func", "target", "reason"),
    [
        (ldmatrix(), "opencl", "PTX are NVIDIA's, and opencl has none"),
        (ldmatrix(), "metal", "PTX are NVIDIA's, and metal has none"),
        (ldmatrix(lanes=16), "cuda", "the 32 threads of a warp, .* here is a loop of 16 around it"),
        (ldmatrix(stride=20, guard=ODD_ROWS), "cuda",
         "begin at a multiple of that, and those of .A_shared. may not"),
        (ldmatrix(guard="if tx < 8: "), "cuda", "not all of them come: the condition .*tx < 8"),
        (ldmatrix(count=3), "cuda", "loads 1, 2 or 4 matrices of 2 bytes, not 3 of 2"),
        (ldmatrix(scope="shared"), "cuda", 'and "A_local" has scope "shared"'),
        (one_product(16, 32, "float16", "fp16", "float32", "fp32"), "cuda",
         "fp16 by fp16 in m16n8k8, m16n8k16 to f16 f32 here, not m16n8k32 to fp32"),
        (one_product(16, 16, "float16", "bf16", "float32", "fp32"), "cuda",
         'takes "a" for bf16, which is float16'),
        (one_product(16, 16, "float16", "fp16", "int32", "int32"), "cuda", "not m16n8k16 to int32"),
        (one_product(16, 32, "int8", "int4", "int32", "int32"), "cuda", "in no shape here"),
        (one_product(16, 32, "int8", "int8", "int32", "int32", True), "simulated", "saturation"),
    ],
)  # fmt: skip
def test_what_is_refused(func, target, reason):
    with pytest.raises(TVMError, match=reason):
        tvm.build(func, target=target)


def test_registers_of_another_lane_are_refused():
    """A thread reads what lane 31 - tx has: the simulation can, and registers cannot."""
    source = LDMATRIX.replace("B[tx, i] = A_local[i]", "B[tx, i] = A_local[31 - tx, i]")
    source = source.replace("(8,), ", "(32, 8), ").replace(
        "A_local.data, 0", "A_local.data, tx * 8"
    )
    func = from_source(
        source.format(
            turns=False, count=4, pointer="A_shared.data", lanes=32, stride=16, guard="",
            scope="warp",
        )
    )  # fmt: skip
    a = np.arange(256).reshape(16, 16).astype("float16")
    expected = np.concatenate(
        [a[n % 2 * 8 :, n // 2 * 8 :][:8, :8].reshape(32, 2) for n in range(4)], axis=1
    )[::-1]
    assert_numbers(func, [a], expected, ["simulated", "llvm"])
    with pytest.raises(TVMError, match="a thread reaches those of its lane alone"):
        tvm.build(func, target="cuda")
