"""What random programs have found, each reduced to a small program."""

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.random_programs.plain_python import evaluate
from tests.random_programs.test_random_programs import LLVM, TARGETS, check_numbers

DIVIDED_VECTORS = """
@T.prim_func
def main(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "int8"), C: T.Buffer((4,), "int8")):
    C[0:4] = A[0:4] // B[0:4]
"""

SUM_OF_EACH_THREAD = """
@T.prim_func
def main(a: T.handle, C: T.Buffer((4,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n, n), "int32")
    B = T.alloc_buffer((n, n), "int32")
    S = T.alloc_buffer((4,), "int32", scope="shared")
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for i, j, k in T.grid(n, n, {extent}):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = 0
                B[vi, vj] = B[vi, vj] + A[vi, vj]
        with T.block("S"):
            v = T.axis.spatial(4, tx)
            S[v] = B[n - 4, v]
        with T.block("C"):
            v = T.axis.spatial(4, tx)
            C[v] = S[3 - v]
"""

SUM_OF_ALL_THREADS = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    S = T.alloc_buffer((4,), "int32", scope="shared")
    for i in range(4):
        B[i] = 0
    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for k in range(4):
            B[k] = B[k] + A[k]
        S[tx] = B[tx]
        C[tx] = S[3 - tx]
"""

TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        for j in range(i + 1):
            with T.block("B"):
                v = T.axis.spatial(8, j)
                B[v] = A[v] + 1
"""

EXTENT_THAT_THE_BODY_STORES = """
@T.prim_func
def main(A: T.Buffer((1, 6), "int32"), B: T.Buffer((6,), "int32")):
    for j in range(T.max(4, A[0, 0] % 6) + 1):
        A[0, j] = B[j]
"""

BELOW_ZERO_AS_HALF = """
@T.prim_func
def main(A: T.Buffer((2,), "int32"), B: T.Buffer((2,), "float16")):
    for i in T.unroll(2):
        B[i] = T.Cast("float16", T.Cast("uint16", i) - T.uint16(5))
"""

GUARDED_ROW = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float16")):
    for i in range(4):
        for j in range(4):
            A[i, j] = T.if_then_else(2 <= i, A[i - 2, i], A[i, j])
"""

LESSER_OF_NAN = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = T.min(T.Cast("float32", v), T.float32("nan"))
"""

NAN_OF_EACH_ROW = """
@T.prim_func
def main(A: T.Buffer((3,), "float32"), B: T.Buffer((3, 5), "float64")):
    for i in range(3):
        for j in range(5):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                vj = T.axis.spatial(5, j)
                B[vi, vj] = T.max(T.Cast("float64", A[vi]), T.float64("nan"))
"""

NO_AXES = """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("A"):
            A[14] = T.max(T.max(A[(i + 3) % 4], A[0]), A[2])
"""

PART_OF_INPUT = """
@T.prim_func
def main(A: T.Buffer((1, 6), "float32")):
    for i in range(1):
        with T.block("A"):
            A[i, 0] = A[0, 0 - i] + T.float32(1)
"""

COUNTED_DOWN = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4, 4))
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(4, 3 - j)
            T.where(i < 4)
            B[vi, vj] = A[vi, vj]
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[v, T.Cast("int32", A[v, v]) % 4]
"""

OTHER_ELEMENT_IN_PREDICATE = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            T.where(B[0] < 3)
            C[v] = A[v] + B[2]
"""

OWN_PLACES = """
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((5,), "int32")):
    for i, j in T.grid(4, 3):
        A[j, A[i, i] % 4] = 2
    for i, j in T.grid(4, 3):
        B[B[i] % 5] = B[B[i] % 5] + j
"""

SHIFTED_DOMAIN = """
@T.prim_func
def main(A: T.Buffer((8, 4), "uint8"), B: T.Buffer((7,), "uint8")):
    for i in range(2, 9):
        with T.block("B"):
            v = T.axis.spatial((2, 9), i)
            B[v - 2] = A[8 - v, v % 4]
"""

