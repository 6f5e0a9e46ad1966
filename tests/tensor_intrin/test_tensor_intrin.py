"""The instructions of machines: what they replace, and that targets without them say so."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.ir import TVMError
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tensor_intrin import dot_products, tensor_cores
from mlcweb.tir import Schedule, TensorIntrin

DOTS = [
    (16, 4, "dot_16x4_vnni", "uint8", "int8"),
    (16, 4, "dot_16x4_avx512", "uint8", "int8"),
    (4, 4, "dot_4x4_i8i8s32_neon", "int8", "int8"),
    (4, 4, "dot_4x4_i8i8s32_sdot", "int8", "int8"),
    (4, 4, "dot_4x4_u8u8i32_hdot", "uint8", "uint8"),
    (32, 4, "dot_32x4_u8i8i32_vrmpy", "uint8", "int8"),
    (32, 2, "dot_product_32x2_i16i16i32_vdmpy", "int16", "int16"),
]


def products(rows, depth, a_type, b_type):
    a = te.placeholder((8, depth), a_type, name="X")
    b = te.placeholder((rows, depth), b_type, name="W")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute(
        (8, rows),
        lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k),
        name="C",
    )
    return te.create_prim_func([a, b, c])


@pytest.mark.parametrize(("rows", "depth", "name", "a_type", "b_type"), DOTS)
def test_dot_products_replace_loops(rows, depth, name, a_type, b_type):
    sch = Schedule(products(rows, depth, a_type, b_type))
    block = sch.get_block("C")
    _, j, _ = sch.get_loops(block)
    sch.decompose_reduction(block, j)
    sch.tensorize(j, name)
    text = sch.mod.script()
    assert "llvm." in text and f"({rows}, {depth})" in text
    tvm.ir.assert_structural_equal(from_source(text), sch.mod)
    if name in ("dot_16x4_vnni", "dot_16x4_avx512"):  # which every target computes
        return
    with pytest.raises(TVMError, match="call_llvm_pure_intrin"):
        tvm.build(sch.mod, "interpreter")["main"](*[None] * 3)


TARGETS = ["interpreter", "numpy", "wasm", "llvm", "llvm -mcpu=x86-64-v2"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["dot_16x4_vnni", "dot_16x4_avx512"])
def test_dot_products_of_x86_compute_everywhere(name, target):
    sch = Schedule(products(16, 4, "uint8", "int8"))
    block = sch.get_block("C")
    _, j, _ = sch.get_loops(block)
    sch.decompose_reduction(block, j)
    sch.tensorize(j, name)
    rng = np.random.default_rng(3)
    # Two products of more would be beyond the int16 that AVX-512 without VNNI adds them up in.
    a, b = rng.integers(0, 128, (8, 4), "uint8"), rng.integers(-128, 128, (16, 4), "int8")
    c = tvm.nd.array(np.zeros((8, 16), "int32"))
    tvm.build(sch.mod, target)["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_array_equal(c.numpy(), a.astype("int32") @ b.T.astype("int32"))


@pytest.mark.parametrize(
    ("cpu", "name", "instruction"),
    [
        ("cascadelake", "dot_16x4_vnni", "vpdpbusd"),
        ("skylake-avx512", "dot_16x4_avx512", "vpmaddubsw"),
    ],
)
def test_dot_products_are_the_processor_s_instruction(cpu, name, instruction):
    pytest.importorskip("llvmlite")
    sch = Schedule(products(16, 4, "uint8", "int8"))
    block = sch.get_block("C")
    _, j, _ = sch.get_loops(block)
    sch.decompose_reduction(block, j)
    sch.tensorize(j, name)
    triple = "x86_64-unknown-linux-gnu"
    code = tvm.build(sch.mod, f"llvm -mtriple={triple} -mcpu={cpu}").get_source("asm")
    assert instruction in code
    older = tvm.build(sch.mod, f"llvm -mtriple={triple} -mcpu=x86-64-v3").get_source("asm")
    assert instruction not in older


def test_saturation_is_that_of_the_instruction():
    """Sums of two products are kept in int16 by AVX-512 without VNNI."""
    source = """
@T.prim_func
def main(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "int8"), C: T.Buffer((32,), "int16")):
    C[0:32] = T.call_llvm_pure_intrin(
        "int16x32", "llvm.x86.avx512.pmaddubs.w.512", A[0:64], B[0:64])
