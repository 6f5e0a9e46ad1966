"""rfactor: the parts and their sum, and what is refused."""

import numpy as np
import pytest

from mlcweb.schedule import ScheduleError, Trace
from mlcweb.tir import Schedule
from tests.programs import matmul, matmul_relu
from tests.schedule.case_files import cases, check, outputs, random_inputs


@pytest.mark.parametrize("case", cases("rfactor.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def test_the_block_and_its_loops_keep_their_handles():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(k, [None, 8])
    parts = sch.rfactor(inner, 2)
    assert [sch.get(b).name_hint for b in (parts, block)] == ["C_rf", "C"]
    sch.parallel(i)
    assert [sch.get(loop).extent.value for loop in sch.get_loops(block)] == [128, 128, 8]
    with pytest.raises(ScheduleError, match="no longer in the program"):
        sch.get(outer)


def test_the_parts_can_run_in_parallel():
    sch = Schedule(matmul())
    k = sch.get_loops("C")[2]
    with pytest.raises(ScheduleError, match="rfactor of the reduction first"):
        sch.parallel(k)
    parts = sch.rfactor(k, 0)
    sch.parallel(sch.get_loops(parts)[2])


def test_the_trace_replays():
    sch = Schedule(matmul_relu())
    k = sch.get_loops("Y")[2]
    sch.rfactor(sch.split(k, [None, 5])[1], -1)
    assert sch.trace.as_python()[-1] == "b6 = sch.rfactor(loop=l5, factor_axis=-1)"
    again = Schedule(matmul_relu())
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert str(again.mod) == str(sch.mod)


def test_advice_names_the_identity():
    sch = Schedule(matmul_relu())
    i, j = sch.get_loops("C")
    with pytest.raises(ScheduleError, match="before decompose_reduction"):
        sch.rfactor(j, 0)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("part", [0, 1])
def test_the_parts_of_an_uneven_split_keep_their_predicate(depth, part):
    sch = Schedule(matmul_relu())
    k = sch.get_loops("Y")[2]
    parts = sch.rfactor(sch.split(k, [None, 7])[part], 0)
    sch.compute_at(parts, sch.get_loops("Y")[depth])
    assert "T.where(" in str(sch.mod)
    arrays = random_inputs(sch.mod)
    *_, expected = outputs(matmul_relu(), arrays)
    np.testing.assert_allclose(outputs(sch.mod, arrays)[-1], expected, rtol=1e-5)
    np.testing.assert_allclose(outputs(sch.mod, arrays, "wasm")[-1], expected, rtol=1e-5)


def test_a_predicate_on_split_loops_holds_the_parts_of_a_reduction_where_they_are():
    sch = Schedule(matmul_relu())
    k = sch.get_loops("Y")[2]
    parts = sch.rfactor(sch.split(k, [None, 7])[1], 0)
    sch.split(sch.get_loops(parts)[2], [None, 3])
    with pytest.raises(ScheduleError, match="do not run through all combinations"):
        sch.compute_at(parts, sch.get_loops("Y")[0])