PREDICATE_OF_FLOATS = """
@T.prim_func
def main(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "int8"), C: T.Buffer((7,), "int8")):
    for i in range(7):
        with T.block("B"):
            v = T.axis.spatial(7, i)
            T.where(A[6 - i] < T.float32(3))
            B[v] = C[v]
"""

VIEW = """
@T.prim_func
def main(A: T.Buffer((6,), "uint8"), B: T.Buffer((3,), "int8")):
    V = T.decl_buffer((3,), "int8", data=A.data, elem_offset=2)
    for i in range(3):
        with T.block("V"):
            v = T.axis.spatial(3, i)
            V[v] = B[v]
"""

READ_VIEW = """
@T.prim_func
def main(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((3,), "int32")):
    for i in range(6):
        with T.block("B"):
            v = T.axis.spatial(6, i)
            B[v] = B[v] + 1
    V = T.decl_buffer((3,), "int32", data=A.data, elem_offset=2)
    for i in range(3):
        with T.block("A"):
            v = T.axis.spatial(3, i)
            C[v] = V[v]
"""

MATCHED_ROWS = """
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            M = T.match_buffer(A[v, 0:4], (4,), "int32", strides=["s"], offset_factor=1)
            for j in range(4):
                M[j] = B[v] + j
"""


ONE_ELEMENT = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[2]
"""

DECLARED_ALONE = """
@T.prim_func
def main(A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i, j in T.grid(6, 4):
        with T.block("B"):
            v = T.axis.spatial(6, i)
            k = T.axis.reduce(4, j)
            T.reads(A[0:6, 0:4], C[0:6])
            T.writes(B[v])
            with T.init():
                B[v] = 0
            B[v] = B[v] + A[v, k]
"""

TWO_NAMES = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    V = T.decl_buffer((2,), "float32", data=A.data, elem_offset=7)
    for i in range(2):
        with T.block("V"):
            v = T.axis.spatial(2, i)
            V[v] = B[v]
    for i in range(16):
        with T.block("A"):
            v = T.axis.spatial(16, i)
            A[v] = B[15 - v]
"""

READ_AGAIN = """
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    for i in range(1):
        with T.block("A"):
            A[i] = A[i] + T.float32(1)
    for i in range(6):
        with T.block("B"):
            v = T.axis.spatial(6, i)
            B[v] = A[v]
"""

ROW_IN_ROW = """
@T.prim_func
def main(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        with T.block("outer"):
            v = T.axis.spatial(2, i)
            with T.block("inner"):
                w = T.axis.spatial(2, v)
                B[w] = A[w]
"""

SHIFTED_VIEW = """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    V = T.decl_buffer((8,), "float32", data=A.data, elem_offset=1)
    for i in range(8):
        with T.block("V"):
            v = T.axis.spatial(8, i)
            V[v] = A[v]
"""

PART_OF_ROWS = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 3):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(3, k)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""

UNIFORM_EXTREMUM = """
@T.prim_func
def main(A: T.Buffer((4,), "{dtype}"), B: T.Buffer((4,), "{dtype}")):
    for i, k in T.grid(4, 3):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(3, k)
            with T.init():
                B[vi] = T.{dtype}(5)
            B[vi] = T.max(B[vi], A[vi])
"""

ZEROS = """
@T.prim_func
def main(A: T.Buffer((32,), "float16")):
    for i in range(32):
        A[i] = T.float16(0)
"""

FROM_ONE = """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in range(1, n):
        A[i] = A[i - 1]
"""


ROW_OF_SYMBOLIC_LENGTH = """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "int32")
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            M = T.match_buffer(A[v, 0:n], (n,), "int32", strides=["s"], offset_factor=1)
            for j in range(n):
                M[j] = v + j
"""


