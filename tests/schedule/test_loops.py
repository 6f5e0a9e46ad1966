"""split, fuse, reorder: what they make and what they refuse."""

import numpy as np
import pytest

from mlcweb.arith import Analyzer
from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.schedule.errors import FactorError, LoopError, StaleReferenceError
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import Schedule
from tests.programs import matmul, matmul_relu
from tests.schedule.case_files import module, outputs, random_inputs

ROWS = """
@T.prim_func
def main(A: T.Buffer((30, 8), "float32"), B: T.Buffer((30, 8), "float32")):
    for i, j in T.grid(30, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""


def rows():
    return Schedule(from_source(ROWS))


def body_of(sch):
    """The lines of the function's body, without the indentation of the function."""
    lines = sch.mod.script().split('# with T.block("root"):\n')[1].splitlines()
    return "\n".join(line.removeprefix("        ") for line in lines if line.strip())


def test_split_that_does_not_divide_gets_a_predicate():
    sch = rows()
    i, _ = sch.get_loops("B")
    sch.split(i, [None, 8])
    assert (
        body_of(sch)
        == """\
for i_0, i_1, j in T.grid(4, 8, 8):
    with T.block("B"):
        vi = T.axis.spatial(30, i_0 * 8 + i_1)
        vj = T.axis.spatial(8, j)
        T.where(i_0 * 8 + i_1 < 30)
        T.reads(A[vi, vj])
        T.writes(B[vi, vj])
        B[vi, vj] = A[vi, vj] + T.float32(1)"""
    )


def test_fuse_and_split_again():
    sch = rows()
    fused = sch.fuse(*sch.get_loops("B"))
    outer, inner = sch.split(fused, [None, 16])
    sch.vectorize(inner)
    assert (
        body_of(sch)
        == """\
for i_j_fused_0 in range(15):
    for i_j_fused_1 in T.vectorized(16):
        with T.block("B"):
            vi = T.axis.spatial(30, (i_j_fused_0 * 16 + i_j_fused_1) // 8)
            vj = T.axis.spatial(8, (i_j_fused_0 * 16 + i_j_fused_1) % 8)
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + T.float32(1)"""
    )


def test_reorder_of_some_loops_leaves_the_others():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i)
    order = [sch.get(loop).loop_var.name for loop in sch.get_loops("C")]
    assert order == ["k", "j", "i"]


