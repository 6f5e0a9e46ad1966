"""reindex, reindex_cache_read, reindex_cache_write: programs, records and refusals."""

import json

import numpy as np
import pytest

from mlcweb.ir import structural_equal
from mlcweb.runtime import build, nd
from mlcweb.schedule import ScheduleError, Trace
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module


@pytest.mark.parametrize("case", cases("reindex.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


MATMUL = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"),
         C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""


def stencil(value):
    return f"""
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = {value}
"""


def test_traces_replay_and_records_load():
    sch = Schedule(module(MATMUL))
    copy = sch.reindex("C", ("read", 1))
    assert sch.get(copy).name_hint == "B_reindex_reindex"
    written = sch.reindex("C", ("write", 0))
    assert sch.get(written).name_hint == "C_reindex"
    sch.reindex_cache_read("C", 0, "shared", lambda i, j, k: [k, i])
    assert sch.trace.as_python()[1::2] == [
        'b1 = sch.reindex(block=b0, buffer=("read", 1))',
        'b3 = sch.reindex(block=b2, buffer=("write", 0))',
        'b5 = sch.reindex_cache_read(block=b4, read_buffer_index=0, storage_scope="shared", '
        "index_map=lambda i, j, k: (k, i,))",
    ]
    steps, _ = sch.trace.as_json()
    assert steps[1] == ["ReIndex", ["b0"], [1, 0], ["b1"]]
    assert steps[5][2:] == [[0, "shared"], ["b5"]]
    for replay in (
        sch.trace.apply_to_schedule,
        lambda to: Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), to),
    ):
        again = Schedule(module(MATMUL))
        replay(again)
        assert structural_equal(again.mod, sch.mod)


def refusal(program, schedule):
    sch = Schedule(module(program))
    with pytest.raises(ScheduleError) as refused:
        schedule(sch)
    return refused.value


def test_one_index_per_iteration():
    error = refusal(stencil("A[vi] + A[vi + 1]"), lambda sch: sch.reindex("C", ("read", 0)))
    assert error.reason == (
        'The block "C" accesses the buffer "A" at different indices, [vi] and [vi + 1], but its '
        "copy has one place per iteration"
    )


@pytest.mark.parametrize(
    "schedule",
    [
        lambda sch: sch.reindex("C", ("read", 0)),
        lambda sch: sch.reindex_cache_read("C", 0, "local", lambda i: [i]),
        lambda sch: sch.reindex_cache_write("C", 0, "local", lambda i: [i]),
    ],
)
def test_one_element_per_iteration(schedule):
    vectors = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi * 4 : vi * 4 + 4] = A[vi * 4 : vi * 4 + 4]
"""
    assert (
        "by vectors, but its copy has one place per iteration" in refusal(vectors, schedule).reason
    )


def test_guarded_accesses_are_not_made_unguarded():
    error = refusal(
        stencil("T.if_then_else(vi >= 2, A[vi - 2], T.float32(0))"),
        lambda sch: sch.reindex("C", ("read", 0)),
    )
    assert 'The index vi - 2 of "A" is not known to stay in [0, 10)' in error.reason


def test_only_leaf_blocks():
    nested = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            for j in range(4):
                with T.block("C"):
                    vj = T.axis.spatial(4, j)
                    C[vi * 4 + vj] = A[vi * 4 + vj]
"""
    error = refusal(nested, lambda sch: sch.reindex("outer", ("read", 0)))
    assert error.reason == 'The block "outer" is not a leaf block: it holds other blocks'


def test_decomposed_reductions():
    def schedule(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.reindex("C_update", ("write", 0))

    error = refusal(MATMUL, schedule)
    assert 'updates elements of "C" that were written before' in error.reason
    assert error.advice == "reindex before decompose_reduction"


def test_blocks_beside_others():
    def schedule(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.reindex("C_update", ("read", 1))

    assert "holds other statements too, which reindex would" in refusal(MATMUL, schedule).reason


@pytest.mark.parametrize(
    ("index_map", "reason"),
    [
        (
            lambda i, j, k: [i],
            'The iterator "vk" of block "C" appears in [vi, vk], but not in [vi]',
        ),
        (
            lambda i, j, k: [i, j, k],
            'The iterator "vj" of block "C" appears in [vi, vj, vk], but not in [vi, vk]',
        ),
        (lambda i, j, k: [i % 4, k], 'The copy of "A" cannot be indexed by'),
        (lambda i, j: [i, j], 'takes 2 indices, but the block "C" has 3 iterators'),
    ],
)
def test_maps_refused(index_map, reason):
    error = refusal(MATMUL, lambda sch: sch.reindex_cache_read("C", 0, "shared", index_map))
    assert reason in error.reason


def test_an_unknown_storage_scope():
    error = refusal(
        MATMUL, lambda sch: sch.reindex_cache_write("C", 0, "nowhere", lambda i, j, k: [i, j])
    )
    assert 'storage scope "nowhere" is invalid' in error.reason


@pytest.mark.parametrize(
    ("access", "rank", "expected"),
    [
        ("read", 1, [0, 2, 5, 8, 0, 0]),
        ("write", 1, [0, 2, 5, 8, 0, 0]),
        ("write", 2, [0, 0, 5, 8, 0, 0]),
    ],
)
def test_loops_that_do_not_begin_at_zero_keep_their_minimum(access, rank, expected):
    # The block writes elements 1 to 3 (or in a triangle, 2 and 3); a copy must hold no others.
    loops = "for x in range(1, 4):"
    if rank == 2:
        loops = "for y in range(1, 2):\n        for x in range(y + 1, 4):"
    text = f"""
@T.prim_func(check_well_formed=False)
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    {loops}
        {"    " * (rank - 1)}with T.block("C"):
        {"    " * (rank - 1)}    v = T.axis.spatial(6, x)
        {"    " * (rank - 1)}    C[v] = A[v] + v
"""
    sch = Schedule(module(text))
    getattr(sch, f"reindex_cache_{access}")("C", 0, "global", lambda v: (v,))
    a, c = nd.array(np.array([9, 1, 3, 5, 9, 9], "int32")), nd.array(np.zeros(6, "int32"))
    build(sch.mod, "interpreter")(a, c)
    assert c.numpy().tolist() == expected


@pytest.mark.parametrize("access", ["read", "write"])
def test_what_its_loops_leave_out_of_an_axis_is_not_copied(access):
    """The axis goes up to 5, whose index is beyond the buffers; the loop goes up to 3."""
    sch = Schedule(
        module("""
@T.prim_func(check_well_formed=False)
def main(A: T.Buffer((5,), "int32"), C: T.Buffer((5,), "int32")):
    for x in range(1, 4):
        with T.block("C"):
            v = T.axis.spatial(6, x)
            C[v + 1] = A[v + 1] + v
""")
    )
    getattr(sch, f"reindex_cache_{access}")("C", 0, "global", lambda v: (v,))
    a, c = nd.array(np.arange(5, dtype="int32")), nd.array(np.zeros(5, "int32"))
    build(sch.mod, "interpreter")(a, c)
    assert c.numpy().tolist() == [0, 0, 3, 5, 7]
