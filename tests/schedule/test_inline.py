"""compute_inline and reverse_compute_inline: the values, the predicates, and what is refused."""

import numpy as np
import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module, outputs


@pytest.mark.parametrize("case", cases("inline.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


CHAIN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + T.float32(1)
"""


def test_the_block_that_is_left_keeps_its_handle():
    sch = Schedule(module(CHAIN))
    producer, consumer = sch.get_block("B"), sch.get_block("C")
    sch.compute_inline(producer)
    assert sch.get(consumer).name_hint == "C"
    assert sch.get(sch.get_block("root")).alloc_buffers == ()
    with pytest.raises(ScheduleError, match="no longer in the program"):
        sch.get_loops(producer)


def test_the_producer_keeps_its_handle():
    sch = Schedule(module(CHAIN))
    producer, consumer = sch.get_block("B"), sch.get_block("C")
    sch.reverse_compute_inline(consumer)
    assert sch.get(producer).writes[0].buffer.name == "C"
    with pytest.raises(ScheduleError, match="no longer in the program"):
        sch.get_loops(consumer)


def test_an_output_is_marked_in_the_message():
    sch = Schedule(module(CHAIN))
    with pytest.raises(ScheduleError) as refusal:
        sch.compute_inline(sch.get_block("C"))
    assert 'The block "C" is an output block' in refusal.value.reason
    assert [statement.block.name_hint for statement in refusal.value.marked] == ["C"]


def test_a_producer_that_updates_its_buffer_is_not_taken_up():
    text = CHAIN.replace("B[vi] = ", "B[vi] = B[vi] + ", 1)
    with_init = text.replace(
        "            B[vi] = B",
        "            with T.init():\n                B[vi] = T.float32(5)\n            B[vi] = B",
    )
    assert "T.init" in with_init
    sch = Schedule(module(with_init))
    with pytest.raises(ScheduleError) as refusal:
        sch.reverse_compute_inline("C")
    assert 'The producer "B" updates "B"' in refusal.value.reason


def test_the_other_branch_stays():
    before = module("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    if A[0] > 0:
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
    else:
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + 1
""")
    sch = Schedule(before)
    sch.compute_inline("B")
    for first in (-1, 0, 1):
        arrays = [np.arange(8, dtype="int32") + first, np.zeros(8, "int32")]
        np.testing.assert_array_equal(outputs(sch.mod, arrays), outputs(before, arrays))


def test_what_a_block_hides_that_it_reads_is_seen():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi // 2]
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = B[vi] + 1
""")
    )
    sch.unsafe_hide_buffer_access("B", "read", [0])
    with pytest.raises(ScheduleError, match='The block "B" uses "A" without declaring it'):
        sch.compute_inline("B")


@pytest.mark.parametrize(
    ("predicate", "is_inlined"), [("A[i] != 0", False), ("A[0] != 0", False), ("i < 16", True)]
)
def test_what_a_predicate_leaves_out_of_the_producer_is_still_written(predicate, is_inlined):
    """The consumer stores 5 where the producer does not run."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            T.where({predicate})
            T.reads(A[0:16])
            T.writes(B[v])
            B[v] = A[v] * 2
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            C[v] = T.if_then_else({predicate.replace("i", "v")}, B[v], 5)
"""
    sch = Schedule(module(text))
    if is_inlined:
        sch.reverse_compute_inline("C")
        return
    with pytest.raises(ScheduleError, match="and would be lost in it"):
        sch.reverse_compute_inline("C")


def test_a_predicate_on_several_iterators_of_the_producer():
    """Of two tiles of 8 a part is left out, which the consumer does not read either."""
    text = """
@T.prim_func
def main(A: T.Buffer((2, 8), "float32"), C: T.Buffer((13,), "float32")):
    B = T.alloc_buffer((13,))
    for i, j in T.grid(2, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i * 8 + j < 13)
            B[vi * 8 + vj] = A[vi, vj] * T.float32(2)
    for i in range(13):
        with T.block("C"):
            v = T.axis.spatial(13, i)
            C[v] = T.max(B[v], T.float32(1))
"""
    sch = Schedule(module(text))
    sch.reverse_compute_inline("C")
    assert "T.alloc_buffer" not in sch.mod.script()
    a = np.random.default_rng(0).standard_normal((2, 8), "float32")
    c = outputs(sch.mod, [a, np.zeros(13, "float32")])[1]
    np.testing.assert_array_equal(c, np.maximum(a.ravel()[:13] * 2, 1))


def test_an_iterator_of_one_value_becomes_the_index_at_its_place():
    """As in TVM, also where the index of the producer is that value, and no iterator."""

    mod = module(
        """
@T.prim_func
def main(a: T.Buffer((1, 8), "float32"), c: T.Buffer((1, 8), "float32")):
    b = T.alloc_buffer((1, 8))
    for i, j in T.grid(1, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[0, vj] = a[vi, vj] * T.float32(2)
    for i, j in T.grid(1, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            c[vi, vj] = b[vi, vj] + T.float32(1)
"""
    )
    sch = Schedule(mod)
    sch.compute_inline("B")
    assert "c[vi, vj] = a[vi, vj] * T.float32(2) + T.float32(1)" in sch.mod.script()
