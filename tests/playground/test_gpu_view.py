"""The kernels of a program as the page gets them."""

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import cell, gpu_view
from mlcweb.playground.session import session
from mlcweb.playground.source_lines import listing
from tests.playground.conftest import PROGRAM

SCHEDULES = """
def bound(across, along):
    sch = tvm.tir.Schedule(MyModule)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, [None, 32])
    j_0, j_1 = sch.split(j, [None, 32])
    sch.reorder(i_0, j_0, i_1, j_1, k)
    sch.bind(i_0, "blockIdx.y")
    sch.bind(j_0, "blockIdx.x")
    sch.bind(i_1, along)
    sch.bind(j_1, across)
    return sch

def shared():
    sch = bound("threadIdx.x", "threadIdx.y")
    block = sch.get_block("C")
    i_0, j_0, i_1, j_1, k = sch.get_loops(block)
    k_0, k_1 = sch.split(k, [None, 32])
    result = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(result, j_1)
    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k_0)
        row, column = sch.get_loops(copy)[-2:]
        sch.bind(row, "threadIdx.y")
        sch.bind(column, "threadIdx.x")
    return sch
"""


def run(source: str) -> list[str]:
    """Run a program of 128 instead of 16 and its schedules; the identifiers of its programs."""
    result = cell.execute(PROGRAM.replace("16", "128") + SCHEDULES + source)
    assert result.ok
    return [program.id for program in result.programs]


def test_an_access_by_columns_against_one_by_rows() -> None:
    *_, columns, rows = run(
        "columns = bound('threadIdx.y', 'threadIdx.x').mod\n"
        "rows = bound('threadIdx.x', 'threadIdx.y').mod\n"
    )
    report = gpu_view.explain(columns)
    (kernel,) = report.kernels
    assert (kernel.grid, kernel.block) == ([4, 4, 1], [32, 32, 1])
    assert [(axis.tag, axis.loop) for axis in kernel.axes][-1] == ("threadIdx.x", "i_1")
    cost = {(site.text, site.kind): site.cost for site in kernel.sites}
    assert cost["A[vi, vk]", "load"].most == 32
    assert cost["B[vk, vj]", "load"].most == 1
    assert report.sentences[0] == (
        "A warp makes 32 transactions for C[vi, vj] where 4 would do: threads next to each other "
        "(loop i_1, threadIdx.x) are 128 elements apart."
    )
    report = gpu_view.explain(rows)
    assert report.other == columns
    assert report.sentences[0] == (
        "C: 8 times fewer transactions (526,336 instead of 4,210,688), because j_1 is bound to "
        "threadIdx.x: threads next to each other are 1 element apart, and were 128 elements apart."
    )
    assert report.sentences[-1] == (
        "Every access to global memory is coalesced: no warp makes more transactions than its "
        "bytes need."
    )
    assert gpu_view.explain(rows, other_id=None).sentences[-1] == (
        "In all, warps make 854,016 transactions of 32 bytes with global memory."
    )


def test_a_program_with_shared_memory() -> None:
    *_, plain, tiled = run(
        "plain = bound('threadIdx.x', 'threadIdx.y').mod\nsch = shared()\ntiled = sch.mod\n"
    )
    report = gpu_view.explain(tiled, other_id=plain)
    (kernel,) = report.kernels
    assert kernel.shared_bytes == 2 * 32 * 32 * 4
    assert [(step.kind, step.depth, step.times) for step in kernel.steps] == [
        ("loop", 0, 1),
        ("barrier", 1, 4),
        ("phase", 1, 4),
        ("barrier", 1, 4),
        ("phase", 1, 4),
        ("phase", 0, 1),
    ]
    assert kernel.steps[0].loop == "k_0, 4 iterations"
    phases = [[kernel.sites[n].text for n in step.sites] for step in kernel.steps if step.sites]
    assert phases == [
        ["A[v0, v1]", "A_shared[v0, v1]", "B[v0, v1]", "B_shared[v0, v1]"],
        ["A_shared[vi, vk]", "B_shared[vk, vj]"],
        ["C[v0, v1]"],
    ]
    lines = listing(session.program(tiled)[1]["main"]).text.split("\n")
    assert all(site.text in lines[(site.line or 0) - 1] for site in kernel.sites)
    fetch = kernel.fetches[0]
    assert (fetch.buffer, fetch.columns) == ("A_shared", 32)
    assert fetch.threads == list(range(1024))
    assert fetch.sentence == (
        "All 1024 threads of a block fetch 1,024 elements of A into A_shared, 1 each, in 1 step."
    )
    assert (
        "B: 32 times fewer transactions (8,192 instead of 262,144), because a block fetches it "
        "into B_shared once, and its threads read it there (2,048 requests of warps instead of "
        "65,536)." in report.sentences
    )
    # What a step on the way made can be compared with, too, once loops are bound.
    assert report.steps[0].title == "after step 6, bind"
    assert gpu_view.explain(tiled, other_id=report.steps[3].id).sentences[0].startswith("C: ")


def test_the_lanes_of_a_warp() -> None:
    *_, columns = run("columns = bound('threadIdx.y', 'threadIdx.x').mod\n")
    texts = [site.text for site in gpu_view.explain(columns).kernels[0].sites]
    lanes = gpu_view.lanes(columns, "main", 0, texts.index("A[vi, vk]"), 3)
    assert lanes.addresses == [512 * lane for lane in range(32)]
    assert lanes.sentence == "All 32 lanes take part: 32 transactions of 32 bytes."
    # Warp 3 has j_1 = 3.
    lanes = gpu_view.lanes(columns, "main", 0, texts.index("B[vk, vj]"), 3)
    assert set(lanes.addresses) == {12}
    assert lanes.sentence == "All 32 lanes take part: 1 transaction of 32 bytes."


def test_occupancy_for_a_gpu() -> None:
    *_, tiled = run("tiled = shared().mod\n")
    pascal = gpu_view.occupancy(tiled, "main", 0, "nvidia/tesla-p100")
    assert (pascal.warps, pascal.most) == (64, 64)
    assert pascal.sentence == (
        "A multiprocessor holds 2 blocks of 32 warps at a time, 100 % of its 64 warps; the limit "
        "is warps. The launch has 16 blocks; the whole GPU holds 112 at a time."
    )
    greedy = gpu_view.occupancy(tiled, "main", 0, "nvidia/tesla-p100", 80)
    assert (greedy.limits[0].blocks, greedy.limits[0].name) == (0, "registers")
    assert greedy.sentence.startswith("Not even one block fits")
    unknown = gpu_view.occupancy(tiled, "main", 0, "nvidia/quadro-k420")
    assert unknown.peak is None and unknown.bandwidth is None


def test_what_to_do_where_nothing_is_bound() -> None:
    start, *_ = run("")
    report = gpu_view.explain(start)
    assert report.kernels == []
    assert report.problem.startswith("No loop of main is bound to threads. Bind loops")
    assert report.other is None


def test_a_program_that_cannot_run_in_threads_says_why() -> None:
    *_, partly = run(
        "sch = tvm.tir.Schedule(MyModule)\n"
        "sch.bind(sch.get_loops('C')[0], 'threadIdx.x')\n"
        "sch.decompose_reduction('C', sch.get_loops('C')[2])\n"
        "sch.mod['main'].show()\npartly = sch.mod\n"
    )
    report = gpu_view.explain(partly)
    assert report.kernels and not report.problem
    with pytest.raises(TVMError, match="earlier run"):
        gpu_view.explain("p0")
