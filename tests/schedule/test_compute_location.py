"""compute_at and reverse_compute_at: regions, positions, and what is refused."""

import numpy as np
import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module, outputs


@pytest.mark.parametrize("case", cases("compute_at.txt"), ids=lambda case: case.name)
def test_compute_at(case):
    check(case)


@pytest.mark.parametrize("case", cases("reverse_compute_at.txt"), ids=lambda case: case.name)
def test_reverse_compute_at(case):
    check(case)


CHAIN = """
@T.prim_func
def main(A: T.Buffer((12, 8), "float32"), D: T.Buffer((12, 8), "float32")):
    B = T.alloc_buffer((12, 8))
    C = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(12, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] * C[vi, vj]
"""


def test_blocks_and_loops_keep_their_handles():
    sch = Schedule(module(CHAIN))
    b, c, d = (sch.get_block(name) for name in "BCD")
    i, j = sch.get_loops(d)
    sch.compute_at(c, i)
    sch.compute_at(b, i)
    assert sch.get(i).loop_var.name == "i"
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops(b)] == ["i", "ax0"]
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(i)] == ["B", "C", "D"]
    assert sch.get_loops(d)[1] is not None
    assert sch.get(j).loop_var.name == "j"


def test_consumers_outside_are_named_and_marked():
    sch = Schedule(module(CHAIN))
    with pytest.raises(ScheduleError) as refusal:
        sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])
    assert 'all the consumer(s) of the block "B" to be under the loop "i"' in refusal.value.reason
    assert refusal.value.reason.endswith('not there: "D"')
    loop, block = refusal.value.marked
    assert (loop.loop_var.name, block.block.name_hint) == ("i", "D")
    assert refusal.value.advice == "choose a loop around all consumers, or move them there first"


def test_an_index_out_of_reach_says_which_are_valid():
    sch = Schedule(module(CHAIN))
    b, c, d = (sch.get_block(name) for name in "BCD")
    loop = sch.get_loops(d)[0]
    sch.compute_at(c, loop)
    with pytest.raises(ScheduleError) as refusal:
        sch.compute_at(b, loop, index=1)
    assert refusal.value.advice == "0 to 0, -1 (the last) or -2 (the first)"


def test_a_reduction_is_not_repeated_in_parts():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((8,))
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.reduce(8, i)
            with T.init():
                C[0] = T.float32(0)
            C[0] = C[0] + B[vi]
""")
    )
    b, c = sch.get_block("B"), sch.get_block("C")
    i, k = sch.get_loops(b)
    with pytest.raises(ScheduleError, match="add some elements to its reduction more than once"):
        sch.reverse_compute_at(c, k)
    sch.reverse_compute_at(c, i)


def test_a_reduction_is_not_spread_over_a_parallel_loop():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.reduce(8, i)
            with T.init():
                C[0] = T.float32(0)
            C[0] = C[0] + B[vi]
""")
    )
    loop = sch.get_loops(sch.get_block("B"))[0]
    sch.parallel(loop)
    with pytest.raises(ScheduleError, match="whose iterations run at the same time"):
        sch.reverse_compute_at(sch.get_block("C"), loop)


def test_a_loaded_index_is_not_computed_where_a_predicate_guards_it():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((12,), "float32"), I: T.Buffer((7,), "int32"), C: T.Buffer((7,), "float32")):
    B = T.alloc_buffer((12,))
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi]
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = B[I[vi]]
""")
    )
    b, c = sch.get_block("B"), sch.get_block("C")
    outer, inner = sch.split(sch.get_loops(c)[0], [None, 4])
    sch.compute_at(b, inner)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(b)] == [2, 4, 12]


NARROWED = """
@T.prim_func
def main(A: T.Buffer((256,), "int32"), C: T.Buffer((300,), "int32")):
    B = T.alloc_buffer((256,), "int32")
    for i in range(256):
        with T.block("B"):
            vi = T.axis.spatial(256, i)
            B[vi] = A[vi] + 1
    for i, j in T.grid(1, 300):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vj] = B[T.cast(T.cast(vj, "uint8"), "int32")]
