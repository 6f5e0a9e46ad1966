"""Each pass of the lowering, and the record that it leaves."""

import itertools

import numpy as np
import pytest

from mlcweb.ir import TVMError, assert_structural_equal
from mlcweb.lower import PASSES, lower, record_lowering, specialize, transform
from mlcweb.lower.compact_buffers import compact_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.place_allocations import place_allocations
from mlcweb.lower.simplify import simplify
from mlcweb.runtime import build, nd
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.programs import matmul, matmul_relu


def body_of(func) -> list[str]:
    """The lines of a function's body, without its header."""
    lines = func.script().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))
    kept = [line[4:] for line in lines[start + 1 :] if "func_attr" not in line]
    return [line for line in kept if line]


def tiled_matmul():
    """A 32x32 product whose 8x8 tiles are summed up in a buffer of their own."""
    sch = Schedule(
        from_source(
            """
@T.prim_func
def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"),
         C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
        )
    )
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [4, 8])
    j0, j1 = sch.split(j, [4, 8])
    sch.reorder(i0, j0, k, i1, j1)
    written = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(written, j0)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k)
    return sch.mod["main"]


def test_init_becomes_a_condition_on_the_reduction_axes():
    block = lower_init_block(matmul()["main"])
    assert "if vk == 0:" in block.script()
    assert "T.init()" not in block.script()


def test_blocks_become_loops():
    func = convert_blocks_to_loops(lower_init_block(matmul()["main"]))
    assert body_of(func) == [
        "for i, j, k in T.grid(128, 128, 128):",
        "    if k == 0:",
        "        C[i, j] = T.float32(0)",
        "    C[i, j] = C[i, j] + A[i, k] * B[k, j]",
    ]


def test_predicates_become_conditions():
    sch = Schedule(matmul_relu())
    (i, _) = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 4])
    func = convert_blocks_to_loops(lower_init_block(sch.mod["main"]))
    assert "if i_0 * 4 + i_1 < 30:" in func.script()


def test_matched_buffers_become_accesses_of_what_they_view():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes(A[vi, 2:6])
            s = T.int32()
            row = T.match_buffer(A[vi, 2:6], (4,), strides=[s], offset_factor=1)
            for j in range(4):
                row[j] = T.float32(1)
            T.evaluate(T.call_extern("f", row.access_ptr("w"), s, dtype="int32"))
"""
    )
    text = convert_blocks_to_loops(func).script()
    assert "A[i, 2 + j] = T.float32(1)" in text or "A[i, j + 2] = T.float32(1)" in text
    assert "A.data" in text
    assert "row" not in text


CALL = 'T.call_extern("int32", "f", rows.elem_offset)'


def test_views_of_views_are_parts_of_what_they_are_of():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((8, 8, 8), "float32")):
    for i, j in T.grid(8, 2):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            tile = T.match_buffer(A[vi, vj * 4 : vj * 4 + 4, 2:6], (4, 4), offset_factor=1)
            for k in range(2):
                with T.block("rows"):
                    vk = T.axis.spatial(2, k)
                    rows = T.match_buffer(tile[vk * 2 : vk * 2 + 2, 0:4], (2, 4), offset_factor=1)
                    for r, c in T.grid(2, 4):
                        rows[r, c] = T.float32(1)
                    T.evaluate(T.call_extern("f", rows.elem_offset, dtype="int32"))
"""
    )
    text = simplify(convert_blocks_to_loops(func)).script()
    assert "rows" not in text and "tile" not in text
    assert CALL.replace("rows.elem_offset", "i * 64 + j * 32 + k * 16 + 2") in text
    func = from_source(func.script().replace(CALL, "T.evaluate(0)"))
    for program, target in ((func, "interpreter"), (lower(func), "numpy")):
        array = nd.array(np.zeros((8, 8, 8), "float32"))
        build(program, target)(array)
        assert array.numpy()[:, :, 2:6].all() and array.numpy().sum() == 256


def test_tile_buffers_move_into_the_loops_and_shrink_to_the_tile():
    func = lower(tiled_matmul())
    allocation = [line for line in body_of(func) if "T.decl_buffer" in line or "alloc" in line]
    assert len(allocation) == 1
    assert "(64,)" in allocation[0]
    assert allocation[0].startswith("    ")


LIVE = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((8,), "float32")
    for i in range(8):
        {statements}
"""