SUMMED_FROM_ITS_END = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, 3 - i)
            B[v] = A[v]
    for i in range(8):
        for k in range(4):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(4, k)
                with T.init():
                    C[vi] = 5
                C[vi] = C[vi] + B[vk]
"""


DIGITS_COUNTED_DOWN = """
@T.prim_func
def main(A: T.Buffer((2, 3), "int32"), B: T.Buffer((4,), "int32")):
    C = T.alloc_buffer((2, 3, 2, 2), "int32")
    for i in range(4):
        for a, j, k in T.grid(2, 4, 3):
            if i < 3:
                C[a, k, (3 - j) // 2, (3 - j) % 2] = A[a, k]
        if i < 3:
            B[i] = C[i % 2, 1, 1, 1]
"""

NEVER_THERE = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    if A[2] != A[2]:
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = 3
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            T.writes()
            C[v] = v + 5
"""


LAUNCHED_AGAIN = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32", scope="shared")
    for u in range(1):
        for i in T.thread_binding(8, thread="blockIdx.x"):
            for j in T.thread_binding(1, thread="threadIdx.x"):
                with T.block("B"):
                    v = T.axis.spatial(8, i + j)
                    B[v] = A[v] + 1
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v] * 2
"""

INDEX_OF_ITS_OWN = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            j = T.alloc_buffer((1,), "int32")
            j[0] = 7 - v
            C[v] = B[j[0]]
"""

LOWER_TRIANGLES = """
@T.prim_func
def main(A: T.Buffer((5, 6), "int32")):
    for k in range(4):
        for i in range(k + 1, 5):
            for j in range(6 - k):
                with T.block("A"):
                    vk = T.axis.opaque(4, k)
                    vi = T.axis.opaque(5, i)
                    vj = T.axis.opaque(6, 5 - j)
                    A[vi, vj] = A[vi, vj] - A[vi, vk] * A[vk, vj] % 7
"""

TRIANGLE_OF_A_TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((7, 7), "int32"), C: T.Buffer((7, 7), "int32")):
    B = T.alloc_buffer((7, 7), "int32")
    for i in range(7):
        for j in range(i + 1):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                vj = T.axis.spatial(7, j)
                B[vi, vj] = A[vj, vi] * 2
    for i in range(7):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(7, i)
                vj = T.axis.spatial(7, j)
                C[vi, vj] = B[vi, vj] + B[vi, 0]
