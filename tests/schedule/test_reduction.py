"""decompose_reduction."""

import pytest

from mlcweb.schedule.errors import BindingError, BlockKindError, LoopError
from mlcweb.tir import Schedule
from tests.programs import matmul, matmul_relu
from tests.schedule.case_files import module
from tests.schedule.test_loops import body_of


def test_the_init_block_gets_loops_of_its_own():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    init = sch.decompose_reduction("C", i)
    assert sch.get(init).name_hint == "C_init"
    assert body_of(sch).splitlines()[:7] == [
        "for i_init, j_init in T.grid(128, 128):",
        '    with T.block("C_init"):',
        '        vi, vj = T.axis.remap("SS", [i_init, j_init])',
        "        T.reads()",
        "        T.writes(C[vi, vj])",
        "        C[vi, vj] = T.float32(0)",
        "for i, j, k in T.grid(128, 128, 128):",
    ]


def test_a_predicate_goes_to_both_blocks():
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    _, _ = sch.split(j, [None, 8])
    k0, k1 = sch.split(k, [None, 7])
    sch.decompose_reduction("Y", i)
    text = body_of(sch)
    assert "T.where(j_0_init * 8 + j_1_init < 30)" in text
    assert "T.where(j_0 * 8 + j_1 < 30 and k_0 * 7 + k_1 < 30)" in text


def test_decomposing_inside_of_a_reduction_loop_is_refused():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    with pytest.raises(LoopError, match='inside of the reduction loop "k"'):
        sch.decompose_reduction("C", i)


def test_only_reduction_blocks_can_be_decomposed():
    sch = Schedule(matmul_relu())
    i, j = sch.get_loops("C")
    with pytest.raises(BlockKindError, match="it has no init statement"):
        sch.decompose_reduction("C", i)
    k = sch.get_loops("Y")[2]
    sch.decompose_reduction("Y", k)
    with pytest.raises(BlockKindError, match="it has no init statement"):
        sch.decompose_reduction("Y_update", k)


def test_the_loop_must_be_around_the_block():
    sch = Schedule(matmul_relu())
    with pytest.raises(LoopError, match="is not around the block"):
        sch.decompose_reduction("Y", sch.get_loops("C")[0])


def test_a_repeated_reduction_keeps_its_init_inside():
    sch = Schedule(matmul_relu())
    sch.reverse_compute_at("Y", sch.get_loops("C")[1])
    outer, repeating, inner = sch.get_loops("Y")[:3]
    with pytest.raises(LoopError, match='"i" repeats the whole reduction of block "Y"'):
        sch.decompose_reduction("Y", outer)
    with pytest.raises(LoopError, match='"j" repeats'):
        sch.decompose_reduction("Y", repeating)
    sch.decompose_reduction("Y", inner)


def test_a_predicate_on_a_dropped_unit_loop_stays():
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    outer, inner = sch.split(i, [None, 32], preserve_unit_iters=False)
    sch.decompose_reduction("Y", outer)
    assert "T.where(i_1_init < 30)" in body_of(sch)


ROWS = """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6,), "float32")):
    for f, k in T.grid(24, 8):
        with T.block("B"):
            vi = T.axis.spatial(6, f // 4)
            vk = T.axis.reduce(8, k)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


def test_a_loop_that_repeats_rows_keeps_the_init_inside():
    sch = Schedule(matmul_relu())
    fused = sch.fuse(*sch.get_loops("C"))
    sch.compute_at("Y", fused)
    sch.decompose_reduction("Y", sch.get_loops("Y")[1])
    sch = Schedule(module(ROWS))
    i, k = sch.get_loops("B")
    with pytest.raises(BindingError, match='The loops from "f" on repeat parts of the reduction'):
        sch.decompose_reduction("B", i)
    with pytest.raises(LoopError, match="runs after some of its updates"):
        sch.reorder(k, i)
    sch.decompose_reduction("B", k)