@pytest.mark.parametrize(
    ("statements", "sinks"),
    [
        ("Y[i] = A[i]\n        B[i] = Y[i]", True),
        ("Y[0] = A[i]\n        B[i] = Y[0]", True),
        ("B[i] = Y[i]\n        Y[i] = A[i]", False),
        ("Y[i] = A[i]\n        B[i] = Y[0]", False),
        ("if i == 0:\n            Y[0] = A[0]\n        B[i] = Y[0]", False),
        ("for k in range(8):\n            Y[k] = A[k]\n        B[i] = Y[7 - i]", True),
        ("for k in range(7):\n            Y[k] = A[k]\n        B[i] = Y[7 - i]", False),
        (
            "for k in range(8):\n            if k == 0:\n                Y[i] = T.float32(0)\n"
            "            Y[i] = Y[i] + A[k]\n        B[i] = Y[i]",
            True,
        ),
        (
            "for k in range(8):\n            if k == 1:\n                Y[i] = T.float32(0)\n"
            "            Y[i] = Y[i] + A[k]\n        B[i] = Y[i]",
            False,
        ),
        # So says the init of a reduction whose loops have one iteration.
        ("if T.EQ(0, 0):\n            Y[0] = A[i]\n        B[i] = Y[0]", True),
        # The inner loop has no iteration where k is 0.
        (
            "if i == 0:\n            Y[0] = A[0]\n        for k in range(8):\n"
            "            for j in range(k):\n                if k == 0:\n"
            "                    Y[0] = T.float32(1)\n                B[i] = Y[0]",
            False,
        ),
        ("Y[0] = A[i]\n        with T.LetStmt(Y[0]) as v:\n            B[i] = v + Y[0]", True),
    ],
)
def test_an_allocation_enters_a_loop_only_if_nothing_is_carried_along(statements, sinks):
    func = from_source(LIVE.format(statements=statements))
    func = place_allocations(convert_blocks_to_loops(func))
    assert (body_of(func)[0].startswith("for")) is sinks


@pytest.mark.parametrize(
    ("start", "loops"),
    [("k >= 0", "ijk"), ("k == 0", "ij"), ("j == 0", "i"), ("j + k == 0", "i"), ("i == 0", "")],
)
def test_an_allocation_enters_as_many_loops_of_a_nest_as_it_may(start, loops):
    func = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((4, 8, 16), "float32"), B: T.Buffer((4, 8, 16), "float32")):
    Y = T.alloc_buffer((1,), "float32")
    for i in range(4):
        for j in range(8):
            for k in range(16):
                if {start}:
                    Y[0] = T.float32(0)
                Y[0] = Y[0] + A[i, j, k]
                B[i, j, k] = Y[0]
"""
    )
    lines = body_of(place_allocations(simplify(convert_blocks_to_loops(func))))
    place = next(n for n, line in enumerate(lines) if "decl_buffer" in line)
    around = {"": [], "i": ["for i in range(4):"]}.get(
        loops, [f"for {', '.join(loops)} in T.grid("]
    )
    assert len(lines[:place]) == len(around)
    assert all(line.startswith(text) for line, text in zip(lines, around, strict=False))


@pytest.mark.parametrize(("copied", "sinks"), [(10, True), (9, False)])
def test_an_allocation_enters_a_loop_whose_guarded_stores_cover_what_it_reads(copied, sinks):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 10), "float32"), C: T.Buffer((8, 10), "float32")):
    S = T.decl_buffer((8, 10))
    for i in range(8):
        for j, k in T.grid(3, 4):
            if j * 4 + k < {copied}:
                S[0, j * 4 + k] = A[i, j * 4 + k]
        for j in range(10):
            C[i, j] = S[0, 9 - j]
""")
    assert body_of(place_allocations(func))[0].startswith("for") is sinks


@pytest.mark.parametrize(("read", "sinks"), [(10, True), (11, False)])
def test_an_allocation_enters_a_loop_whose_guarded_reads_end_with_the_stores(read, sinks):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((14,), "float32"), C: T.Buffer((12, 3), "float32")):
    S = T.decl_buffer((14,))
    for i in range(4):
        for j in range(5):
            if i * 3 + j < 12:
                S[i * 3 + j] = A[i * 3 + j]
        for k, r in T.grid(3, 3):
            if i * 3 + k < {read}:
                C[i * 3 + k, r] = S[i * 3 + k + r]