"""

VECTOR_OF_THREE = """
@T.prim_func
def main(a: T.handle, B: T.Buffer((7,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B[1:4] = A[T.Ramp(3, -1, 3)] % T.Broadcast(T.int32(97), 3)
"""


def check(program, schedule=lambda sch: None):
    """Before and after the schedule, all targets compute what Python does."""
    function = from_source(program)
    random = np.random.default_rng(0)
    arrays = [
        random.integers(0, 9, [int(n) for n in buffer.shape]).astype(buffer.dtype)
        for buffer in function.parameter_buffers
    ]
    wanted = evaluate(program, arrays)
    sch = Schedule(IRModule({"main": function}))
    schedule(sch)
    for target in TARGETS:
        check_numbers(sch.mod, target, arrays, wanted, sch.mod.script)


def test_elements_that_exist_only_where_an_outer_loop_says_so():
    check(GUARDED_ROW)


def test_the_lesser_of_a_number_and_a_constant_nan():
    check(LESSER_OF_NAN)
    check(NAN_OF_EACH_ROW)


def test_stores_whose_places_are_read_from_what_they_write():
    check(OWN_PLACES)


def test_producers_whose_iterators_count_down_under_a_predicate():
    check(COUNTED_DOWN, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))


def test_a_predicate_that_reads_other_elements_than_the_body():
    check(OTHER_ELEMENT_IN_PREDICATE)
    sch = Schedule(from_source(OTHER_ELEMENT_IN_PREDICATE))
    with pytest.raises(ScheduleError, match='"C" uses "B" without declaring it'):
        sch.compute_at("B", sch.get_loops("C")[0])


def test_regions_of_a_block_without_axes_read_back():
    def split(sch):
        sch.split(sch.get_loops("A")[0], [None, 16], preserve_unit_iters=False)
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(NO_AXES, split)


def test_a_copy_of_a_part_of_what_is_read_and_written_reads_back():
    def copy(sch):
        sch.cache_inplace("A", 0, "local")
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(PART_OF_INPUT, copy)


def test_block_layout_of_a_domain_that_does_not_begin_at_zero():
    check(SHIFTED_DOMAIN, lambda sch: sch.transform_block_layout("B", lambda i: [i]))


def test_predicates_that_compare_floats_bound_no_loop():
    check(PREDICATE_OF_FLOATS)
    sch = Schedule(from_source(PREDICATE_OF_FLOATS))
    with pytest.raises(ScheduleError, match="not affine"):
        sch.reindex_cache_read("B", 0, "local", lambda i: (i,))


def test_layout_of_memory_that_a_declared_view_shares():
    sch = Schedule(from_source(VIEW))
    with pytest.raises(ScheduleError, match='"V" is declared as a view'):
        sch.transform_layout("V", ("write", 0), lambda i: [i])


OWN_VIEW = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    S = T.alloc_buffer((16,), "int32")
    V = T.decl_buffer((4, 4), "int32", data=S.data)
    for i in range(16):
        with T.block("P"):
            v = T.axis.spatial(16, i)
            S[v] = A[v] + 1
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = V[v % 4, v // 4]
"""


@pytest.mark.parametrize(
    "change",
    [
        lambda sch: sch.compute_inline("P"),
        lambda sch: sch.set_scope("P", 0, "shared"),
        lambda sch: sch.unsafe_set_dtype("P", 0, "int64"),
        lambda sch: sch.storage_align("P", 0, 0, 4, 1),
    ],
)
def test_memory_of_a_declared_view_stays(change):
    sch = Schedule(from_source(OWN_VIEW))
    with pytest.raises(ScheduleError, match='"S" has a declared view'):
        change(sch)


def test_a_copy_of_one_element_reads_back():
    def reindex(sch):
        sch.reindex("B", ("read", 0))
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(ONE_ELEMENT, reindex)


def test_padding_beside_a_buffer_that_is_declared_but_not_accessed():
    check(DECLARED_ALONE, lambda sch: sch.pad_einsum("B", [4, 1]))


def test_blocks_that_write_the_same_memory_by_two_names_stay_in_order():
    check(TWO_NAMES)
    sch = Schedule(from_source(TWO_NAMES))
    with pytest.raises(ScheduleError, match='the block "A" writes "V" without declaring it'):
        sch.reverse_compute_at("V", sch.get_loops("A")[0])


def test_a_block_that_reads_what_it_writes_by_another_name_is_not_parallel():
    check(SHIFTED_VIEW)
    sch = Schedule(from_source(SHIFTED_VIEW))
    with pytest.raises(ScheduleError, match='it reads "V" without declaring it'):
        sch.parallel(sch.get_loops("V")[0])


def test_copies_of_a_block_that_matches_a_region():
    def partition(sch):
        sch.loop_partition(sch.get_loops("A")[0], [2, None])
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(MATCHED_ROWS, partition)


def test_a_copy_of_a_part_of_an_input_that_is_read_again_reads_back():
    def copy(sch):
        sch.cache_inplace("A", 0, "global")
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(READ_AGAIN, copy)


def test_axes_of_blocks_in_blocks_under_the_predicate_of_a_split():
    """The verifier took an axis of the outer block for more than the predicate lets through."""

    def blockize(sch):
        _, inner = sch.split(sch.get_loops("outer")[0], [4, None], preserve_unit_iters=False)
        sch.blockize(inner)

    check(ROW_IN_ROW, blockize)


def test_a_copy_of_a_declared_view_stands_after_its_declaration():
    def copy(sch):
        sch.cache_read("A", "V", "local")
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(READ_VIEW, copy)


def test_padding_where_a_sum_goes_through_a_part_of_its_input():
    check(PART_OF_ROWS, lambda sch: sch.pad_einsum("B", [1, 4]))


@pytest.mark.parametrize("dtype", ["uint64", "float16"])
def test_an_extremum_of_what_vectors_cannot_compare_stays_scalar(dtype):
    text = UNIFORM_EXTREMUM.format(dtype=dtype)
    check(text)
    assert "(module" in mlcweb.build(from_source(text), target="wasm").get_source()


def test_elements_without_vectors_are_stored_one_by_one():
    check(ZEROS)
    assert "(module" in mlcweb.build(from_source(ZEROS), target="wasm").get_source()


def test_a_loop_of_symbolic_extent_that_begins_above_zero_reads_back():
    function = from_source(FROM_ONE)
    assert function.body.extent.script() == "n - 1"
    assert_structural_equal(from_source(function.script()), function)


def test_copies_of_a_block_that_matches_a_region_of_symbolic_length():
    sch = Schedule(from_source(ROW_OF_SYMBOLIC_LENGTH))
    sch.loop_partition(sch.get_loops("A")[0], [2, None])
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)


def test_a_sum_is_not_moved_under_a_loop_that_runs_it_from_its_end():
    """Its init ran last, after the updates."""
    check(SUMMED_FROM_ITS_END)
    sch = Schedule(from_source(SUMMED_FROM_ITS_END))
    with pytest.raises(ScheduleError, match='"vk" of block "C" would not start where its domain'):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])

    def forwards(sch):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])

    check(SUMMED_FROM_ITS_END.replace("3 - i", "i"), forwards)


