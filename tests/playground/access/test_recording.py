"""Recorded accesses: the order that the program says, worked out by hand."""

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground.access.recording import record
from mlcweb.schedule import Schedule
from mlcweb.script import from_source
from tests.playground.access.profiles import ordered_matmul, small_recording, tiled
from tests.programs import matmul, matmul_relu

N = 4
Accesses = list[tuple[str, int]]


def update(i: int, j: int, k: int, n: int = N) -> Accesses:
    """`C[i, j] = C[i, j] + A[i, k] * B[k, j]`: values are read from left to right, then written."""
    c = ("C", i * n + j)
    return [c, ("A", i * n + k), ("B", k * n + j), c]


def test_the_order_of_ijk() -> None:
    expected = [
        access for i in range(N) for j in range(N) for k in range(N) for access in update(i, j, k)
    ]
    assert record(ordered_matmul("i, j, k"), "main").elements() == expected


def test_the_order_of_ikj() -> None:
    expected = [
        access for i in range(N) for k in range(N) for j in range(N) for access in update(i, j, k)
    ]
    recording = record(ordered_matmul("i, k, j"), "main")
    assert recording.elements() == expected
    assert recording.elements()[:8] == [
        ("C", 0), ("A", 0), ("B", 0), ("C", 0), ("C", 1), ("A", 0), ("B", 1), ("C", 1),
    ]  # fmt: skip


def test_the_order_of_a_tiled_product_with_its_zeros_before() -> None:
    expected: Accesses = []
    for i in range(8):
        for j_0 in range(2):
            expected += [("C", i * 8 + j_0 * 4 + j_1) for j_1 in range(4)]
            for k in range(8):
                for j_1 in range(4):
                    expected += update(i, j_0 * 4 + j_1, k, 8)
    recording = small_recording(tiled(4), 8)
    assert recording.elements() == expected
    assert recording.unfinished is None


def test_blocks_set_to_zero_where_the_reduction_starts() -> None:
    recording = small_recording(matmul(), 4)
    zeros = [place for place, site in enumerate(recording.site) if site == 0]
    assert recording.sites[0].write
    assert recording.sites[0].text == "C[vi, vj]"
    assert recording.element[zeros].tolist() == list(range(16))
    assert recording.elements()[:5] == [("C", 0), *update(0, 0, 0)]


def test_each_access_knows_its_line_and_its_loops() -> None:
    recording = small_recording(tiled(4), 8)
    lines = recording.listing.text.split("\n")
    for site in recording.sites:
        assert site.text in lines[site.line - 1]
    last = recording.sites[-1]
    assert [loop.name for loop in last.loops] == ["i", "j_0", "k", "j_1"]
    assert recording.point[-1] == 8 * 2 * 8 * 4 - 1  # The last of all iterations.


def test_buffers_lie_one_after_another_in_aligned_memory() -> None:
    recording = small_recording(matmul_relu(), 15)
    places = [(place.name, place.base) for place in recording.places]
    # 15 * 15 elements of 4 bytes are 900 bytes; the next multiple of 64 is 960.
    assert places == [("A", 0), ("B", 960), ("C", 1920), ("Y", 2880)]
    first_of_b = [name for name, _ in recording.elements()].index("B")
    assert recording.addresses[first_of_b] == 960


def test_copies_into_other_memory_are_recorded() -> None:
    schedule = Schedule(ordered_blocks())
    schedule.cache_read(schedule.get_block("B"), 0, "local")
    recording = record(schedule.mod, "main")
    assert recording.elements() == [
        *((name, i) for i in range(4) for name in ("A", "A_local")),
        *((name, i) for i in range(4) for name in ("A_local", "B")),
    ]


def ordered_blocks():
    return from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)
""")


def test_views_are_seen_in_the_memory_that_they_lie_over() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                inner = T.match_buffer(A[2:4, 1:3], (2, 2), strides=(4, 1), offset_factor=1)
                B[vi, vj] = inner[vi, vj]
""")
    recording = record(module, "main")
    reads = [element for name, element in recording.elements() if name == "A"]
    assert reads == [2 * 4 + 1, 2 * 4 + 2, 3 * 4 + 1, 3 * 4 + 2]


def test_indices_that_are_read_count_before_what_they_lead_to() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), I: T.Buffer((4,), "int32"),
             B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[I[i]]
""")
    names = [name for name, _ in record(module, "main").elements()]
    assert names == ["I", "A", "B"] * 4


def test_vectors_are_recorded_element_by_element() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(2):
            B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
""")
    expected = [(name, 4 * i + lane) for i in range(2) for name in ("A", "B") for lane in range(4)]
    assert record(module, "main").elements() == expected


def test_a_long_run_ends_at_the_limit() -> None:
    recording = record(matmul(), "main", max_accesses=1000)
    assert len(recording.site) == 1000
    assert recording.unfinished == "after 1,000 accesses"
    assert recording.elements()[:2] == [("C", 0), ("C", 0)]


def test_a_slow_run_ends_in_time() -> None:
    recording = record(matmul(), "main", max_seconds=-1.0)
    assert recording.unfinished == "after -1 seconds"
    assert len(recording.site) == 0


def test_what_leaves_its_buffer_is_refused() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i + 1]
""")
    with pytest.raises(TVMError, match=r"Reading A\[4\] is out of bounds"):
        record(module, "main")


def test_bfloat16_is_accessed_as_other_types() -> None:
    source = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "DTYPE"), C: T.Buffer((4,), "DTYPE")):
        B = T.alloc_buffer((4,), "DTYPE")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.DTYPE(1.5)
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = T.exp(B[vi])
"""
    narrow, wide = (
        record(from_source(source.replace("DTYPE", dtype)), "main").elements()
        for dtype in ("bfloat16", "float32")
    )
    assert narrow == wide
