"""loop_partition: the parts of a loop, what stands between them and other blocks, refusals."""

import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module, outputs, random_inputs


@pytest.mark.parametrize("case", cases("loop_partition.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


CHAIN = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64,))
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            C[vi] = B[vi] * T.float32(2)
"""


def test_each_part_is_scheduled_by_its_name():
    sch = Schedule(module(CHAIN))
    sch.loop_partition(sch.get_loops("C")[0], [None, 8])
    sch.parallel(sch.get_loops("C_i0")[0])
    outer, inner = sch.split(sch.get_loops("C_i0")[0], [None, 8])
    sch.vectorize(inner)
    sch.unroll(sch.get_loops("C_i1")[0])
    before, arrays = module(CHAIN), random_inputs(module(CHAIN))
    assert (outputs(sch.mod, arrays)[1] == outputs(before, arrays)[1]).all()


@pytest.mark.parametrize(
    "step",
    [
        lambda sch: sch.compute_at("B", sch.get_loops("C_i0")[0]),
        lambda sch: sch.cache_read("C_i_common", 0, "local"),
        lambda sch: sch.cache_write("B", 0, "local"),
        lambda sch: sch.reverse_compute_inline("C_i_common"),
        lambda sch: sch.compute_at("B", sch.get_loops("B")[0]),
    ],
)
def test_what_the_parts_hide_is_not_moved_past(step):
    sch = Schedule(module(CHAIN))
    sch.loop_partition(sch.get_loops("C")[0], [None, 8])
    with pytest.raises(ScheduleError):
        step(sch)


def test_inlining_into_parts():
    sch = Schedule(module(CHAIN))
    sch.loop_partition(sch.get_loops("C")[0], [None, 8])
    sch.compute_inline("B")
    before, arrays = module(CHAIN), random_inputs(module(CHAIN))
    assert (outputs(sch.mod, arrays)[1] == outputs(before, arrays)[1]).all()


REPEATED = """
@T.prim_func
def main(A: T.Buffer((4, 64), "float32"), C: T.Buffer((64,), "float32")):
    for k, i in T.grid(4, 64):
        with T.block("C"):
            vk, vi = T.axis.remap("RS", [k, i])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk, vi]
"""


@pytest.mark.parametrize("step", ["parallel", "vectorize"])
def test_loops_around_the_parts_keep_their_order(step):
    sch = Schedule(module(REPEATED))
    k, i = sch.get_loops("C")
    sch.loop_partition(i, [None, 8])
    with pytest.raises(
        ScheduleError, match='"C_i_common" writes elements of "C" that it writes in'
    ):
        getattr(sch, step)(k)


def test_reductions_in_blocks_in_the_loop_are_not_started_again():
    source = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((4, 16), "float32")):
    for k in range(4):
        for i in range(16):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    A[vi] = T.float32(0)
                A[vi] = A[vi] + B[vk, vi]
"""
    sch = Schedule(module(source))
    k, i = sch.get_loops("sum")
    sch.loop_partition(i, [1, None])
    (common,) = sch.get_child_blocks(sch.get_sblock("root"))
    with pytest.raises(ScheduleError, match='"k" drives the reduction iterator "vk"'):
        sch.loop_partition(sch.get_loops(common)[0], [1, None])