CLAMPED = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16, 4), "float32")):
    for i, j, k in T.grid(16, 16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            vk = T.axis.spatial(4, T.min(k, 2))
            C[vi, vj, vk] = A[vi, vj] * T.float32(2)
"""


def test_reorder_asks_of_the_iterators_that_its_loops_drive_alone():
    before = module(CLAMPED)
    sch = Schedule(before)
    i, j, k = sch.get_loops("C")
    sch.reorder(j, i)
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops("C")] == ["j", "i", "k"]
    arrays = random_inputs(before)
    for got, want in zip(outputs(sch.mod, arrays), outputs(before, arrays), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ScheduleError, match="not affine"):
        sch.reorder(k, i)


SQUARES = """
@T.prim_func
def main(A: T.Buffer((14, 3), "int32"), C: T.Buffer((14, 3), "int32")):
    for a, b, c in T.grid(4, 5, 3):
        with T.block("C"):
            vi = T.axis.spatial(14, a * a + b)
            vj = T.axis.spatial(3, c)
            C[vi, vj] = A[vi, vj] * 2 + vi
"""


def test_reorder_asks_for_one_to_one_bindings_in_its_own_loops():
    """For one `a`, `a * a + b` and `c` are one to one, as TVM asks."""
    before = module(SQUARES)
    sch = Schedule(before)
    a, b, c = sch.get_loops("C")
    sch.reorder(c, b)
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops("C")] == ["a", "c", "b"]
    arrays = random_inputs(before)
    for got, want in zip(outputs(sch.mod, arrays), outputs(before, arrays), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ScheduleError, match="not affine"):
        sch.reorder(c, a)


def test_reorder_of_one_loop_changes_nothing():
    sch = rows()
    before = sch.mod
    sch.reorder(sch.get_loops("B")[1])
    assert_structural_equal(sch.mod, before)


def test_reorder_refuses_to_start_a_reduction_late():
    sch = Schedule(matmul_relu())
    _, j, k = sch.get_loops("Y")
    outer, inner = sch.split(sch.fuse(j, k), [None, 7])
    with pytest.raises(LoopError, match="runs after some of its updates"):
        sch.reorder(inner, outer)


REPEATED = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for again, i, k in T.grid(3, 4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""


def test_reorder_refuses_to_repeat_a_reduction_in_the_middle():
    sch = Schedule(from_source(REPEATED))
    again, i, k = sch.get_loops("B")
    sch.reorder(i, again)
    with pytest.raises(LoopError, match="runs after some of its updates"):
        sch.reorder(k, again)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([None, None], "Only one factor can be specified as -1 or None"),
        ([2, 3], "does not cover the extent 30"),
        ([0, None], "not positive"),
        ([], "no factors"),
    ],
)
def test_split_refuses_factors(factors, message):
    sch = rows()
    with pytest.raises(FactorError, match=message):
        sch.split(sch.get_loops("B")[0], factors)


def test_split_refuses_an_annotated_loop():
    sch = rows()
    i, _ = sch.get_loops("B")
    sch.annotate(i, "note", 1)
    with pytest.raises(LoopError, match="has an annotation"):
        sch.split(i, [None, 2])


def test_a_replaced_loop_is_gone():
    sch = rows()
    i, _ = sch.get_loops("B")
    sch.split(i, [None, 2])
    with pytest.raises(StaleReferenceError, match='"i" is no longer in the program') as caught:
        sch.split(i, [None, 2])
    assert isinstance(caught.value, ScheduleError)
    assert isinstance(caught.value, ValueError)


def test_fuse_refuses_loops_of_two_nests_and_gaps():
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    i2, j2 = sch.get_loops("C")
    with pytest.raises(LoopError, match="is not around"):
        sch.fuse(i, j2)
    with pytest.raises(LoopError, match="not the only statement"):
        sch.fuse(i, k)
    with pytest.raises(LoopError, match="is not around"):
        sch.fuse(j, i)


def test_reorder_refuses_two_nests_and_repeats():
    sch = Schedule(matmul_relu())
    i, j, _ = sch.get_loops("Y")
    i2, j2 = sch.get_loops("C")
    with pytest.raises(LoopError, match="not in a chain"):
        sch.reorder(i, j2)
    with pytest.raises(LoopError, match="appears twice"):
        sch.reorder(i, j, i)


def test_an_error_shows_the_program_with_the_loop_marked():
    sch = rows()
    i, _ = sch.get_loops("B")
    with pytest.raises(ScheduleError) as caught:
        sch.split(i, [2, 3])
    text = str(caught.value)
    assert "An error occurred in the schedule primitive 'split'." in text
    lines = text.splitlines()
    loop = next(n for n, line in enumerate(lines) if "for i" in line)
    assert "^" in lines[loop + 1]
    assert "What would work: factors with a product of at least 30" in text


def test_error_render_levels():
    for level, shown in (("detail", True), ("fast", False), ("none", False)):
        sch = Schedule(from_source(ROWS), error_render_level=level)
        with pytest.raises(ScheduleError) as caught:
            sch.split(sch.get_loops("B")[0], [2, 3])
        assert ("T.block" in str(caught.value)) is shown


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("detail", "Cannot find a block with the name: X, in function main"),
        ("fast", "Cannot find a block with the specified name"),
        ("none", "(not rendered)"),
    ],
)
def test_levels_of_what_is_not_found(level, text):
    with pytest.raises(ScheduleError) as caught:
        Schedule(from_source(ROWS), error_render_level=level).get_block("X")
    assert text in str(caught.value)


LARGE = """
@T.prim_func
def main(A: T.Buffer((2048, 2048, 1024), "int8")):
    for i, j, k in T.grid(2048, 2048, 1024):
        with T.block("A"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            A[vi, vj, vk] = T.int8(1)
"""


def test_extents_fit_the_type_of_their_loops():
    sch = Schedule(from_source(LARGE))
    i, j, k = sch.get_loops("A")
    with pytest.raises(ScheduleError, match="The product 4294967296 of the extents"):
        sch.fuse(i, j, k)
    with pytest.raises(ScheduleError, match="The product 4294967296 of the extents"):
        sch.split(k, [2**16, 2**16])
    with pytest.raises(ScheduleError, match="The product 4294967296 of the extents"):
        sch.split(k, [2**32, None])
    assert sch.get(sch.fuse(i, j)).extent.value == 2**22
    outer, inner = sch.split(k, [None, 2**31 - 1])
    assert [sch.get(loop).extent.value for loop in (outer, inner)] == [1, 2**31 - 1]


@pytest.mark.parametrize("factors", ["24", [1.5, None], ["4", None], [float("nan"), 4]])
def test_factors_are_integers(factors):
    sch = Schedule(from_source(LARGE))
    with pytest.raises(TypeError, match=r"an integer or None|'24' is not a list"):
        sch.split(sch.get_loops("A")[2], factors)


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, n: T.DTYPE, m: T.DTYPE, k: T.DTYPE):
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, l in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
"""


def test_symbolic_extents_are_fused_where_a_parameter_has_as_many_elements():
    """2048 iterations each of i, j and l are more than an int32 counts."""
    sch = Schedule(from_source(SYMBOLIC.replace("DTYPE", "int32")))
    i, j, k = sch.get_loops("C")
    with pytest.raises(ScheduleError, match=r"n \* m \* k of the extents .* may exceed int32"):
        sch.fuse(i, j, k)
    fused = sch.fuse(i, j)
    with pytest.raises(ScheduleError, match="may exceed int32"):
        sch.fuse(fused, k)
    outer, _ = sch.split(fused, [None, 4])
    sch.fuse(outer)
    wide = Schedule(from_source(SYMBOLIC.replace("DTYPE", "int64")))
    wide.fuse(*wide.get_loops("C"))


def test_symbolic_extents_that_no_array_bounds_are_not_fused():
    sch = Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), n: T.int32, m: T.int32):
    for i, j in T.grid(n, m):
        with T.block("A"):
            vi, vj = T.axis.remap("RR", [i, j])
            A[vi % 16] = A[vi % 16] + vj
