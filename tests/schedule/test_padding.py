"""pad_einsum and decompose_padding: programs, records and refusals."""

import numpy as np
import pytest

from mlcweb.ir import structural_equal
from mlcweb.schedule import ScheduleError, Trace
from mlcweb.tir import Schedule
from tests.schedule.case_files import cases, check, module, outputs


@pytest.mark.parametrize("case", cases("padding.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


def matmul(update):
    return f"""
@T.prim_func
def main(A: T.Buffer((12, 17), "float32"), B: T.Buffer((17, 20), "float32"),
         C: T.Buffer((12, 20), "float32")):
    for i, j, k in T.grid(12, 20, 17):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = {update}
"""


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (m, 32))
    C = T.match_buffer(c, (n, 32))
    for i, j, k in T.grid(n, 32, m):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


@pytest.mark.parametrize("target", ["interpreter", "wasm"])
def test_sizes_of_parameters_are_rounded_up_when_the_program_runs(target):
    sch = Schedule(module(SYMBOLIC))
    sch.pad_einsum("C", [16, 1, 8])
    assert "C_pad = T.alloc_buffer(((n + 15) // 16 * 16, 32))" in sch.mod.script()
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (16, 8), (20, 13)):
        a = rng.integers(-8, 8, (n, m)).astype("float32")
        b = rng.integers(-8, 8, (m, 32)).astype("float32")
        c = np.zeros((n, 32), "float32")
        np.testing.assert_array_equal(outputs(sch.mod, [a, b, c], target)[2], a @ b)


def test_an_end_that_a_loop_moves_is_not_rounded_up():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("outer"):
            vi = T.axis.spatial(16, i)
            for j in range(vi + 1):
                with T.block("C"):
                    vj = T.axis.spatial(vi + 1, j)
                    C[vj] = A[vj] * T.float32(2)
""")
    )
    with pytest.raises(ScheduleError, match="another end in each iteration"):
        sch.pad_einsum("C", [16])


PRODUCT = matmul("C[vi, vj] + A[vi, vk] * B[vk, vj]")


def padded(value):
    return f"""
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((14,), "float32")):
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = {value}
"""


INSIDE = padded("T.if_then_else(2 <= vi and vi < 12, A[vi - 2], T.float32(0))")


def test_traces_replay_and_records_load():
    sch = Schedule(module(PRODUCT))
    sch.pad_einsum("C", [8, 8, 8])
    block = sch.get_block("A_pad")
    filling = sch.decompose_padding(block, sch.get_loops(block)[0])
    assert sch.get(filling).name_hint == "A_pad_pad_const"
    assert sch.get(block).name_hint == "A_pad"
    assert sch.trace.as_python()[1] == "sch.pad_einsum(block=b0, padding=[8, 8, 8])"
    assert sch.trace.as_python()[-1] == "b4 = sch.decompose_padding(block=b1, loop=l2)"
    assert sch.trace.as_json()[0][1] == ["PadEinsum", ["b0"], [[8, 8, 8]], []]
    for replay in (
        sch.trace.apply_to_schedule,
        lambda to: Trace.apply_json_to_schedule(sch.trace.as_json(), to),
    ):
        again = Schedule(module(PRODUCT))
        replay(again)
        assert structural_equal(again.mod, sch.mod)


def refusal(program, schedule):
    sch = Schedule(module(program))
    with pytest.raises(ScheduleError) as refused:
        schedule(sch)
    return refused.value


@pytest.mark.parametrize("padding", [[8, 8], [8, 0, 8], [8, 8, 8, 8]])
def test_one_positive_factor_per_iterator(padding):
    error = refusal(PRODUCT, lambda sch: sch.pad_einsum("C", padding))
    assert error.reason == (
        f'The padding {padding} for the block "C" is invalid: it should be a list of 3 positive '
        "integers, one for each iterator"
    )


def test_a_padded_extent_fits_its_type():
    error = refusal(
        """
@T.prim_func
def main(A: T.Buffer((2147483647,), "int8")):
    for i in range(2147483647):
        with T.block("A"):
            v = T.axis.spatial(2147483647, i)
            A[v] = T.int8(1)
""",
        lambda sch: sch.pad_einsum("A", [65536]),
    )
    assert "padded to a multiple of 65536, does not fit int32" in error.reason


@pytest.mark.parametrize(
    "update",
    [
        "C[vi, vj] + (A[vi, vk] * B[vk, vj] + T.float32(1))",
        "C[vi, vj] + T.exp(A[vi, vk])",
        "T.max(C[vi, vj], A[vi, vk] * B[vk, vj])",
    ],
)
def test_zeros_must_add_nothing(update):
    error = refusal(matmul(update), lambda sch: sch.pad_einsum("C", [8, 8, 8]))
    assert (
        'Padding the reduction iterator "vk" of block "C" would change its result' in error.reason
    )
    assert error.advice == "a padding of 1 for the reduction iterators"


def test_indices_are_iterators():
    program = """
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi + 1]
"""
    error = refusal(program, lambda sch: sch.pad_einsum("C", [3]))
    assert error.reason == (
        'The block "C" is not a computation of Einsum pattern: "A" is accessed at vi + 1, which is '
        "neither an iterator nor a constant"
    )


def test_padded_iterations_store_to_elements_of_their_own():
    program = """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.Cast("float32", vi)
