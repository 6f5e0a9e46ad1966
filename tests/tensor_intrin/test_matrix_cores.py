"""The intrinsics of AMD's matrix instructions: they are those of TVM, as TVM 0.27 prints them."""

import json
from pathlib import Path

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.script import from_source
from mlcweb.tensor_intrin import rocm
from mlcweb.tir import TensorIntrin

TVM = json.loads((Path(__file__).parent / "tvm_matrix_cores.json").read_text())


@pytest.mark.parametrize("name", TVM["scripts"])
def test_intrinsics_are_those_of_tvm(name):
    intrinsic = TensorIntrin.get(name)
    for ours, theirs in zip((intrinsic.desc, intrinsic.impl), TVM["scripts"][name], strict=True):
        pair = (func.with_attr("global_symbol", "f") for func in (ours, from_source(theirs)))
        assert_structural_equal(*pair)
        assert_structural_equal(from_source(ours.script()), ours)


def test_names_are_those_of_tvm():
    assert len(TVM["constants"]) == 13
    for constant, name in TVM["constants"].items():
        assert getattr(rocm, constant) == name
    assert {"AMDGPU_SDOT4_INTRIN", "get_mfma_intrin", *TVM["constants"]} <= set(rocm.__all__)


@pytest.mark.parametrize(
    ("rows", "columns", "layout", "inverse"),
    [
        (16, 4, "16x4_to_local_64x1_layout_A", "64x1_to_16x4_layout_A"),
        (4, 16, "4x16_to_local_64x1_layout_B", "64x1_to_4x16_layout_B"),
        *(
            (16, 16, f"16x16_to_local_64x4_layout_{operand}", f"64x4_to_16x16_layout_{operand}")
            for operand in "ABC"
        ),
    ],
)
def test_layouts_and_their_inverses(rows, columns, layout, inverse):
    place = getattr(rocm, f"shared_{layout}")
    element = getattr(rocm, f"thread_id_shared_access_{inverse}")
    places = set()
    for i in range(rows):
        for j in range(columns):
            lane, register = place(i, j)
            register = int(register)
            assert element(lane, register) == (i, j)
            places.add((lane, register))
    count = rows * columns // 64
    assert places == {(lane, register) for lane in range(64) for register in range(count)}


def test_a_transposed_operand_lies_in_the_registers_of_another():
    _, load = rocm.get_mfma_load_intrin(16, "int8", is_b=True, transposed=True)
    _, of_a = rocm.get_mfma_load_intrin(16, "int8")
    assert_structural_equal(load, of_a)
    plain, _ = rocm.get_mfma_intrin(16, "int8", "int32")
    assert_structural_equal(rocm.get_mfma_intrin(16, "int8", "int32", True)[0], plain)


@pytest.mark.parametrize("make", [rocm.get_mfma_intrin, rocm.get_mfma_load_intrin])
def test_other_depths_are_refused(make):
    with pytest.raises(ValueError, match="No product has depth 8; k_dim is 4 for float32, and 16"):
        make(8)
