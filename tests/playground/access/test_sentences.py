"""Strides and sentences of the course's schedules: what is read how, and what that saves."""

import pytest

from mlcweb.playground.access.cache import Cache
from mlcweb.playground.access.recording import record
from mlcweb.playground.access.sentences import compare, describe
from mlcweb.playground.access.strides import Stride, strides
from mlcweb.playground.compared import Derivation
from mlcweb.schedule import Schedule
from mlcweb.script import from_source
from tests.playground.access.profiles import ordered_matmul, profile, small_recording, tiled
from tests.programs import matmul

CACHE = Cache(32, 512, 4)


def badges(recording) -> dict[str, list[str]]:
    """The strides of all subscripts by their buffers."""
    by_buffer: dict[str, list[str]] = {}
    for place, access in zip(recording.place_of, strides(recording), strict=True):
        text = f"{access.badge} in {access.loop}" if access.loop else access.badge
        by_buffer.setdefault(recording.places[place].name, []).append(text)
    return by_buffer


def test_strides_of_the_plain_product() -> None:
    recording = small_recording(matmul(), 16)
    # Zeros are written once for all of k, so it is j that moves them.
    assert badges(recording) == {
        "A": ["unit in k"],
        "B": ["stride 16 in k"],
        "C": ["unit in j", "same in k", "same in k"],
    }
    assert strides(recording)[3] == Stride("k", 16)


def test_strides_of_ikj() -> None:
    recording = record(ordered_matmul("i, k, j"), "main")
    assert badges(recording) == {
        "A": ["same in j"],
        "B": ["unit in j"],
        "C": ["unit in j", "unit in j"],
    }


def test_loops_of_one_turn_move_nothing() -> None:
    recording = small_recording(tiled(1), 16)
    assert badges(recording)["B"] == ["stride 16 in k"]


def test_fused_loops_jump_at_the_end_of_a_row() -> None:
    module = matmul()
    schedule = Schedule(module)
    i, j, k = schedule.get_loops(schedule.get_block("C"))
    schedule.reorder(k, schedule.fuse(i, j))
    made = Derivation(schedule.trace, module, schedule.mod)
    recording = small_recording(made, 4)
    fused = strides(recording)
    assert [step.loop for step in fused] == ["i_j_fused"] * 5
    # C goes on by one always; A and B now and then go to another row or back.
    assert [step.elements for step in fused] == [1, 1, None, None, 1]


def test_what_happens_once_has_no_stride() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((1,), "float32")):
        A[0] = T.float32(1)
""")
    assert badges(record(module, "main")) == {"A": ["once"]}


def test_the_product_by_itself() -> None:
    assert describe(profile(matmul(), CACHE)) == [
        "A is read with stride 1 in the innermost loop k: 4,096 accesses fetch 288 lines, "
        "93 % hit.",
        "B is read with stride 16 (a row) in the innermost loop k: 4,096 accesses fetch 4,096 "
        "lines, 0 % hit.",
        "C is read and written at the same address throughout the innermost loop k: 8,448 accesses "
        "fetch 32 lines, 99.6 % hit.",
        "In all, 73.5 % of 16,640 accesses hit, and 139 KiB are moved between cache and memory.",
    ]


def test_the_schedule_of_the_course_against_the_product() -> None:
    made = tiled(4)
    assert compare(profile(made, CACHE), profile(made.original, CACHE)) == [
        "The loops are i, j_0, k, j_1 (16, 4, 16, 4 iterations) instead of i, j, k.",
        "B is now read with stride 1 in the innermost loop j_1 instead of stride 16 (a row) in k: "
        "4 times fewer lines fetched (1,024 instead of 4,096).",
        "A is now read at the same address throughout the innermost loop j_1 instead of stride 1 "
        "in k: 3 times fewer lines fetched (96 instead of 288).",
        "C is now read and written with stride 1 in the innermost loop j_1 instead of at the same "
        "address throughout k: as many lines fetched as before (32).",
        "In all, 3.76 times fewer lines moved between cache and memory (1,184 instead of 4,448); "
        "93.1 % of the accesses hit instead of 73.5 %.",
    ]


@pytest.mark.parametrize(("factor", "times"), [(2, 2), (4, 4), (8, 8), (32, 8)])
def test_wider_tiles_fetch_fewer_lines_up_to_a_whole_one(factor: int, times: int) -> None:
    """A line holds eight elements, so eight turns of the inner loop can share it."""
    made = tiled(factor)
    sentences = compare(profile(made, CACHE), profile(made.original, CACHE))
    figures = f"{times} times fewer lines fetched ({4096 // times:,} instead of 4,096)"
    assert any(text.startswith("B is now read with") and figures in text for text in sentences)


def test_the_larger_line_saves_more() -> None:
    made = tiled(32, matmul())
    cache = Cache(64, 1024, 4)
    sentences = compare(profile(made, cache, 32), profile(made.original, cache, 32))
    assert "16 times fewer lines fetched (2,048 instead of 32,768)." in sentences[1]


def test_splitting_alone_changes_nothing() -> None:
    module = matmul()
    schedule = Schedule(module)
    loop = schedule.get_loops(schedule.get_block("C"))[1]
    schedule.split(loop, factors=[None, 4])
    made = Derivation(schedule.trace, module, schedule.mod)
    first, last = compare(profile(made, CACHE), profile(module, CACHE))
    assert first == "The loops are i, j_0, j_1, k (16, 4, 4, 16 iterations) instead of i, j, k."
    assert last.startswith("It touches the same addresses in the same order as the program")


def test_kinds_of_loops_are_told() -> None:
    module = matmul()
    schedule = Schedule(module)
    i, _, k = schedule.get_loops(schedule.get_block("C"))
    schedule.parallel(i)
    schedule.unroll(k)
    made = Derivation(schedule.trace, module, schedule.mod)
    sentences = compare(profile(made, CACHE), profile(module, CACHE))
    assert sentences[:2] == ["The loop i runs in parallel.", "The loop k is unrolled."]
    assert len(sentences) == 3


def test_new_buffers_and_those_that_are_gone() -> None:
    module = matmul()
    schedule = Schedule(module)
    schedule.cache_write(schedule.get_block("C"), 0, "global")
    made = Derivation(schedule.trace, module, schedule.mod)
    with_copy, without = profile(made, CACHE), profile(module, CACHE)
    appears = [text for text in compare(with_copy, without) if text.startswith("C_global is new")]
    assert appears == [
        "C_global is new, read and written at the same address throughout the innermost loop k: "
        "8,704 accesses, 99.3 % of them hits."
    ]
    assert "C_global is removed, and with it 8,704 accesses." in compare(without, with_copy)


PANELS = """
@I.ir_module
class Module:
    @T.prim_func
    def main(B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        for {loops} in T.grid({extents}, 16, 8):
            C[i, j_0 * 8 + j_1] = C[i, j_0 * 8 + j_1] + B[k, j_0 * 8 + j_1]
"""


def test_lines_that_are_still_there_are_the_reason() -> None:
    """With j_0 outermost, the panel of B that a tile needs stays for all of i."""
    rows_first = from_source(PANELS.format(loops="i, j_0, k, j_1", extents="16, 2"))
    panels_first = from_source(PANELS.format(loops="j_0, i, k, j_1", extents="2, 16"))
    cache = Cache(32, 768, 0)
    sentences = compare(profile(panels_first, cache), profile(rows_first, cache))
    assert sentences[1] == (
        "B is read with stride 1 in the innermost loop j_1 as before, but 16 times fewer lines "
        "fetched (32 instead of 512), because they are still there when they are used again."
    )
