"""cache_read and cache_write: the copies, who uses them, and what is refused."""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("cache.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


COPY = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] + T.float32(1)
"""


def test_the_new_block_and_the_changed_block_can_be_scheduled_on():
    sch = Schedule(module(COPY))
    block = sch.get_block("C")
    copy = sch.cache_read(block, 0, "local")
    assert sch.get(copy).name_hint == "A_local"
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops(copy)] == ["ax0"]
    assert sch.get(block).reads[0].buffer.name == "A_local"
    assert sch.get(block).reads[0].buffer.scope() == "local"
    sch.compute_at(copy, sch.get_loops(block)[0])
    assert sch.get_loops(copy)[0] is not None


@pytest.mark.parametrize("index", [-1, 1])
def test_a_bad_index_names_the_buffers_there_are(index):
    sch = Schedule(module(COPY))
    with pytest.raises(ScheduleError) as refusal:
        sch.cache_write(sch.get_block("C"), index, "local")
    assert f"the `buffer_index` {index} is not in [0, 1)" in refusal.value.reason
    assert refusal.value.advice == 'the buffers are, in order: "C"'
    assert 'with T.block("C")' in str(refusal.value)


def test_an_unknown_storage_scope():
    sch = Schedule(module(COPY))
    with pytest.raises(ScheduleError, match='storage scope "nowhere" is invalid'):
        sch.cache_read(sch.get_block("C"), 0, "nowhere")


def test_a_consumer_in_another_scope():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"),
         D: T.Buffer((16,), "float32")):
    for i0 in range(4):
        with T.block("outer"):
            vo = T.axis.spatial(4, i0)
            for i1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, i1)
                    C[vo * 4 + vi] = A[vo * 4 + vi]
    for i in range(16):
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = A[vi]
""")
    )
    with pytest.raises(ScheduleError, match='"D" is not in the scope of block "outer"'):
        sch.cache_read(sch.get_block("C"), 0, "local", consumer_blocks=["D"])


def test_gaps_in_an_output_are_not_overwritten():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi * 2] = A[vi]
""")
    )
    with pytest.raises(ScheduleError, match="are not a box"):
        sch.cache_write(sch.get_block("C"), 0, "local")


@pytest.mark.parametrize("condition", ["Y[1] < 3", "m < 3", "u + m < 3"])
def test_a_predicate_about_nothing_that_moves_is_seen_beside_a_bound(condition):
    sch = Schedule(
        module(f"""
@T.prim_func
def main(P: T.Buffer((8, 4), "int32"), Y: T.Buffer((4,), "int32"), m: T.int32):
    for u, i, j in T.grid(1, 11, 3):
        with T.block("P"):
            v = T.axis.spatial(8, (i * 3 + j) // 4)
            w = T.axis.spatial(4, (i * 3 + j) % 4)
            T.where(i * 3 + j < 32 and {condition})
            P[v, w] = v
""")
    )
    with pytest.raises(ScheduleError, match="copying back would overwrite others"):
        sch.cache_write("P", 0, "local")


def test_a_copy_at_the_end_stands_where_its_buffer_is_declared():
    sch = Schedule(
        module("""
@T.prim_func
def main(P: T.Buffer((10,), "float32"), Q: T.Buffer((5,), "float32")):
    V = T.decl_buffer((2, 5), "float32", data=P.data)
    for i, j in T.grid(2, 5):
        with T.block("V"):
            v, w = T.axis.remap("SS", [i, j])
            T.reads(Q[w], V[0:2, 0:5])
            T.writes(V[v, w])
            V[v, w] = Q[w]
""")
    )
    sch.cache_read("V", 1, "global")
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