@pytest.mark.parametrize("extent", ["8", "n"])
def test_memory_that_each_thread_writes_as_a_whole_is_its_own(extent):
    """That `B[n - 4, v]` is among what is written was not seen, and all threads added to one B."""
    rows = np.arange(16, dtype="int32").reshape(4, 4)
    mod = from_source(SUM_OF_EACH_THREAD.format(extent=extent))
    for target in TARGETS:
        result = mlcweb.nd.array(np.zeros(4, "int32"))
        mlcweb.build(mod, target=target)["main"](mlcweb.nd.array(rows), result)
        times = 8 if extent == "8" else 4
        np.testing.assert_array_equal(result.numpy(), rows[0, ::-1] * times)


@pytest.mark.parametrize("target", TARGETS)
def test_threads_do_not_add_to_one_element_of_memory_that_they_share(target):
    with pytest.raises(ThreadError, match='reads an element of "B" that another may write'):
        mlcweb.build(from_source(SUM_OF_ALL_THREADS), target=target)


def test_no_block_is_made_of_a_loop_whose_extent_another_decides():
    check(TRIANGLE)
    sch = Schedule(from_source(TRIANGLE))
    for loop in sch.get_loops("B"):
        with pytest.raises(ScheduleError, match='bounds of loop "j" depend on the loop "i"'):
            sch.blockize(loop)


@pytest.mark.parametrize("operator", ["//", "%"])
@pytest.mark.parametrize("target", [*TARGETS, LLVM])
def test_vectors_of_integers_are_divided_lane_by_lane(operator, target):
    rows = np.array([[-4, -3, 7, -128], [2, -2, 3, -1]], "int8")
    arrays = [mlcweb.nd.array(array) for array in (*rows, np.zeros(4, "int8"))]
    text = DIVIDED_VECTORS.replace("//", operator)
    mlcweb.build(from_source(text), target=target)["main"](*arrays)
    wanted = [-2, 1, 2, -128] if operator == "//" else [0, -1, 1, 0]
    assert arrays[2].numpy().tolist() == wanted


