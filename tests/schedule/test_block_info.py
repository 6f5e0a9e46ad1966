"""What `ScheduleState` tells of blocks: flags and dependences, as TVM's tools ask for them."""

import pytest

import mlcweb as tvm
from mlcweb.schedule import Schedule, ScheduleState
from mlcweb.schedule.analysis.block_info import CachedFlags, DepKind
from mlcweb.schedule.state import StmtSRef
from mlcweb.script import from_source
from mlcweb.script import tir as T


@T.prim_func
def smooth(A: T.Buffer((32,), "float32"), C: T.Buffer((30,), "float32")):
    B = T.alloc_buffer((32,), "float32")
    for i in range(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(30):
        with T.block("C"):
            vi = T.axis.spatial(30, i)
            C[vi] = B[vi] + B[vi + 2]


@T.prim_func
def with_a_hole(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    for i in range(15):
        with T.block("low"):
            vi = T.axis.spatial(15, i)
            A[vi] = T.float32(1)
    for i in range(16):
        with T.block("high"):
            vi = T.axis.spatial(16, i)
            A[vi + 16] = T.float32(2)
    for i in range(32):
        with T.block("C"):
            vi = T.axis.spatial(32, i)
            C[vi] = A[vi]


@T.prim_func
def overwritten(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("first"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
    for i in range(16):
        with T.block("second"):
            vi = T.axis.spatial(16, i)
            A[vi] = T.float32(0)


@T.prim_func
def crosswise(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    B = T.alloc_buffer((8, 4), "float32", scope="warp")
    for y in T.thread_binding(4, thread="threadIdx.y"):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vx, vy = T.axis.remap("SS", [x, y])
                B[vx, vy] = A[vx, vy]
            with T.block("C"):
                vx, vy = T.axis.remap("SS", [x, y])
                C[vx, vy] = B[vx, 3 - vy]


def flags(state: ScheduleState, name: str) -> CachedFlags:
    sch = Schedule(state.mod)
    return state._get_cached_flags(state.get_sref(sch.get(sch.get_block(name))))


@pytest.mark.parametrize(
    ("program", "name", "expected"),
    [
        (smooth, "C", (True, True, True)),
        (smooth, "root", (True, True, True)),
        (with_a_hole, "C", (True, False, True)),
        (with_a_hole, "root", (True, True, False)),
        (overwritten, "second", (True, True, True)),
        (overwritten, "root", (True, True, False)),
        # Threads of other warps do not see what a warp keeps.
        (crosswise, "C", (True, False, True)),
    ],
)
def test_flags(program, name, expected):
    assert flags(ScheduleState(program, debug_mask="all"), name) == CachedFlags(*expected)


@pytest.mark.parametrize(
    ("program", "names", "kinds"),
    [(smooth, "BC", [DepKind.RAW]), (overwritten, ["first", "second"], [DepKind.WAR])],
)
def test_dependences(program, names, kinds):
    sch = Schedule(program)
    root, first, second = (sch.get_sref(sch.get_block(name)) for name in ("root", *names))
    scope = sch.state.get_block_scope(root)
    assert [each.kind for each in scope.get_deps_by_src(first)] == kinds
    assert [each.kind for each in scope.get_deps_by_dst(second)] == kinds
    assert not scope.get_deps_by_dst(first)
    assert scope.get_deps_by_src(first)[0].dst.same_as(second)


def test_references_belong_to_one_schedule():
    sch = Schedule(smooth)
    block = sch.get_block("C")
    copy = sch.copy()
    assert sch.get_sref(block).same_as(sch.state.get_sref(sch.get(block)))
    assert not sch.get_sref(block).same_as(copy.get_sref(block))
    assert sch.get_sref(block).stmt is copy.get_sref(block).stmt
    sch.parallel(sch.get_loops("B")[0])
    assert sch.get_sref(block).same_as(sch.state.get_sref(sch.get(block)))


def test_only_blocks_have_flags():
    sch = Schedule(smooth)
    with pytest.raises(TypeError, match="no reference to a block"):
        sch.state.get_block_scope(sch.get_sref(sch.get_loops("C")[0]))


def test_output_blocks_are_found_inside_of_blocks():
    sch = Schedule(smooth)
    outer = sch.blockize(sch.get_loops("C")[0])
    names = [sch.get(each).name_hint for each in sch.get_output_blocks("root")]
    assert names == [sch.get(outer).name_hint, "C"]
    assert [sch.get(each).name_hint for each in sch.get_output_blocks(outer)] == ["C"]


def test_the_message_where_no_function_is_chosen():
    module = tvm.IRModule({"one": smooth, "two": overwritten})
    with pytest.raises(ValueError, match=r'does not know which function .* "one", "two"'):
        Schedule(module).get_block("C")


@pytest.mark.parametrize(
    ("values", "extent", "binding", "is_affine"),
    [
        (128, 128, "i", True),
        (128, 128, "127 - i", False),
        (128, 64, "i * 2", False),
        (64, 128, "i // 2", True),
        (128, 128, "i // 2 * 2", False),
        (136, 128, "i + 8", True),
        (128, 4, "3", True),
        (128, 128, "T.max(i, 1)", False),
    ],
)
def test_bindings_that_are_affine(values: int, extent: int, binding: str, is_affine: bool) -> None:
    # As TVM 0.27 answers: an iterator that runs backwards, or skips values, is not.
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32")):
    for i in range({extent}):
        with T.block("B"):
            vi = T.axis.spatial({values}, {binding})
            C[vi] = A[vi]
"""
    )
    expected = CachedFlags(is_affine, region_cover=True, stage_pipeline=True)
    assert flags(ScheduleState(func), "B") == expected


def test_sampled_locations_that_are_no_loops_have_marks():
    sch = Schedule(smooth)
    block = sch.get_block("B")
    stays, inlined = (sch.sample_compute_location(block, decision=d) for d in (-1, -2))
    assert sch.get_sref(stays).same_as(StmtSRef.root_mark())
    assert sch.get_sref(inlined).same_as(StmtSRef.inline_mark())
    assert not StmtSRef.root_mark().same_as(StmtSRef.inline_mark())
    assert sch.get_sref(stays).stmt is None