""")
    assert body_of(place_allocations(func))[0].startswith("for") is sinks


def test_unused_allocations_disappear():
    func = from_source(LIVE.format(statements="B[i] = A[i]"))
    assert body_of(place_allocations(convert_blocks_to_loops(func)))[0].startswith("for")


def test_buffers_shrink_to_the_box_that_is_touched():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    Y = T.alloc_buffer((64, 64), "float32")
    for i, j in T.grid(4, 8):
        Y[i + 3, j * 2] = A[i * 8 + j]
    for i, j in T.grid(4, 8):
        B[i * 8 + j] = Y[i + 3, j * 2]
"""
    )
    func = compact_buffers(convert_blocks_to_loops(func))
    assert "(4, 15)" in body_of(func)[0]
    assert "Y[i, j * 2] = A[i * 8 + j]" in simplify(func).script()


def test_flat_indices_use_strides_and_offset():
    func = from_source(
        """
@T.prim_func
def main(a: T.handle):
    A = T.match_buffer(a, (4, 8), "float32", strides=[16, 2], elem_offset=3)
    for i, j in T.grid(4, 8):
        A[i, j] = T.float32(1)
"""
    )
    text = simplify(flatten_buffers(convert_blocks_to_loops(func))).script()
    assert "[i * 16 + j * 2 + 3] = T.float32(1)" in text


def test_vector_indices_stay_vectors_when_flat():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32")):
    for i in range(4):
        A[i, 0:8] = T.Broadcast(T.float32(2), 8)
"""
    )
    flat = lower(func)
    assert "T.Broadcast(T.float32(2), 8)" in flat.script()
    array = nd.array(np.zeros((4, 8), "float32"))
    build(flat, "interpreter")(array)
    assert (array.numpy() == 2).all()


def test_simplify_decides_conditions_by_the_loops_around_them():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((64,), "int32")):
    for i, j in T.grid(4, 16):
        if i * 16 + j < 64:
            A[i * 16 + j] = (i * 16 + j) // 16
        if i > 5:
            A[0] = 0
    for u in range(1):
        A[u] = u
"""
    )
    assert body_of(simplify(convert_blocks_to_loops(func))) == [
        "for i, j in T.grid(4, 16):",
        "    A[i * 16 + j] = i",
        "A[0] = 0",
    ]


def test_loop_kinds_and_annotations_survive():
    sch = Schedule(matmul())
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.parallel(i)
    sch.annotate(i, "pragma_auto_unroll_max_step", 16)
    text = lower(sch.mod["main"]).script()
    assert 'T.parallel(128, annotations={"pragma_auto_unroll_max_step": 16})' in text


def test_the_record_shows_each_step():
    func = tiled_matmul()
    records = record_lowering(func)
    assert [record.name for record in records] == [run.name.removeprefix("tir.") for run in PASSES]
    assert records[0].before is func
    for earlier, later in itertools.pairwise(records):
        assert later.before is earlier.after
    assert_structural_equal(records[-1].after, lower(func))
    assert not records[0].changed
    assert records[1].changed
    assert all(record.seconds >= 0 for record in records)


def test_lowering_keeps_the_numbers():
    func = tiled_matmul()
    generator = np.random.default_rng(3)
    a, b = (generator.random((32, 32), "float32") for _ in range(2))
    c = nd.empty((32, 32))
    build(lower(func), "interpreter")(nd.array(a), nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_specialize_sets_sizes():
    func = from_source(
        """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, n * 2), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi, vi + n]
"""
    )
    n = func.parameter_buffers[0].shape[0]
    text = specialize(func, {n: 4}).script()
    assert "A: T.Buffer((4, 8)" in text
    assert "for i in range(4):" in text
    assert "A[vi, vi + 4]" in text


def test_a_flat_index_fits_its_type():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((65536, 65536), "int8")):
    A[0, 0] = T.int8(1)
""")
    with pytest.raises(TVMError, match='"A" has 4294967296 elements, more than an index of int32'):
        lower(func)


ALLOCATED = """
@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((65536, 65536), "int8")
    for i in range(4):
        B[PLACE, 65535 - i] = T.Cast("int8", i)
    for i in range(4):
        A[i] = A[i] + T.Cast("int32", B[PLACE, 65535 - i])
