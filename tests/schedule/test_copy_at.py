"""read_at and write_at: copies at a loop, in one block, and what is refused."""

import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("copy_at.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def test_iterations_that_a_predicate_cuts_off_copy_nothing_back():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
""")
    )
    _, inner = sch.split(sch.get_loops("C")[0], [None, 3])
    with pytest.raises(ScheduleError, match="is not known to write all of the box"):
        sch.write_at(inner, "C", 0, "local")


def test_nothing_is_copied_back_where_the_predicate_leaves_all_out():
    mod = module("""
@T.prim_func
def main(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((6,), "float32")
    for i, j, k in T.grid(3, 4, 1):
        with T.block("B"):
            v = T.axis.spatial(6, i * 2 + (j + k))
            T.where(j + k < 2)
            B[v] = A[v] * T.float32(2)
    for i in range(6):
        with T.block("C"):
            v = T.axis.spatial(6, i)
            C[v] = B[v] + T.float32(1)
""")
    sch = Schedule(mod)
    _, j, _ = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="is not known to write all of the box"):
        sch.write_at(j, "B", 0, "local")


def test_a_bound_of_digits_of_a_loop_is_seen():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    for u, i in T.grid(1, 10):
        with T.block("C"):
            v = T.axis.spatial(6, i)
            T.where(i // 5 * 5 + i % 5 < 6)
            C[v] = A[v]
""")
    )
    with pytest.raises(ScheduleError, match="copying back would overwrite other elements"):
        sch.write_at(sch.get_loops("C")[0], "C", 0, "local")


def test_an_iteration_that_a_predicate_leaves_out_copies_nothing_back():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for o, u, i in T.grid(2, 2, 4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            T.where(o * 2 + u < 1)
            C[v] = A[v]
""")
    )
    with pytest.raises(ScheduleError, match="copying back would overwrite other elements"):
        sch.write_at(sch.get_loops("C")[0], "C", 0, "shared")
