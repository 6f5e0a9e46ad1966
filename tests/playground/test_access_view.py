"""The accesses of a program as the page gets them."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import access_view, bridge, cell
from mlcweb.playground.protocol.access import AccessSize, CacheSettings
from tests.playground.conftest import PROGRAM

Run = Callable[[str], Any]

SCHEDULE = """
sch = tvm.tir.Schedule(MyModule)
block = sch.get_block("C")
i, j, k = sch.get_loops(block)
j_0, j_1 = sch.split(j, [None, 4])
sch.mod.show()
sch.reorder(i, j_0, k, j_1)
sch.decompose_reduction(block, k)
"""


def run_large(source: str) -> list[str]:
    """Run a program of 128 instead of 16; the identifiers of its programs."""
    result = cell.execute(PROGRAM.replace("16", "128") + source)
    assert result.ok
    return [program.id for program in result.programs]


def unpacked(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def test_a_scheduled_module_is_compared_with_its_start() -> None:
    start, between, final = run_large(SCHEDULE)
    report = access_view.explain(final)
    assert report.other == start
    assert report.size == AccessSize(
        16,
        "Shown at a smaller size (128 → 16), with the same schedule.",
    )
    assert report.result.sentences[1].startswith(
        "B is now read with stride 1 in the innermost loop j_1 instead of stride 16 (a row) in k: "
        "4 times fewer lines fetched"
    )
    assert report.result.other.accesses == 16640
    assert access_view.explain(between).other == start
    assert access_view.explain(start).other is None
    assert access_view.explain(start).result.other is None


def test_the_steps_of_the_schedule_can_be_compared_with() -> None:
    *_, final = run_large(SCHEDULE)
    report = access_view.explain(final)
    assert [step.title for step in report.steps] == [
        "after step 3, split",
        "after step 4, reorder",
    ]
    split, reordered = (step.id for step in report.steps)
    after_split = access_view.simulate(final, "main", split, 16).sentences
    assert after_split[0] == (
        "The loops are i, j_0, k, j_1 (16, 4, 16, 4 iterations) instead of i, j_0, j_1, k."
    )
    after_reorder = access_view.explain(final, other_id=reordered).result.sentences
    # What is left are the zeros, which are now written in a loop of their own.
    assert [text for text in after_reorder if text.startswith(("A is", "B is"))] == []


def test_the_streams_tell_the_same_as_the_table() -> None:
    *_, final = run_large(SCHEDULE)
    report = access_view.explain(final, cache=CacheSettings(64, 256, 0))
    site = unpacked(report.stream.site, "<u2")
    element = unpacked(report.stream.element, "<u4")
    hit = unpacked(report.result.hit, "u1")
    evicted = unpacked(report.result.evicted, "<i4")
    assert len(site) == len(element) == len(hit) == len(evicted) == report.stream.count
    for number, (place, row) in enumerate(zip(report.sites, report.result.rows, strict=True)):
        mine = site == number
        assert (mine.sum(), hit[mine].sum()) == (row.accesses, row.hits)
        shape = report.buffers[place.buffer].shape
        assert element[mine].max() < shape[0] * shape[1]
        assert place.text in report.lines[place.line - 1]
    total = report.result.total
    assert total.accesses - total.hits == total.fetched == (hit == 0).sum()
    assert total.bytes == 64 * (total.fetched + total.written)
    # With one set of four lines, all misses but the first four push a line out.
    assert (evicted >= 0).sum() == total.fetched - 4


def test_another_cache_needs_no_new_run() -> None:
    start, *_ = run_large("")
    first = access_view.explain(start, size=16)
    wide = access_view.simulate(start, "main", None, 16, CacheSettings(64, 4096, 0))
    assert wide.total.fetched == wide.total.first == 3 * 1024 // 64
    assert wide.total.fetched < first.result.total.fetched
    with pytest.raises(TVMError, match="no whole number of lines"):
        access_view.simulate(start, "main", None, 16, CacheSettings(64, 32, 0))


def test_a_program_can_be_looked_at_as_it_is() -> None:
    start, *_ = run_large("")
    report = access_view.explain(start, size=0)
    assert report.size.most == 0
    assert report.size.note == (
        "This is the program as it is. It was ended after 200,000 accesses."
    )
    assert report.buffers[0].shape == [128, 128]
    assert report.operations is None
    assert [site.badge for site in report.sites][3] == "stride 128"


@pytest.mark.parametrize("size", [40, 100])
def test_sizes_that_are_written_into_indices_are_said(run: Run, size: int) -> None:
    programs = run(f"""
@T.prim_func
def reverse(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):
    for i in range({size}):
        with T.block("B"):
            vi = T.axis.spatial({size}, i)
            B[vi] = A[{size - 1} - vi]
""").programs
    report = access_view.explain(programs[-1].id)
    assert report.size.note == (
        "This is the program as it is, since there is no smaller one like it: the number "
        f"{size - 1} stands in an index or a condition."
    )
    assert report.stream.count == 2 * size
    assert report.sites[0].badge == "stride -1"


def test_a_small_program_runs_as_it_is(run: Run) -> None:
    report = access_view.explain(run("").programs[0].id)
    assert report.size == AccessSize(0, "The program is small as it is.")
    assert report.operations == 2 * 16**3


def test_programs_of_other_sizes_are_not_confused(run: Run) -> None:
    result = run("""
@T.prim_func
def scale(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), s: T.float32):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * s
""")
    product, scale = (program.id for program in result.programs)
    report = access_view.explain(product, other_id=scale)
    assert report.result.other is None
    assert report.result.sentences[0].startswith("The other program cannot be compared: ")
    with pytest.raises(TVMError, match="takes more than buffers"):
        access_view.explain(scale)


def test_the_page_gets_plain_json() -> None:
    *_, final = run_large(SCHEDULE)
    answer = asyncio.run(bridge.call("access_view.explain", json.dumps([final])))
    value = json.loads(answer)["value"]
    arguments = [
        final,
        "main",
        value["other"],
        value["size"]["most"],
        {"line": 32, "size": 1024, "ways": 8},
    ]
    again = asyncio.run(bridge.call("access_view.simulate", json.dumps(arguments)))
    assert json.loads(again)["value"]["rows"][0]["accesses"] == 256


def test_a_program_of_an_earlier_run_is_refused() -> None:
    with pytest.raises(TVMError, match="earlier run"):
        access_view.explain("p999")