"""
    for target in TARGETS:
        c = tvm.nd.array(np.zeros(32, "int16"))
        a = tvm.nd.array(np.full(64, 255, "uint8"))
        b = tvm.nd.array(np.repeat(np.array([127, -128], "int8"), 32))
        tvm.build(from_source(source), target)["main"](a, b, c)
        np.testing.assert_array_equal(c.numpy(), np.repeat(np.array([32767, -32768]), 16))


def test_an_instruction_takes_rows_that_are_neighbours_alone():
    """It loads 64 neighbours, and the rows of B that it should take are 64 elements apart."""

    @T.prim_func
    def main(
        A: T.Buffer((4, 64), "uint8"), B: T.Buffer((16, 64), "int8"), C: T.Buffer((4, 16), "int32")
    ):
        for i, j, k in T.grid(4, 16, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] += T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])

    sch = Schedule(main)
    i, j, k = sch.get_loops("C")
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i, k0, j, k1)
    sch.decompose_reduction("C", k0)
    sch.tensorize(j, "dot_16x4_vnni")
    with pytest.raises(TVMError, match="goes on in the next row"):
        tvm.build(sch.mod, "llvm -mcpu=cascadelake")
    rng = np.random.default_rng(2)
    a = rng.integers(0, 256, (4, 64)).astype("uint8")
    b = rng.integers(-128, 128, (16, 64)).astype("int8")
    for target in ("interpreter", "numpy", "wasm", "llvm -mcpu=x86-64-v2"):
        c = tvm.nd.array(np.zeros((4, 16), "int32"))
        tvm.build(sch.mod, target)["main"](tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a.astype("int32") @ b.astype("int32").T)


def test_every_name_is_that_of_a_registered_intrinsic():
    names = {
        name: value
        for module in (dot_products, tensor_cores)
        for name, value in vars(module).items()
        if name.endswith("_INTRIN")
    }
    assert len(names) == 58
    assert all(TensorIntrin.get(value) is not None for value in names.values())
    assert names["WMMA_LOAD_16x16x16_F16_B_TRANS_INTRIN"] == "wmma_load_16x16x16_f16_b_trans_shared"
    assert (
        names["WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN"] == "wmma_sync_16x16x16_f16f16f32_trans"
    )


@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_product_in_fragments(transposed):
    a = te.placeholder((16, 16), "float16", name="A")
    b = te.placeholder((16, 16), "float16", name="B")
    k = te.reduce_axis((0, 16), "k")

    def element(i, j):
        right = b[j, k] if transposed else b[k, j]
        return te.sum(a[i, k].astype("float32") * right.astype("float32"), axis=k)

    sch = Schedule(te.create_prim_func([a, b, te.compute((16, 16), element, name="C")]))
    group = tensor_cores.get_wmma_intrin_group("shared", "global", "float16", "float32", transposed)
    block = sch.get_block("C")
    reads = [sch.cache_read(block, i, "shared") for i in (0, 1)]
    fragments = [sch.cache_read(block, i, f"wmma.matrix_{'ab'[i]}") for i in (0, 1)]
    written = sch.cache_write(block, 0, "wmma.accumulator")
    init = sch.decompose_reduction(block, sch.get_loops(block)[0])
    sch.tensorize(sch.get_loops(init)[0], group["init"])
    for i, part in enumerate(("load_a", "load_b")):
        sch.tensorize(sch.get_loops(fragments[i])[0], group[part])
    sch.tensorize(sch.get_loops(block)[0], group["compute"])
    sch.tensorize(sch.get_loops(written)[0], group["store"])
    text = sch.mod.script()
    for call in ("fill_fragment", "load_matrix_sync", "mma_sync", "store_matrix_sync"):
        assert f"T.tvm_{call}(" in text
    assert ('"col_major"' in text) == transposed
    assert len(reads) == 2
    left, right = np.random.default_rng(0).integers(-4, 5, (2, 16, 16)).astype("float16")
    result = tvm.nd.array(np.zeros((16, 16), "float32"))
    tvm.build(sch.mod, "interpreter")["main"](tvm.nd.array(left), tvm.nd.array(right), result)
    expected = left.astype("float32") @ (right.T if transposed else right).astype("float32")
    np.testing.assert_array_equal(result.numpy(), expected)


def test_the_dot_product_of_unsigned_bytes_adds_to_unsigned_sums():
    intrinsic = TensorIntrin.get(dot_products.DP4A_U8U8U32_INTRIN)
    assert intrinsic is not None
    assert [b.dtype for b in intrinsic.desc.parameter_buffers] == ["uint8", "uint8", "uint32"]
    signed = TensorIntrin.get(dot_products.DP4A_S8S8S32_INTRIN)
    assert signed is not None
    assert signed.desc.parameter_buffers[2].dtype == "int32"


@pytest.mark.parametrize(
    ("name", "sums"), [("dot_4x4_u8u8u32_udot", "uint32"), ("dot_4x4_u8u8i32_hdot", "int32")]
)
def test_products_of_arm_add_to_the_type_of_their_name(name, sums):
    intrin = TensorIntrin.get(name)
    for func in (intrin.desc, intrin.impl):
        types = [buffer.dtype for buffer in func.parameter_buffers]
        assert types == ["uint8", "uint8", sums]
    assert f'T.call_llvm_pure_intrin("{sums}x4", "llvm.aarch64.neon.udot"' in intrin.impl.script()
