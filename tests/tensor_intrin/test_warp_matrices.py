"""The intrinsics of PTX's matrix instructions: they are those of TVM, as TVM 0.27 prints them."""

import json
import re
from pathlib import Path

import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.ir.errors import TVMError
from mlcweb.script import from_source
from mlcweb.tensor_intrin import cuda
from mlcweb.tir import Schedule, TensorIntrin

TVM = json.loads((Path(__file__).parent / "tvm_warp_matrices.json").read_text())
OLD = {
    "ptx_legacy.": "ptx_",
    "cuda.mma_fill_legacy": "mma_fill",
    "cuda.mma_store_legacy": "mma_store",
}


def in_one_spelling(text, dtype):
    """A script as we print it; TVM 0.27 calls the instructions otherwise, without their types."""
    for new, old in OLD.items():
        text = re.sub(rf"T\.{new}(\w*)\(", rf'T.{old}\1("{dtype}", ', text)
    return re.sub(r"def \w+", "def f", from_source(text).script())


@pytest.mark.parametrize("name", TVM["scripts"])
def test_intrinsics_are_those_of_tvm(name):
    intrinsic = TensorIntrin.get(name)
    for ours, theirs in zip((intrinsic.desc, intrinsic.impl), TVM["scripts"][name], strict=True):
        written = intrinsic.described_block.writes[0].buffer.dtype
        script = re.sub(r"def \w+", "def f", ours.script())
        assert script == in_one_spelling(theirs, written)


def test_names_are_those_of_tvm():
    for constant, name in TVM["constants"].items():
        assert getattr(cuda, constant) == name
    assert cuda.LDMATRIX_16x32_B_TRANS_INTRIN == cuda.LDMATRIX_i8_B_TRANS_INTRIN
    assert cuda.MMA_f16f16f16_TRANS_INTRIN == cuda.MMA_f16f16f16_TRANS_B_INTRIN


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("dtype", "out"), [("float16", "float32"), ("int8", "int32")])
def test_a_group_names_registered_intrinsics(dtype, out, transposed):
    load = "shared.dyn" if dtype == "float16" else "shared"
    group = cuda.get_mma_intrin_group(load, "shared.dyn", dtype, out, False, transposed)
    assert set(group) == {"init", "load_a", "load_b", "compute", "store"}
    assert all(TensorIntrin.get(name) is not None for name in group.values())
    whole = cuda.get_mma_intrin_group("shared", "global", dtype, out, False, transposed, False)
    assert whole["store"] == f"mma_store_16x16_{'f32' if out == 'float32' else 'i32'}_global_"


def test_fragments_of_16x8x8_are_described_and_not_built():
    """TVM's search tiles for them; they tensorize a program, which no target here computes."""
    a = te.placeholder((32, 8), "float16", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((32, 8), lambda i, j: a[i, j], name="C")]))
    sch.cache_read("C", 0, "shared.dyn")
    fragment = sch.cache_read("C", 0, "m16n8k8.matrixA")
    sch.tensorize(sch.get_loops(fragment)[0], "mma_load_m16n8k8_f16_A_shared_dyn")
    assert "T.ptx_ldmatrix" in sch.mod.script()
    with pytest.raises(TVMError, match=r'has scope "m16n8k8\.matrixA"'):
        tvm.build(sch.mod, target="simulated")


def test_a_layout_and_its_inverse():
    places = set()
    for i in range(16):
        for j in range(16):
            place = cuda.shared_16x16_to_ldmatrix_32x8_layout(i, j)
            assert cuda.ldmatrix_32x8_to_shared_16x16_layout(*place) == (i, j)
            assert cuda.index_map_shared_16x16_to_ldmatrix_32x8_layout([i, j]) == list(place)
            places.add(place)
    assert places == {(lane, register) for lane in range(32) for register in range(8)}
    for layout, shape in (
        (cuda.shared_16x32_to_ldmatrix_32x16_layout, (16, 32)),
        (cuda.shared_32x16_to_ldmatrix_32x16_layout, (32, 16)),
    ):
        found = {layout(i, j) for i in range(shape[0]) for j in range(shape[1])}
        assert found == {(lane, register) for lane in range(32) for register in range(16)}


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((32, "int8", "A", True), "A of int8 cannot be transposed"),
        ((32, "float16", "A", False), "No tile of float16 has 32 columns"),
    ],
)
def test_loads_that_there_are_not(args, reason):
    with pytest.raises(ValueError, match=reason):
        cuda.get_ldmatrix_intrin(*args)
