"""fuse_reduction_epilogue: sums that start from a term, and what is refused."""

import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("reduction_epilogue.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def test_an_epilogue_of_a_part_of_its_domain_stays():
    """The sum would write all of its buffer."""
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for i in range(1, 6):
        with T.block("C"):
            vi = T.axis.spatial(8, i - 1)
            C[vi] = B[vi] + 1
""")
    )
    with pytest.raises(ScheduleError, match="does not add one term to each element"):
        sch.fuse_reduction_epilogue("B", "C")