""")
    )
    with pytest.raises(ScheduleError, match="no parameter is known to have as many elements"):
        sch.fuse(*sch.get_loops("A"))


def test_extents_that_are_bounded_are_fused():
    """7 rows in tiles of at most 4, as an uneven split leaves them where rows are not guarded."""
    program = """
@T.prim_func
def main(A: T.Buffer((7, 8), "int32"), B: T.Buffer((7, 8), "int32")):
    for i in range(2):
        for j, k in T.grid(T.min(3, 6 - i * 4) + 1, 8):
            with T.block("B"):
                vi = T.axis.spatial(7, i * 4 + j)
                vj = T.axis.spatial(8, k)
                B[vi, vj] = A[vi, vj] * 2
"""
    before = module(program)
    sch = Schedule(before)
    _, j, k = sch.get_loops("B")
    fused = sch.get(sch.fuse(j, k))
    assert repr(fused.extent) == "T.min(3, 6 - i * 4) * 8 + 8"
    arrays = random_inputs(before)
    assert arrays is not None
    np.testing.assert_array_equal(outputs(sch.mod, arrays)[1], outputs(before, arrays)[1])


def test_the_extents_of_fused_loops_are_multiplied_in_their_order():
    sch = Schedule(
        from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (n, m))
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    )
    i, j = sch.get_loops("B")
    (rows, row), (columns, column) = sch.split(i, [None, 4]), sch.split(j, [None, 8])
    sch.reorder(rows, columns, row, column)
    fused = sch.get(sch.fuse(*sch.get_loops("B")[:2]))
    assert repr(fused.extent) == "(n + 3) // 4 * ((m + 7) // 8)"
    values = sch.mod["main"].body.block.body.body.body.body.iter_values
    assert repr(values[0]) == "i_0_j_0_fused // ((m + 7) // 8) * 4 + i_1"


@pytest.mark.parametrize("extent", [128, 115])
def test_factors_of_scalable_vectors_cover_an_extent(extent):
    """Vectors of an unknown number of lanes, in as many steps as they take."""
    lanes = 4 * T.vscale()
    steps = Analyzer().simplify(T.ceildiv(extent, lanes))
    sch = Schedule(
        module(f"""
@T.prim_func
def main(A: T.Buffer(({extent},), "int32"), B: T.Buffer(({extent},), "int32")):
    for i in range({extent}):
        with T.block("B"):
            vi = T.axis.spatial({extent}, i)
            B[vi] = A[vi] + 1
""")
    )
    (loop,) = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="does not cover the extent"):
        sch.split(loop, [steps - 1, lanes])
    sch.split(loop, [steps, lanes])
    guard = f"T.where(i_0 * (T.vscale() * 4) + i_1 < {extent})"
    assert guard in sch.mod.script()
    assert "T.grid((T.vscale() * 4 +" in sch.mod.script()


def test_loops_of_two_types_are_fused_in_the_wider_one():
    """As relax makes them, whose symbolic extents are of 64 bits."""
    program = """
@T.prim_func
def main(A: T.Buffer((6, T.int64(8)), "float32"), B: T.Buffer((6, T.int64(8)), "float32")):
    for i, j in T.grid(6, T.int64(8)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""
    sch = Schedule(module(program))
    fused = sch.fuse(*sch.get_loops("B"))
    assert sch.get(fused).loop_var.dtype == "int64"
    assert 'T.axis.spatial(6, T.Cast("int32", i_j_fused // T.int64(8)))' in sch.mod.script()
    outer, inner = sch.split(fused, [None, 5])
    sch.parallel(outer)  # which asks whether the iterators are bound one to one
    sch.vectorize(inner)
    array = np.arange(48, dtype="float32").reshape(6, 8)
    for target in ("interpreter", "numpy", "wasm"):
        result = outputs(sch.mod, [array, np.zeros((6, 8), "float32")], target)[1]
        np.testing.assert_array_equal(result, array + 1)