@pytest.mark.parametrize("target", [*TARGETS, LLVM])
def test_a_vector_of_conditions_chooses_lane_by_lane(target):
    """It was cast to one condition."""
    text = DIVIDED_VECTORS.replace("A[0:4] // B[0:4]", "T.Select(A[0:4] < B[0:4], A[0:4], 5)")
    arrays = [mlcweb.nd.array(np.array(row, "int8")) for row in ([1, 4, 3, 0], [2] * 4, [9] * 4)]
    mlcweb.build(from_source(text), target=target)["main"](*arrays)
    assert arrays[2].numpy().tolist() == [1, 5, 5, 0]


def test_a_vector_is_not_taken_for_one_condition():
    with pytest.raises(TypeError, match="is a vector of type boolx2, and bool is needed here"):
        mlcweb.tir.if_then_else(mlcweb.tir.Var("x", "int32x2") < 0, 1, 2)


def test_an_integer_beyond_float16_is_infinite():
    check(BELOW_ZERO_AS_HALF)


def test_the_extent_of_a_loop_is_what_it_was_before_its_first_iteration():
    """What vectors had left over asked for it again."""
    for target in TARGETS:
        rows = mlcweb.nd.array(np.arange(6, dtype="int32")[None])
        elevens = mlcweb.nd.array(np.full(6, 11, "int32"))
        mlcweb.build(from_source(EXTENT_THAT_THE_BODY_STORES), target=target)["main"](rows, elevens)
        assert rows.numpy().tolist() == [[11] * 5 + [5]], target


def test_memory_holds_elements_whose_digits_count_down():
    """Where a condition stands around them, they were taken for other elements."""
    check(DIGITS_COUNTED_DOWN)


def test_a_block_whose_output_is_hidden_still_has_one():
    check(NEVER_THERE)
    sch = Schedule(from_source(NEVER_THERE))
    with pytest.raises(ScheduleError, match='"C" is an output block'):
        sch.compute_at("C", sch.get_loops("B")[0])


@pytest.mark.parametrize("target", [*TARGETS, LLVM])
def test_what_a_target_lacks_runs_in_numpy_for_arrays_of_symbolic_shapes_too(target):
    function = mlcweb.build(from_source(VECTOR_OF_THREE), target=target)["main"]
    for length in (4, 9):
        arrays = [mlcweb.nd.array(np.arange(n, dtype="int32") + 95) for n in (length, 7)]
        function(*arrays)
        assert arrays[1].numpy().tolist() == [95, 1, 0, 96, 99, 100, 101]


def test_threads_do_not_read_what_those_of_an_earlier_launch_wrote_to_shared_memory():
    """The consumer ran in the iterations that the predicate of a split leaves out, too."""

    def move(sch):
        sch.reverse_compute_at("C", sch.get_loops("B")[-2])

    check(LAUNCHED_AGAIN, move)
    sch = Schedule(from_source(LAUNCHED_AGAIN))
    sch.split(sch.get_loops("B")[0], [None, 4])
    with pytest.raises(ScheduleError, match='the block "B" writes nothing to "B"'):
        move(sch)


def test_what_a_block_reads_by_an_index_that_only_it_knows_is_computed_as_a_whole():
    def move(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        assert "T.reads(B[0:8])" in sch.mod.script()
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)

    check(INDEX_OF_ITS_OWN, move)


def test_a_copy_holds_what_is_written_in_loops_whose_extents_depend_on_others():
    def copy(sch):
        sch.cache_read("A", 0, "global")
        assert 'A_global = T.alloc_buffer((4, 6), "int32")' in sch.mod.script()

    check(LOWER_TRIANGLES, copy)


@pytest.mark.parametrize("loop", [0, 1])
def test_a_producer_whose_loops_depend_on_each_other_keeps_none_of_them(loop):
    def move(sch):
        sch.compute_at("B", sch.get_loops("C")[loop])
        assert "T.int32()" not in sch.mod.script()

    check(TRIANGLE_OF_A_TRIANGLE, move)