"""


def test_a_flat_index_of_allocated_memory_fits_its_type():
    """What is left of a buffer counts, after elements that nobody touches are gone."""
    compact = from_source(ALLOCATED.replace("PLACE", "65535"))
    assert "B = T.decl_buffer((4,)" in lower(compact).script()
    a = nd.array(np.arange(4, dtype="int32"))
    build(compact, "wasm")["main"](a)
    assert a.numpy().tolist() == [0, 2, 4, 6]
    with pytest.raises(TVMError, match=r'"B" has .* elements, more than an index of int32'):
        lower(from_source(ALLOCATED.replace("PLACE, 65535 - i", "A[i], A[3 - i]")))


def test_strides_that_reach_beyond_the_index_type_are_refused():
    far = 'A: T.Buffer((4096,), "int8", strides=(1048576,))'
    source = """
@T.prim_func
def main(A: T.Buffer((4096,), "int8"), B: T.Buffer((4,), "int8")):
    for i in range(4):
        B[i] = A[i]
"""
    with pytest.raises(TVMError, match='"A" has 4294967296 elements, more than an index of int32'):
        lower(from_source(source.replace('A: T.Buffer((4096,), "int8")', far)))
    wide = far.replace("4096", "T.int64(4096)")
    flat = lower(from_source(source.replace('A: T.Buffer((4096,), "int8")', wide)))
    assert "(T.int64(4294967296),)" in flat.script()


def test_a_view_of_smaller_elements_has_all_of_the_memory_or_is_refused():
    source = """
@T.prim_func
def main(A: T.Buffer((EXTENT,), "float64"), B: T.Buffer((4,), "int8")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            V = T.match_buffer(A[vi], (), "float64", offset_factor=1)
            B[vi] = T.Cast("int8", V[()])
    for i in range(4):
        C = T.decl_buffer((2,), "int8", data=A.data, elem_offset=i)
        C[0] = C[1]
"""
    assert '(800,), "int8"' in lower(from_source(source.replace("EXTENT", "100"))).script()
    with pytest.raises(TVMError, match='"C" has 4294967296 elements'):
        lower(from_source(source.replace("EXTENT", "536870912")))


def test_what_is_printed_of_lowered_programs_is_read_back():
    for func in (matmul_relu()["main"], tiled_matmul()):
        lowered = lower(func)
        assert "A_1 = T.Buffer((" in lowered.script()
        assert_structural_equal(from_source(lowered.script()), lowered)


VIEW = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 2):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            V = T.match_buffer(A[vi, vj * 4:vj * 4 + 4], (4,), LAYOUT)
            for k in range(4):
                V[k] = T.float32(1)
"""


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("elem_offset=0", r"has elem_offset 0, but its region has v?i \* 8 \+ v?j \* 4"),
        ("strides=[2], offset_factor=1", "has strides 2, but its region has 1"),
        ("offset_factor=8", r"has elem_offset % offset_factor 0, but"),
    ],
)
def test_a_view_that_says_another_layout_than_its_region_has_is_refused(layout, reason):
    for run in (lower, transform.LowerMatchBuffer()):
        with pytest.raises(TVMError, match=reason):
            run(from_source(VIEW.replace("LAYOUT", layout)))


@pytest.mark.parametrize("layout", ["offset_factor=4", "strides=[1], offset_factor=1"])
def test_a_view_whose_layout_is_that_of_its_region_is_lowered(layout):
    lowered = lower(from_source(VIEW.replace("LAYOUT", layout)))
    assert "A_1[i * 8 + j * 4 + k] = T.float32(1)" in lowered.script()


def test_declared_views_are_flat_as_well():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 4), "int32")):
    B = T.decl_buffer((4, 5), "int32")
    C = T.decl_buffer((4, 4), "int32", data=B.data, strides=[5, 1])
    for i, j in T.grid(4, 4):
        C[i, j] = A[i, j] * 2
    for i, j in T.grid(4, 4):
        A[j, i] = B[i, j] + C[j, i]
""")
    flat = flatten_buffers(func)
    assert 'C = T.decl_buffer((20,), "int32", data=B.data)' in flat.script()
    outputs = []
    for each in (func, flat):
        array = nd.array(np.arange(16, dtype="int32").reshape(4, 4))
        build(each, "interpreter")(array)
        outputs.append(array.numpy().tolist())
    assert outputs[0] == outputs[1]
