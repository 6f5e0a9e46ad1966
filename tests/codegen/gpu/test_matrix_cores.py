"""Matrix products by the matrix instructions of AMD's GPUs: numbers, and what is refused."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.ir.errors import TVMError
from mlcweb.script import from_source
from mlcweb.tensor_intrin import rocm
from mlcweb.testing.tir import mfma_schedule

M, N, K = 32, 64, 128

KINDS = {"float32": ("float32", 4, "f32"), "float16": ("float32", 16, "f16"),
         "int8": ("int32", 16, "s8")}  # fmt: skip


def product(dtype, out, transposed):
    a = te.placeholder((M, K), dtype, name="A")
    b = te.placeholder((N, K) if transposed else (K, N), dtype, name="B")
    k = te.reduce_axis((0, K), "k")

    def element(i, j):
        right = b[j, k] if transposed else b[k, j]
        return te.sum(a[i, k].astype(out) * right.astype(out), axis=k)

    return te.create_prim_func([a, b, te.compute((M, N), element, name="C")])


def tiled(layout, rows, columns):
    return lambda i, j: (i // rows, j // columns, *layout(i % rows, j % columns))


def schedule(dtype, transposed=False):
    """Two wavefronts in a block, of two by two tiles each, which load 64 columns at a time."""
    out, depth, short = KINDS[dtype]
    [sums] = {"float32": ["f32"], "int32": ["s32"]}[out]
    shape, count = f"16x{depth}", depth // 4
    a_layout = getattr(rocm, f"shared_{shape}_to_local_64x{count}_layout_A")
    b_layout = getattr(rocm, f"shared_{depth}x16_to_local_64x{count}_layout_B")
    a = b = tiled(a_layout, 16, depth)
    load_b = f"rocm_mfma_load_b_{shape}_shared_{short}"
    if transposed:
        load_b = f"rocm_mfma_load_{shape}_a_shared_{short}"  # the same places in registers
    else:
        b = tiled(b_layout, depth, 16)
    return mfma_schedule(
        product(dtype, out, transposed),
        depth,
        dtype,
        transposed,
        (1, 1, 1, 2, 1),
        (1, 1, 2, 1, 2),
        (2, 64 // depth, 1),
        a,
        b,
        tiled(rocm.shared_16x16_to_local_64x4_layout_C, 16, 16),
        f"rocm_mfma_load_{shape}_a_shared_{short}",
        load_b,
        f"rocm_mfma_{short}{short}{sums}",
        f"ROCM_mfma_fill_16x16_{sums.replace('s', 'i')}",
        f"rocm_mfma_store_16x16_{sums}",
    )


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
def test_products(dtype, transposed):
    sch = schedule(dtype, transposed)
    assert "llvm.amdgcn.mfma." in sch.mod.script()
    tvm.ir.assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    out, _, _ = KINDS[dtype]
    rng = np.random.default_rng(0)
    high = 128 if dtype == "int8" else 8
    a, b = (rng.integers(-high, high, shape).astype(dtype) for shape in ((M, K), (K, N)))
    expected = a.astype(out) @ b.astype(out)
    b = np.ascontiguousarray(b.T) if transposed else b
    for target in ("simulated", "wasm", "llvm"):
        c = tvm.nd.array(np.full((M, N), -7, out))
        tvm.build(sch.mod, target)["main"](tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_array_equal(c.numpy(), expected, err_msg=target)


@pytest.mark.parametrize("target", ["cuda", "opencl", "metal", "webgpu"])
def test_no_language_has_the_instruction(target):
    with pytest.raises(TVMError, match=r"has llvm\.amdgcn\.mfma, .*without tensorize"):
        tvm.build(schedule("float32").mod, target)


PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64, 1), "float32"), B: T.Buffer((64, 1), "float32"),
         C: T.Buffer((64, 4), "float32")):
    for tx in T.thread_binding({lanes}, thread="threadIdx.x"):
        with T.block("root"):
            T.reads(A[0:64, 0], B[0:64, 0])
            T.writes(C[0:64, 0:4])
            a = T.alloc_buffer((64, 1), scope="warp")
            b = T.alloc_buffer((64, 1), scope="{scope}")
            c = T.alloc_buffer((64, 8), scope="warp")
            a[tx, 0] = A[tx, 0]
            b[tx, 0] = B[tx, 0]
            for i in range(8):
                c[tx, i] = T.float32(0.5)
            c[tx, 0:4] = T.call_llvm_pure_intrin("float32x4", "llvm.amdgcn.mfma.{name}",
                {a}, b[tx, 0], {sums}, {options})
            for i in range(4):
                C[tx, i] = c[tx, i]
"""


def program(**change):
    usual = {"lanes": 64, "scope": "warp", "name": "f32.16x16x4f32", "a": "a[tx, 0]",
             "sums": "c[tx, 0:4]", "options": "0, 0, 0"}  # fmt: skip
    return from_source(PROGRAM.format(**usual | change))


@pytest.mark.parametrize("target", ["interpreter", "numpy", "simulated", "wasm", "llvm"])
def test_registers_of_a_product(target):
    a, b = np.random.default_rng(0).integers(-8, 8, (2, 64, 1)).astype("float32")
    c = tvm.nd.array(np.zeros((64, 4), "float32"))
    tvm.build(program(), target)["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    # Lane 16 k + i has A[i, k], lane 16 k + j has B[k, j]; C[i, j] is in lane 16 (i // 4) + j.
    whole = a.reshape(4, 16).T @ b.reshape(4, 16) + 0.5
    expected = whole.reshape(4, 4, 16).transpose(0, 2, 1).reshape(64, 4)
    np.testing.assert_array_equal(c.numpy(), expected)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lanes": 32}, r"mfma\.f32\.16x16x4f32 is done by the 64 threads .*here is a loop of 32"),
        ({"scope": "local"}, r'takes 1 neighbouring registers of float32 .* scope "warp"'),
        ({"sums": "c[tx, 4:8]"}, "is stored here where its operand C is, alone"),
        ({"sums": "T.Broadcast(T.float32(0), 4)"}, "takes 4 neighbouring registers of float32"),
        ({"sums": "c[tx, T.Ramp(0, 2, 4)]"}, "takes 4 neighbouring registers of float32"),
        ({"a": "c[tx, 4]"}, 'takes A and B from other memory than C, which is in "c"'),
        ({"a": 'a[T.Cast("int32", b[tx, 0]), 0]'}, 'of "a" are told here by what is in memory'),
        ({"options": "1, 0, 0"}, "three options that are 0"),
        ({"options": "0"}, "three options that are 0"),
        ({"name": "f32.32x32x1f32"}, r"mfma\.f32\.32x32x1f32 is not computed here; f32"),
    ],
)
@pytest.mark.parametrize("target", ["interpreter", "simulated", "wasm"])
def test_what_is_refused(change, reason, target):
    with pytest.raises(TVMError, match=reason):
        tvm.build(program(**change), target)["main"](*[None] * 3)
