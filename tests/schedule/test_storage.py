"""set_scope and storage_align: the buffers that change, the annotations, and what is refused."""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests.schedule.case_files import module, outputs, random_inputs

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i0 in range(4):
        with T.block("outer"):
            vo = T.axis.spatial(4, i0)
            T.reads(B[vo * 4:vo * 4 + 4, 0:16])
            T.writes(C[vo * 4:vo * 4 + 4, 0:16])
            X = T.match_buffer(B[vo * 4:vo * 4 + 4, 0:16], (4, 16), offset_factor=1)
            for i1, j in T.grid(4, 16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i1, j])
                    C[vo * 4 + vi, vj] = X[vi, vj] + T.float32(1)
"""


def apply(mod, primitive, block_name, *arguments):
    """The module after one primitive."""
    sch = Schedule(mod)
    primitive(sch, sch.get_block(block_name), *arguments)
    return sch.mod


def test_the_buffer_and_its_views_move_to_the_scope():
    before = module(PROGRAM)
    after = apply(before, Schedule.set_scope, "B", 0, "shared")
    assert_structural_equal(
        after,
        module("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B_shared = T.alloc_buffer((16, 16), scope="shared")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B_shared[vi, vj] = A[vi, vj] * T.float32(2)
    for i0 in range(4):
        with T.block("outer"):
            vo = T.axis.spatial(4, i0)
            T.reads(B_shared[vo * 4:vo * 4 + 4, 0:16])
            T.writes(C[vo * 4:vo * 4 + 4, 0:16])
            X_shared = T.match_buffer(B_shared[vo * 4:vo * 4 + 4, 0:16], (4, 16), scope="shared",
                                      offset_factor=1)
            for i1, j in T.grid(4, 16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i1, j])
                    C[vo * 4 + vi, vj] = X_shared[vi, vj] + T.float32(1)
"""),
    )
    arrays = random_inputs(before)
    assert (outputs(after, arrays)[1] == outputs(before, arrays)[1]).all()


def test_the_scope_it_has_changes_nothing():
    before = module(PROGRAM)
    assert_structural_equal(apply(before, Schedule.set_scope, "B", "B", "global"), before)


@pytest.mark.parametrize(
    ("block", "index", "scope", "reason"),
    [
        ("B", 0, "nowhere", 'The input storage scope "nowhere" is invalid'),
        ("B", 1, "shared", 'The block "B" has 1 write region(s), and the `buffer_index` 1 is not'),
        ("outer", 0, "shared", 'The buffer "C" is not allocated by a block'),
    ],
)
def test_refused_scopes(block, index, scope, reason):
    with pytest.raises(ScheduleError) as refusal:
        apply(module(PROGRAM), Schedule.set_scope, block, index, scope)
    assert refusal.value.reason.startswith(reason)


def test_alignments_are_kept_by_axis():
    mod = apply(module(PROGRAM), Schedule.storage_align, "B", 0, 0, 32, 8)
    mod = apply(mod, Schedule.storage_align, "B", 0, -2, 64, 4)
    mod = apply(mod, Schedule.storage_align, "B", 0, 1, 16, -4)
    assert 'T.block_attr({"buffer_dim_align": [[0, 0, 64, 4], [0, 1, 16, -4]]})' in mod.script()


@pytest.mark.parametrize(
    ("block", "axis", "factor", "reason"),
    [
        ("B", 2, 32, "the axis 2 is not in [-2, 2)"),
        ("B", -3, 32, "the axis -3 is not in [-2, 2)"),
        ("B", 0, 0, "The factor 0 of storage_align is not positive"),
        ("outer", 0, 32, 'The buffer "C" is not allocated by a block'),
    ],
)
def test_refused_alignments(block, axis, factor, reason):
    with pytest.raises(ScheduleError) as refusal:
        apply(module(PROGRAM), Schedule.storage_align, block, 0, axis, factor, 0)
    assert reason in refusal.value.reason


@pytest.mark.parametrize("noted", ["[0]", "[[0, 1, 2]]", "5", '"x"', "[[0, 0, 1, 2, 3]]"])
def test_a_note_that_is_no_list_of_alignments(noted):
    # TVM 0.27 refuses all of these.
    store = "            B[vi, vj] ="
    note = f'            T.block_attr({{"buffer_dim_align": {noted}}})\n'
    mod = module(PROGRAM.replace(store, note + store))
    with pytest.raises(ScheduleError, match="no list of alignments"):
        apply(mod, Schedule.storage_align, "B", 0, 0, 32, 8)
