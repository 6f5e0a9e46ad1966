"""blockize: the cases of `cases/blockize.txt`, what its arguments may be, and its trace."""

from itertools import pairwise

import numpy as np
import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.programs import matmul
from tests.schedule import case_files
from tests.schedule.case_files import module

CASES = case_files.cases("blockize.txt")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_cases(case):
    case_files.check(case)


def tiled():
    """A schedule of a matmul with 16x16x16 tiles, and its loops from the outermost on."""
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    i, ii = sch.split(i, [None, 16])
    j, ji = sch.split(j, [None, 16])
    k, ki = sch.split(k, [None, 16])
    sch.reorder(i, j, k, ii, ji, ki)
    return sch, (i, j, k, ii, ji, ki)


def test_old_variables_stand_for_the_inner_block_and_loops():
    sch, (i, _, _, ii, _, ki) = tiled()
    inner = sch.get_block("C")
    outer = sch.blockize(ii)
    assert sch.get(outer).name_hint == "C_o"
    assert sch.get(inner).name_hint == "C"
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops(outer)] == ["i_0", "j_0", "k_0"]
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops(inner)] == ["i_1", "j_1", "k_1"]
    assert sch.get(ki).extent.value == 16
    assert sch.get(i).extent.value == 8


def test_init_is_not_a_child_until_it_is_decomposed():
    sch, (_, _, k, ii, _, _) = tiled()
    outer = sch.blockize(ii)
    assert [sch.get(child).name_hint for child in sch.get_child_blocks(outer)] == ["C"]
    with pytest.raises(ScheduleError, match="Cannot find a block with the name: C_init"):
        sch.get_block("C_init")
    made = sch.decompose_reduction(outer, k)
    assert sch.get(made).name_hint == "C_o_init"
    assert [sch.get(child).name_hint for child in sch.get_child_blocks(made)] == ["C_init"]
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops("C_init")] == ["i_1", "j_1"]


def test_trace_of_both_forms_replays():
    sch, (_, _, k, ii, _, _) = tiled()
    outer = sch.blockize(ii, preserve_unit_iters=False)
    sch.decompose_reduction(outer, k)
    sch.blockize([outer])
    calls = [line.strip() for line in str(sch.trace).splitlines() if "blockize" in line]
    assert calls == [
        "b10 = sch.blockize(target=l5, preserve_unit_iters=False)",
        "b12 = sch.blockize(target=[b10], preserve_unit_iters=True)",
    ]
    again = Schedule(matmul())
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    assert_structural_equal(again.mod, sch.mod)
    third = Schedule(matmul())
    type(sch.trace).apply_json_to_schedule(sch.trace.as_json(), third)
    assert_structural_equal(third.mod, sch.mod)


def test_message_marks_the_loop_and_the_block():
    sch = Schedule(matmul())
    loops = sch.get_loops("C")
    sch.reorder(*reversed([*loops[:2], *sch.split(loops[2], [None, 16])]))
    with pytest.raises(ScheduleError) as refusal:
        sch.blockize(sch.get_loops("C")[1])
    assert refusal.value.primitive == "blockize"
    lines = str(refusal.value).splitlines()
    marked = [above.strip() for above, below in pairwise(lines) if below.strip().startswith("^")]
    assert marked == ["for k_0 in range(8):", 'with T.block("C"):']


@pytest.mark.parametrize("target", ["loop", None, 3])
def test_target_of_another_type(target):
    sch, _ = tiled()
    with pytest.raises((TypeError, ScheduleError)):
        sch.blockize(target)


HALO = """
@T.prim_func
def main(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32")):
    for i, j, x in T.grid(2, 3, 8):
        with T.block("B"):
            v = T.axis.spatial(24, i * 12 + j * 2 + x)
            B[v] = A[v] + T.float32(1)
"""


def test_iterations_that_overlap_between_blocks_are_not_divided():
    """Blocks of 8 elements begin every 2: no outer iterator counts them."""
    sch = Schedule(from_source(HALO))
    with pytest.raises(ScheduleError):
        sch.blockize(sch.get_loops("B")[2])


def test_iterations_that_overlap_inside_a_block_are_divided():
    """The loops j and x cover 12 elements together."""
    sch = Schedule(from_source(HALO))
    sch.blockize(sch.get_loops("B")[1])
    a = np.arange(24, dtype="float32")
    for target in ("interpreter", "numpy", "wasm"):
        _, b = case_files.outputs(sch.mod, [a, np.zeros(24, "float32")], target)
        np.testing.assert_array_equal(b, a + 1)


def test_regions_that_data_decide_are_as_large_as_the_buffer_at_most():
    """Where a region begins depends on the same numbers as where it ends."""
    sch = Schedule(
        module("""
@T.prim_func
def main(I: T.Buffer((3,), "int32"), A: T.Buffer((4,), "float32"), B: T.Buffer((3,), "float32")):
    for i in range(3):
        with T.block("B"):
            vi = T.axis.spatial(3, i)
            B[vi] = A[I[vi] % 4] + A[vi]
""")
    )
    outer = sch.blockize(sch.get_loops("B")[0])
    (region,) = [r for r in sch.get(outer).reads if r.buffer.name == "A"]
    assert str(region) == "A[0:4]"
    sch.annotate_buffer_access(outer, 0, "read", lambda *_: [(0, 4)])
