"""cache_index and cache_inplace: what is computed or updated in a copy, and what is refused."""

import pytest

import mlcweb as tvm
from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("cache_index.txt"), ids=lambda case: case.name)
def test_case_of_indices(case):
    check(case)


@pytest.mark.parametrize("case", cases("cache_inplace.txt"), ids=lambda case: case.name)
def test_case_of_updates(case):
    def increment(data):
        data += 1
        return 0

    tvm.register_func("call_impl", increment, override=True)
    tvm.register_func("f", lambda data: 0, override=True)
    check(case)


GATHER = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi // 2]
"""


def test_inlining_a_cached_index_takes_it_back():
    sch = Schedule(module(GATHER))
    (index,) = sch.cache_index("B", "global")
    sch.compute_inline(index)
    assert_structural_equal(sch.mod, module(GATHER))


def test_the_reader_of_a_cached_index_does_not_declare_it_and_so_stays_in_place():
    sch = Schedule(module(GATHER))
    (index,) = sch.cache_index("B", "global")
    with pytest.raises(ScheduleError, match='"B" uses "index_var_0" without declaring it'):
        sch.compute_at(index, sch.get_loops("B")[0])


def test_updates_of_iterations_that_run_at_once_have_no_copy():
    sch = Schedule(
        module("""
@T.prim_func
def main(D: T.Buffer((16, 16), "float32")):
    for i in T.parallel(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            D[vi, 0] = D[vi, 0] + T.float32(1)
""")
    )
    with pytest.raises(ScheduleError, match='loop "i" around block "A" run at once'):
        sch.cache_inplace("A", 0, "local")