"""
    sch = Schedule(module(program))
    sch.transform_block_layout("A", lambda i: (i // 4, i % 4))  # (0, i): 0 is no index
    with pytest.raises(ScheduleError) as refused:
        sch.pad_einsum("A", [4, 1])
    assert 'is no index of "A"' in refused.value.reason
    sch.pad_einsum("A", [1, 8])
    (array,) = outputs(sch.mod, [np.full(4, -1, "float32")])
    np.testing.assert_array_equal(array, [0, 1, 2, 3])


def test_predicates_are_not_padded():
    def schedule(sch):
        sch.split(sch.get_loops("C")[0], [None, 8])
        sch.pad_einsum("C", [8, 8, 8])

    assert 'The block "C" has a predicate' in refusal(PRODUCT, schedule).reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("T.float32(2)", "the value stored is not T.if_then_else(condition, value, constant)"),
        (
            "T.if_then_else(2 <= vi, A[vi % 10], A[0])",
            "the value outside, A[0], is not a constant",
        ),
        (
            "T.if_then_else(vi % 2 == 0, A[vi % 10], T.float32(0))",
            "the condition vi % 2 == 0 is not a bound of one iterator",
        ),
    ],
)
def test_other_patterns(value, reason):
    error = refusal(padded(value), lambda sch: sch.decompose_padding("C", sch.get_loops("C")[0]))
    assert error.reason == f'The block "C" does not match the padding pattern: {reason}'


def test_conditions_on_scaled_iterators_are_bounds():
    before = module(padded("T.if_then_else(3 < vi * 2 and vi * 2 < 23, A[vi - 2], T.float32(0))"))
    sch = Schedule(before)
    sch.decompose_padding("C", sch.get_loops("C")[0])
    assert sch.get(sch.get_loops("C")[0]).extent.value == 10
    arrays = [np.arange(1, 11, dtype="float32"), np.full(14, 7, dtype="float32")]
    expected = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0]
    assert outputs(sch.mod, arrays)[1].tolist() == expected


def test_conditions_that_never_hold():
    error = refusal(
        padded("T.if_then_else(20 <= vi, A[vi % 10], T.float32(0))"),
        lambda sch: sch.decompose_padding("C", sch.get_loops("C")[0]),
    )
    assert 'The condition of block "C" never holds' in error.reason


def test_the_loop_is_around_the_block():
    program = INSIDE.replace('C: T.Buffer((14,), "float32")', 'D: T.Buffer((14,), "float32")')
    program = program.replace("    for i", '    C = T.alloc_buffer((14,), "float32")\n    for i', 1)
    program += """    for i in range(14):
        with T.block("D"):
            vi = T.axis.spatial(14, i)
            D[vi] = C[vi]
"""
    error = refusal(program, lambda sch: sch.decompose_padding("C", sch.get_loops("D")[0]))
    assert error.reason == 'The loop "i" is not around the block "C"'


def test_a_condition_in_the_loop_decides_whether_the_block_runs():
    program = """
@T.prim_func
def main(A: T.Buffer((4, 10), "float32"), C: T.Buffer((4, 14), "float32"), n: T.int32):
    for o in range(4):
        if o < n:
            for i in range(14):
                with T.block("C"):
                    vo, vi = T.axis.remap("SS", [o, i])
                    C[vo, vi] = T.if_then_else(2 <= vi and vi < 12, A[vo, vi - 2], T.float32(7))
"""
    error = refusal(program, lambda sch: sch.decompose_padding("C", sch.get_loops("C")[0]))
    assert 'Conditions in the loop "o" decide whether block "C" runs' in error.reason
    sch = Schedule(module(program))
    sch.decompose_padding("C", sch.get_loops("C")[1])
    assert len(sch.get_loops("C_pad_const")) == 2


def test_conditions_that_always_hold():
    error = refusal(
        padded("T.if_then_else(0 <= vi and vi < 14, A[vi % 10], T.float32(0))"),
        lambda sch: sch.decompose_padding("C", sch.get_loops("C")[0]),
    )
    assert 'The condition of block "C" always holds' in error.reason


def test_only_complete_blocks():
    error = refusal(PRODUCT, lambda sch: sch.decompose_padding("C", sch.get_loops("C")[0]))
    assert 'The block "C" is not a complete block' in error.reason


def test_can_decompose_padding_asks_only():
    sch = Schedule(module(INSIDE))
    before = sch.mod
    assert sch.can_decompose_padding("C", sch.get_loops("C")[0])
    assert sch.mod is before
    sch = Schedule(module(PRODUCT))
    assert not sch.can_decompose_padding("C", sch.get_loops("C")[0])


ROW_SUMS = """
@T.prim_func
def main(A: T.Buffer((12, 17), "float32"), C: T.Buffer((12,), "float32")):
    for i, k in T.grid(12, 17):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""


def test_regions_declared_by_hand_cover_the_padding():
    sch = Schedule(module(ROW_SUMS))
    sch.annotate_buffer_access("C", 0, "read", lambda vi, vk: [(0, 12), (0, 17)])
    sch.pad_einsum("C", [8, 8])
    sch.compute_at("A_pad", sch.get_loops("C")[0])
    # One row of A_pad for each row of C, all 24 columns of it.
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("A_pad")] == [16, 24]
