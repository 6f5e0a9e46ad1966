"""Two blocks that write a part of a parameter each: what runs is the loop, not the whole axis."""

import numpy as np
import pytest

from mlcweb.ir import DiagnosticError
from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import module, outputs, random_inputs

HALVES = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial((8, 16), i + 8)
            C[vi] = A[vi] * T.float32(3)
"""


def halved(s):
    return s.split(s.get_loops("C")[0], [None, 4])


STEPS = {
    "cache_read": lambda s: s.cache_read("C", 0, "local"),
    "parallel": lambda s: s.parallel(s.get_loops("C")[0]),
    "split": lambda s: s.split(s.get_loops("C")[0], [None, 3]),
    "fuse": lambda s: s.fuse(*halved(s)),
    "blockize": lambda s: s.blockize(halved(s)[1]),
    "reindex": lambda s: s.reindex("C", ("read", 0)),
    "reindex_cache_read": lambda s: s.reindex_cache_read("C", 0, "local", lambda i: i),
    "read_at": lambda s: s.read_at(halved(s)[0], "C", 0, "local"),
    "write_at": lambda s: s.write_at(halved(s)[0], "C", 0, "local"),
    "cache_index": lambda s: s.cache_index("C", "local", 0),
    "loop_partition": lambda s: s.loop_partition(s.get_loops("C")[0], [3, None]),
    "transform_block_layout": lambda s: s.transform_block_layout("C", lambda i: (i // 4, i % 4)),
}
REFUSED = {
    "cache_write": lambda s: s.cache_write("C", 0, "local"),
    "reindex": lambda s: s.reindex("C", ("write", 0)),
    "pad_einsum": lambda s: s.pad_einsum("C", [32]),
    "reindex_cache_write": lambda s: s.reindex_cache_write("C", 0, "local", lambda i: i),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_runs_no_more_of_the_axis(step):
    before = module(HALVES)
    sch = Schedule(before)
    STEPS[step](sch)
    a, c = random_inputs(before)
    want = a * np.repeat([2, 3], 8).astype("float32")
    np.testing.assert_array_equal(outputs(sch.mod, [a, c])[1], want)


@pytest.mark.parametrize("step", REFUSED)
def test_a_step_that_would_write_the_other_half_is_refused(step):
    with pytest.raises(ScheduleError):
        REFUSED[step](Schedule(module(HALVES)))


STRIDED = """
@T.prim_func
def main(B: T.Buffer((8,), "float32")):
    for i in range(1):
        with T.block("B"):
            vi = T.axis.spatial(1, i)
            T.reads()
            T.writes(B[vi * 8:vi * 8 + 7])
            B[T.Ramp(vi * 8, STRIDE, 7)] = T.Broadcast(T.float32(1), 7)
"""


def test_a_strided_vector_leaves_elements_out():
    sch = Schedule(module(STRIDED.replace("STRIDE", "1")))
    sch.cache_write("B", 0, "local")
    b = np.full(8, 5, "float32")
    np.testing.assert_array_equal(outputs(sch.mod, [b])[0], [1, 1, 1, 1, 1, 1, 1, 5])
    strided = STRIDED.replace("STRIDE", "2").replace(", 7)", ", 4)")
    with pytest.raises(ScheduleError, match="are not a box"):
        Schedule(module(strided)).cache_write("B", 0, "local")


READ_WHERE_WRITTEN = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((5,), "int32")):
    B = T.alloc_buffer((5,), "int32")
    for i, j in T.grid(4, 2):
        with T.block("B"):
            v = T.axis.spatial(5, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v] + 1
        with T.block("C"):
            v = T.axis.spatial(5, i + j)
            T.where({condition})
            T.reads(B[v])
            T.writes(C[v])
            C[v] = B[v] * 2
"""


def test_an_iteration_that_a_predicate_leaves_out_reads_nothing():
    mod = module(READ_WHERE_WRITTEN.format(condition="j < 1"))
    sch = Schedule(mod)
    sch.cache_read("C", 0, "local")
    arrays = [np.arange(4, dtype="int32"), np.zeros(5, "int32")]
    for result in (outputs(mod, arrays)[1], outputs(sch.mod, arrays)[1]):
        assert result.tolist() == [2, 4, 6, 8, 0]
    # Where the program does not say what its blocks write, the axis is taken for a mistake.
    lines = READ_WHERE_WRITTEN.format(condition="j < 2").splitlines()
    source = "\n".join(line for line in lines if "T.reads" not in line and "T.writes" not in line)
    with pytest.raises(DiagnosticError, match="has 5 values"):
        module(source)
    module(source.replace("j < 2", "j < 1"))


LATE_INIT = """
@T.prim_func
def main(A: T.Buffer((8, 9), "int32"), y: T.Buffer((8,), "int32")):
    for i in range(8):
        for j in range({loop}):
            with T.block("y"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.reduce(9, {binding})
                T.where({condition})
                with T.init():
                    y[vi] = 0
                y[vi] = y[vi] + A[vi, vj]
"""
STEPS_OF_SUMS = {
    "decompose_reduction": lambda s: s.decompose_reduction("y", s.get_loops("y")[0]),
    "rfactor": lambda s: s.rfactor(s.get_loops("y")[1], 0),
    "cache_write": lambda s: s.cache_write("y", 0, "local"),
    "write_at": lambda s: s.write_at(s.get_loops("y")[0], "y", 0, "local"),
    "blockize": lambda s: s.blockize(s.get_loops("y")[1]),
}


@pytest.mark.parametrize("step", STEPS_OF_SUMS)
@pytest.mark.parametrize(
    ("loop", "binding", "condition"),
    [
        ("8", "j + 1", "True"),
        ("9", "8 - j", "True"),
        ("9", "j", "j > 2"),
        ("i, 9", "j", "True"),
        ("T.max(0, i - 2), 9", "j", "True"),
    ],
)
def test_an_init_that_does_not_run_first_is_not_moved(step, loop, binding, condition):
    """It runs where the reduction iterator has its least value; TVM moves it all the same."""
    mod = module(LATE_INIT.format(loop=loop, binding=binding, condition=condition))
    with pytest.raises(ScheduleError):
        STEPS_OF_SUMS[step](Schedule(mod))


@pytest.mark.parametrize("step", ["decompose_reduction", "cache_write", "write_at", "blockize"])
def test_an_init_that_runs_in_the_first_iteration_is(step):
    mod = module(LATE_INIT.format(loop="9", binding="j", condition="j < 7"))
    arrays = random_inputs(mod)
    sch = Schedule(mod)
    STEPS_OF_SUMS[step](sch)
    for one, other in zip(outputs(sch.mod, arrays), outputs(mod, arrays), strict=True):
        np.testing.assert_array_equal(one, other)