"""


def test_an_index_that_wraps_around_needs_everything():
    sch = Schedule(module(NARROWED))
    sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])
    assert int(sch.get(sch.get_loops(sch.get_block("B"))[-1]).extent) == 256


WITHOUT_ITERATORS = """
@T.prim_func(check_well_formed=False)
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            T.reads(A[i])
            T.writes(B[i])
            B[i] = A[i] + 1
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v]
"""


def test_a_block_that_uses_its_loop_stays_in_it():
    sch = Schedule(module(WITHOUT_ITERATORS))
    with pytest.raises(ScheduleError) as refusal:
        sch.compute_at("B", sch.get_loops("C")[0])
    assert 'uses the loop "i" around it without an iterator' in refusal.value.reason


PREDICATE_READS = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    J = T.alloc_buffer((8,), "int32")
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("J"):
            vi = T.axis.spatial(8, i)
            J[vi] = A[vi] - 1
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where({predicate})
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + J[vi]
"""


def test_what_a_predicate_reads_is_computed_before_it():
    sch = Schedule(module(PREDICATE_READS.format(predicate="J[7 - i] < 100")))
    with pytest.raises(ScheduleError) as refusal:
        sch.compute_at("J", sch.get_loops("C")[0])
    assert 'The block "B" uses "J" without declaring it' in refusal.value.reason
    free = Schedule(module(PREDICATE_READS.format(predicate="A[7 - i] < 100")))
    free.compute_at("J", free.get_loops("C")[0])
    assert len(free.get_loops("J")) == 1


GUARDED = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.where(0 < I[i] and I[i] < 4)
            T.reads(A[0:4], I[0:8])
            T.writes(B[v])
            B[v] = {value}
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.if_then_else(0 < I[v] and I[v] < 4, B[v], 5)
"""


@pytest.mark.parametrize(
    ("value", "is_moved"), [("A[v // 2]", True), ("A[I[v]]", False), ("12 // I[v]", False)]
)
def test_a_predicate_stays_that_keeps_a_block_from_failing(value, is_moved):
    """Elements that nobody uses are computed after the move, where no predicate tells which."""
    before = module(GUARDED.format(value=value))
    sch = Schedule(before)
    if not is_moved:
        with pytest.raises(ScheduleError, match="may divide by zero or read what is not there"):
            sch.compute_at("B", sch.get_loops("C")[0])
        return
    sch.compute_at("B", sch.get_loops("C")[0])
    arrays = [np.arange(4, dtype="int32"), np.arange(8, dtype="int32") * 3, np.zeros(8, "int32")]
    for target in ("interpreter", "numpy"):
        np.testing.assert_array_equal(outputs(sch.mod, arrays, target)[2], [5, 0] + [5] * 6)


def test_a_block_without_iterators_keeps_its_predicate():
    text = GUARDED.format(value="A[I[0]]").replace("v = T.axis.spatial(8, i)", "pass", 1)
    text = text.replace("I[i]", "I[0]").replace("B[v]", "B[0]").replace("range(8)", "range(1)", 1)
    sch = Schedule(module(text))
    with pytest.raises(ScheduleError, match="may divide by zero or read what is not there"):
        sch.compute_at("B", sch.get_loops("C")[0])


GATHER = """
@T.prim_func
def main(A: T.Buffer((12,), "int32"), I: T.Buffer((7,), "int32"), C: T.Buffer((7,), "int32")):
    J = T.alloc_buffer((7,), "int32")
    B = T.alloc_buffer((12,), "int32")
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi] * 2
    for i in range(7):
        with T.block("J"):
            vi = T.axis.spatial(7, i)
            J[vi] = T.min(T.max(I[vi], 0), 11)
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            T.reads(B[J[vi]], J[vi])
            C[vi] = B[J[vi]] + 1
