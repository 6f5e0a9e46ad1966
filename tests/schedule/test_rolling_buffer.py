"""rolling_buffer: rings that keep what the next iteration needs, and what is refused."""

import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("rolling_buffer.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def test_a_block_that_writes_old_and_new_elements_at_once():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] + A[vi + 1] + A[vi + 2]
""")
    )
    copy = sch.read_at(sch.get_loops("C")[0], "C", 0, "local")
    with pytest.raises(ScheduleError, match="writes several elements along dimension 0"):
        sch.rolling_buffer(copy, 0)


def test_a_ring_is_not_rolled_again():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((18, 18), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((18, 18))
    for i, j in T.grid(18, 18):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 2, vj + 2]
""")
    )
    sch.compute_at("B", sch.get_loops("C")[1])
    sch.rolling_buffer("B", 0)
    with pytest.raises(ScheduleError, match="asks for i < 1 or 2 <= ax0, which cuts the window"):
        sch.rolling_buffer("B", 0)
