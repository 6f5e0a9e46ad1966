"""annotate_buffer_access and unsafe_hide_buffer_access: what blocks say that they access."""

import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.schedule.analysis.units import hidden_accesses
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("declared_regions.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


CHAIN = """
@T.prim_func
def main(A: T.Buffer((18, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((18, 16))
    for i, j in T.grid(18, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj]
"""


def test_a_declared_region_is_what_compute_at_computes():
    sch = Schedule(module(CHAIN))
    sch.annotate_buffer_access("D", 0, "read", lambda vi, vj: ((vi, vi + 3), vj))
    sch.compute_at("B", sch.get_loops("D")[1])
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("B")] == [16, 16, 3]


def test_a_region_that_leaves_out_what_is_accessed():
    sch = Schedule(module(CHAIN))
    with pytest.raises(ScheduleError, match='reads elements of "B" outside of the region'):
        sch.annotate_buffer_access("D", 0, "read", lambda vi, vj: ((vi + 1, vi + 3), vj))


@pytest.mark.parametrize(
    ("ranges", "access", "message"),
    [
        (lambda vi, vj: (vi,), "read", r"iter_vars \(2\) must match .* \(1\)"),
        (lambda vi, vj: ((vi, vi, vi), vj), "read", "exactly 2 elements"),
        (lambda vi, vj: (vi, vj), "update", "Expected 'read' or 'write'"),
    ],
)
def test_arguments_of_a_wrong_form(ranges, access, message):
    with pytest.raises(ValueError, match=message):
        Schedule(module(CHAIN)).annotate_buffer_access("D", 0, access, ranges)


def test_hidden_accesses_still_keep_a_producer_in_place():
    sch = Schedule(module(CHAIN))
    sch.unsafe_hide_buffer_access("D", "read", [0])
    with pytest.raises(ScheduleError, match='"D" uses "B" without declaring it'):
        sch.compute_at("B", sch.get_loops("D")[0])


def test_what_is_stored_through_a_matched_buffer_is_not_hidden():
    mod = module("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    with T.block("outer"):
        T.reads()
        T.writes()
        for i in range(8):
            with T.block("inner"):
                v = T.axis.spatial(8, i)
                T.reads(A[v])
                T.writes(C[v])
                D = T.match_buffer(C[v : v + 1], (1,), offset_factor=1)
                E = T.match_buffer(D[0:1], (1,), offset_factor=1)
                E[0] = A[v]
""")
    sch = Schedule(mod)
    stored, loaded = hidden_accesses(sch.get(sch.get_block("outer")))
    assert [buffer.name for buffer in stored] == ["C"]
    assert [buffer.name for buffer in loaded] == ["A"]


UPDATES = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes()
            {update}
"""


def test_blocks_that_declare_nothing_are_moved_by_what_they_do():
    sch = Schedule(module(UPDATES.format(update="B[vi, vj] = A[vj, vi]")))
    i, j = sch.get_loops("B")
    sch.reorder(j, i)
    sch.bind(i, "threadIdx.x")
    sch.parallel(j)
    block = sch.get(sch.get_block("B"))
    assert (block.reads, block.writes) == ((), ())


@pytest.mark.parametrize("step", ["reorder", "parallel", "bind"])
@pytest.mark.parametrize(
    "update",
    ["B[vi, vj] = B[vi - 1, vj + 1]", "B[vi, vj] = A[vi, vj] + B[vj, vi]", "B[0, 0] = A[vi, vj]"],
)
def test_blocks_that_declare_nothing_depend_on_each_other(step, update):
    sch = Schedule(module(UPDATES.format(update=update)))
    i, j = sch.get_loops("B")
    steps = {
        "reorder": lambda: sch.reorder(j, i),
        "parallel": lambda: sch.parallel(i),
        "bind": lambda: sch.bind(i, "threadIdx.x"),
    }
    with pytest.raises(ScheduleError, match=r'block "B" (writes|reads) elements|neither complete'):
        steps[step]()


@pytest.mark.parametrize(
    "update", ["C[0] = A[vi, vj]", "C[0] = A[vi, vj]\n            B[vi, vj] = A[vi, vj]"]
)
def test_what_is_stored_through_another_buffer_is_not_known(update):
    view = "C = T.decl_buffer((64,), data=B.data)"
    sch = Schedule(module(UPDATES.format(update=f"{view}\n            {update}")))
    i, j = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="through another buffer in the same memory"):
        sch.reorder(j, i)


@pytest.mark.parametrize(
    ("reads", "writes", "update", "step"),
    [
        ("A[vi, vj]", "B[vi, vj]", "B[0, 0] = A[vi, vj]", "reorder"),
        ("A[vi, vj]", "B[vi, vj]", "B[7 - vi, 0] = A[vi, vj]", "parallel"),
        ("A[vi, vj], B[vi, vj]", "B[vi, vj]", "B[vi, vj] = B[vi - 1, vj + 1]", "reorder"),
        ("A[vi, vj]", "B[vi, vj]", "for k in range(4): B[vi + k, vj] = A[vi, vj]", "parallel"),
    ],
)
def test_blocks_that_declare_other_elements_than_they_access(reads, writes, update, step):
    source = UPDATES.replace("T.reads()", f"T.reads({reads})")
    source = source.replace("T.writes()", f"T.writes({writes})").format(update=update)
    sch = Schedule(module(source))
    i, j = sch.get_loops("B")
    with pytest.raises(ScheduleError, match=r'block "B" (writes|reads) elements|neither complete'):
        sch.reorder(j, i) if step == "reorder" else sch.parallel(j if "0]" in update else i)