"""


@pytest.mark.parametrize("hidden", [False, True])
def test_a_producer_gathered_by_computed_indices_is_computed_as_a_whole(hidden):
    sch = Schedule(module(GATHER))
    if hidden:
        sch.unsafe_hide_buffer_access("J", "write", [0])
    sch.compute_at("B", sch.get_loops("C")[0], index=-2)
    assert int(sch.get(sch.get_loops("B")[-1]).extent) == 12


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 10), "float32")
    C = T.match_buffer(c, (n, 10), "float32")
    B = T.alloc_buffer((n, 10))
    for i, j in T.grid(n, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 10):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""
CONSTANT = SYMBOLIC.replace("(n,", "(14,").replace("    n = T.int32()\n", "")


@pytest.mark.parametrize("splits", [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("text", [SYMBOLIC, CONSTANT])
def test_a_consumer_moves_after_two_splits_that_do_not_divide(text, splits):
    """One of its predicates follows from the other, or bounds a sum of some of the loops."""
    sch = Schedule(module(text))
    for position, factor in zip(splits, (4, 3), strict=False):
        loops = sch.get_loops("C")
        sch.split(loops[min(position, len(loops) - 1)], [None, factor])
    sch.reverse_compute_at("C", sch.get_loops("B")[1])
    a = np.arange(140, dtype="float32").reshape(14, 10)
    arrays = [a, np.zeros_like(a)]
    np.testing.assert_array_equal(outputs(sch.mod, arrays)[1], a * 2 + 1)
    np.testing.assert_array_equal(outputs(sch.mod, arrays, "wasm")[1], a * 2 + 1)


def test_a_consumer_of_a_corner_that_is_no_box_stays():
    cut = """            T.where(i * 10 + j < 135)
            C[vi, vj]"""
    sch = Schedule(module(CONSTANT.replace("            C[vi, vj]", cut)))
    with pytest.raises(ScheduleError, match="do not run through all combinations"):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])


PART_OF_ITS_DOMAIN = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for i in range({loop}):
        with T.block("C"):
            vi = T.axis.spatial(8, {binding})
            T.where({predicate})
            C[vi] = B[vi]
"""


@pytest.mark.parametrize(
    ("loop", "binding", "predicate"),
    [
        ("1, 6", "i - 1", "True"),
        ("1, 6", "i - 1", "i < 6"),
        ("5", "4 - i", "True"),
        ("5", "4 - i", "4 - i < 5"),
        ("3, 8", "i - 3", "i < 10"),
    ],
)
def test_a_consumer_of_a_part_writes_no_more_when_it_is_moved(loop, binding, predicate):
    text = PART_OF_ITS_DOMAIN.format(loop=loop, binding=binding, predicate=predicate)
    sch = Schedule(module(text))
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    _check_part(sch)


def _check_part(sch):
    _, c = outputs(sch.mod, [np.arange(8, dtype="int32"), np.full(8, -1, "int32")])
    np.testing.assert_array_equal(c, [1, 2, 3, 4, 5, -1, -1, -1])


@pytest.mark.parametrize("predicate", ["True", "i < 6", "i - 1 < 5"])
def test_a_consumer_of_a_part_writes_no_more_when_it_is_inlined(predicate):
    text = PART_OF_ITS_DOMAIN.format(loop="1, 6", binding="i - 1", predicate=predicate)
    sch = Schedule(module(text))
    sch.reverse_compute_inline("C")
    _check_part(sch)


def test_a_consumer_in_split_loops_that_count_down_moves():
    text = PART_OF_ITS_DOMAIN.format(loop="8", binding="7 - i", predicate="True")
    sch = Schedule(module(text))
    sch.split(sch.get_loops("C")[0], [None, 2])
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    _, c = outputs(sch.mod, [np.arange(8, dtype="int32"), np.zeros(8, "int32")])
    np.testing.assert_array_equal(c, np.arange(1, 9))


@pytest.mark.parametrize(("loop", "binding"), [("4", "i * 2"), ("3", "i * i")])
def test_a_consumer_of_scattered_parts_stays(loop, binding):
    text = PART_OF_ITS_DOMAIN.format(loop=loop, binding=binding, predicate="True")
    sch = Schedule(module(text))
    with pytest.raises(ScheduleError, match="do not run through all combinations"):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])


ROWS = """
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (2, n))
    C = T.match_buffer(b, (2, n))
    B = T.alloc_buffer((2, n))
    for i, j in T.grid(2, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(2, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
"""


def test_digits_of_a_loop_of_symbolic_extent_need_no_predicate():
    """x % n lies below n wherever the loop over x in [0, 2 * n) runs, be n positive or not."""
    sch = Schedule(from_source(ROWS))
    sch.compute_at("B", sch.fuse(*sch.get_loops("C")), preserve_unit_loops=True)
    assert "T.where" not in sch.mod.script()


def test_a_view_of_memory_that_a_block_renames_is_known():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((2, 4), "int32")):
    V = T.decl_buffer((8,), "int32", data=B.data)
    for i in range(4):
        with T.block("V"):
            vi = T.axis.spatial(4, i)
            V[vi] = A[vi]
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            row = T.match_buffer(B[vi, 0:4], (1, 4), offset_factor=1, dtype="int32")
            for j in range(4):
                row[0, j] = j
""")
    )
    with pytest.raises(ScheduleError, match='the block "B" writes "V" without declaring it'):
        sch.reverse_compute_at("V", sch.get_loops("B")[0])
