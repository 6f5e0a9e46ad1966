"""transform_layout, transform_block_layout, set_axis_separator: programs, records and refusals."""

import json

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import structural_equal
from mlcweb.schedule import ScheduleError, Trace
from mlcweb.tir import IndexMap, Schedule, const
from mlcweb.tir.stmt import IterType
from tests.schedule.case_files import cases, check, module, outputs, programs, random_inputs


@pytest.mark.parametrize("case", cases("layout.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)


CHAIN = """
@T.prim_func
def main(A: T.Buffer((16, 24), "float32"), C: T.Buffer((16, 24), "float32")):
    B = T.alloc_buffer((16, 24), "float32")
    for i, j in T.grid(16, 24):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 24):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""

LINE = """
@T.prim_func
def main(A: T.Buffer((14,), "float32"), C: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((14,), "float32")
    for i0, i1 in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(14, i0 * 4 + i1)
            T.where(i0 * 4 + i1 < 14)
            B[vi] = A[vi] * T.float32(2)
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi] + T.float32(1)
"""

MATMUL = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vk, vj]
"""


def test_parameters_change_their_shape():
    before = module(CHAIN)
    sch = Schedule(before)
    sch.transform_layout("B", ("read", 0), lambda i, j: [j, i])
    sch.transform_layout("C", "C", lambda i, j: [j // 8, i, j % 8])
    a, c = sch.mod["main"].parameter_buffers
    assert [int(extent) for extent in (*a.shape, *c.shape)] == [24, 16, 3, 16, 8]
    assert sch.get(sch.get_block("B")).reads[0].buffer is a
    given, _ = random_inputs(before)
    wanted = outputs(before, [given, np.zeros((16, 24), "float32")])[1]
    got = outputs(sch.mod, [given.T.copy(), np.zeros((3, 16, 8), "float32")])[1]
    np.testing.assert_array_equal(got.transpose(1, 0, 2).reshape(16, 24), wanted)


def test_buffers_are_named_as_before_tvm_0_10():
    def steps(*orders):
        sch = Schedule(module(CHAIN))
        for method, *arguments, options in orders:
            getattr(sch, method)(*arguments, **options)
        return sch

    swap = lambda i, j: [j, i]  # noqa: E731
    older = steps(
        ("transform_layout", "B", 0, "write", {"index_map": swap}),
        ("transform_layout", "B", 0, "read", swap, {}),
        ("transform_layout", "C", 0, {"buffer_index_type": "write", "index_map": swap}),
        ("set_axis_separator", "B", 0, "write", [1], {}),
        (
            "reindex",
            {"block": "C", "buffer_index": 0, "buffer_index_type": "read"},
        ),
    )
    newer = steps(
        ("transform_layout", "B", ("write", 0), swap, {}),
        ("transform_layout", "B", ("read", 0), swap, {}),
        ("transform_layout", "C", ("write", 0), swap, {}),
        ("set_axis_separator", "B", ("write", 0), [1], {}),
        ("reindex", "C", ("read", 0), {}),
    )
    assert structural_equal(older.mod, newer.mod)
    assert str(older.trace) == str(newer.trace)
    with pytest.raises(TypeError, match="buffer"):
        Schedule(module(CHAIN)).transform_layout("B", 0, swap)


def test_padding_of_an_output_is_filled_by_a_block_after_the_writer():
    before = module(LINE)
    sch = Schedule(before)
    sch.transform_layout("B", ("write", 0), lambda i: [i // 4, i % 4], pad_value=1.0)
    padding = sch.get(sch.get_block("buffer_B_padding"))
    assert padding.reads == ()
    assert "T.where(axis0 == 3 and 2 <= axis1)" in sch.mod.script()
    arrays = random_inputs(before)
    for got, want in zip(outputs(sch.mod, arrays), outputs(before, arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_padding_of_an_output_has_the_value_given():
    sch = Schedule(module(LINE))
    sch.transform_layout(
        "C", ("write", 0), lambda i: [i // 4, i % 4], pad_value=lambda i, j: const(7.0, "float32")
    )
    got = outputs(sch.mod, [np.ones(14, "float32"), np.zeros((4, 4), "float32")])[1]
    np.testing.assert_array_equal(got.ravel(), [3.0] * 14 + [7.0] * 2)


@pytest.mark.parametrize(
    ("body", "chooses"),
    [
        ("C[i] = 0\n        for k in range(3):\n            C[i] = C[i] + A[i, k]", True),
        (
            "C[i] = 1\n        for k in range(T.max(A[i, 2], 0) % 4):\n            C[i] = A[i, k]",
            False,
        ),
        ("C[i] = 2\n        if A[i, 0] > 0:\n            C[i] = A[i, 0]", False),
        ("C[i] = A[i, 0]\n        A[i, 1] = C[i]", False),
        ("C[i] = A[i, 0]\n        C[i] = C[i] + C[i // 2]", False),
    ],
)
def test_padding_where_statements_use_the_loops_themselves(body, chooses):
    """Stores choose where the nest does nothing else than store to all elements in order."""
    before = module(f"""
@T.prim_func
def main(A: T.Buffer((14, 3), "int32"), C: T.Buffer((14,), "int32")):
    for i in range(14):
        {body}
        with T.block("C"):
            T.writes(C[i])
            C[i] = C[i] + 1
""")
    sch = Schedule(before)
    sch.transform_layout("C", ("write", 0), lambda i: [i // 4, i % 4], pad_value=9)
    assert ("padding" not in sch.mod.script()) == chooses
    array = np.random.default_rng(0).integers(-9, 9, (14, 3)).astype("int32")
    (_, old), (_, new) = (
        outputs(mod, [array, np.zeros(shape, "int32")])
        for mod, shape in ((before, 14), (sch.mod, (4, 4)))
    )
    np.testing.assert_array_equal(new.ravel(), [*old, 9, 9])


def test_padding_of_an_input_is_assumed():
    sch = Schedule(module(LINE))
    sch.transform_layout("B", ("read", 0), lambda i: [i // 4, i % 4], pad_value=0.0)
    block = sch.get(sch.get_block("buffer_A_assumptions"))
    assert block.writes == ()
    (condition,) = block.body.value.args
    assert block.body.value.op.name == "tir.assume"
    assert repr(condition) == (
        "not (v_axis0 == 3 and 2 <= v_axis1) or A[v_axis0, v_axis1] == T.float32(0)"
    )


def test_an_injective_map_may_be_asserted():
    before = module(LINE)
    sch = Schedule(before)
    sch.transform_layout(
        "B", ("write", 0), lambda i: [i // 4, i % 4], assume_injective_transform=True
    )
    arrays = random_inputs(before)
    np.testing.assert_array_equal(outputs(sch.mod, arrays)[1], outputs(before, arrays)[1])


def test_a_map_in_64_bit_indices_is_taken():
    sch = Schedule(module(CHAIN))
    sch.transform_layout("B", ("write", 0), IndexMap.from_func(lambda i, j: (j // 4, i, j % 4)))
    store = sch.get(sch.get_block("B")).body
    assert {index.dtype for index in store.indices} == {"int32"}


def test_axis_separators():
    sch = Schedule(module(CHAIN))
    sch.set_axis_separator("B", ("write", 0), [1])
    (written,) = sch.get(sch.get_block("B")).writes
    (read,) = sch.get(sch.get_block("C")).reads
    assert written.buffer is read.buffer
    assert written.buffer.axis_separators == (1,)
    assert sch.trace.as_python()[1] == (
        'sch.set_axis_separator(block=b0, buffer=("write", 0), axis_separators=[1])'
    )


def test_views_get_the_axis_separators_of_their_buffer():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    B = T.alloc_buffer((4, 8), "int32")
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            one = T.match_buffer(B[vi, vj], (), "int32", offset_factor=1)
            one[()] = A[vi, vj] + 1
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            row = T.match_buffer(B[vi, 0:8], (1, 8), "int32", offset_factor=1)
            for j in range(8):
                C[vi, j] = row[0, j]
""")
    )
    sch.set_axis_separator("B", ("write", 0), [1])
    views = [sch.get(sch.get_block(name)).match_buffers[0].buffer for name in "BC"]
    assert [[int(axis) for axis in view.axis_separators] for view in views] == [[0], [1]]


def test_padding_does_not_read_other_buffers():
    sch = Schedule(
        module("""
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi]
""")
    )
    other = sch.get(sch.get_block("B")).reads[0].buffer
    with pytest.raises(ScheduleError, match='of "B" reads the buffer "A"'):
        sch.transform_layout("B", "B", lambda i: [i // 4, i % 4], pad_value=lambda i, j: other[i])


def test_traces_replay_and_records_load():
    sch = Schedule(module(CHAIN))
    block = sch.get_block("B")
    sch.transform_layout(block, ("write", 0), lambda i, j: [i // 5, j, i % 5], pad_value=0.0)
    sch.transform_layout(block, ("read", 0), lambda i, j: [j, i])
    sch.transform_block_layout("C", lambda i, j: [i * 24 + j])
    assert sch.trace.as_python()[1:] == [
        'sch.transform_layout(block=b0, buffer=("write", 0), '
        "index_map=lambda i, j: (i // 5, j, i % 5,), "
        "pad_value=lambda indices_0, indices_1, indices_2: (T.float32(0),), "
        "assume_injective_transform=False)",
        'sch.transform_layout(block=b0, buffer=("read", 0), index_map=lambda i, j: (j, i,), '
        "pad_value=None, assume_injective_transform=False)",
        'b1 = sch.get_block(name="C", func_name="main")',
        "sch.transform_block_layout(block=b1, index_map=lambda i, j: (i * 24 + j,))",
    ]
    again = Schedule(module(CHAIN))
    sch.trace.apply_to_schedule(again)
    assert structural_equal(again.mod, sch.mod)
    loaded = Schedule(module(CHAIN))
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), loaded)
    assert structural_equal(loaded.mod, sch.mod)
    assert str(loaded.trace) == str(sch.trace)


def refusal(program, schedule):
    sch = Schedule(module(program))
    with pytest.raises(ScheduleError) as refused:
        schedule(sch)
    return refused.value


@pytest.mark.parametrize(
    ("index_map", "options", "reason"),
    [
        (
            lambda i, j: [i // 4, j // 16, i % 4, j % 16],
            {},
            "The transformation T.index_map(lambda i, j: (i // 4, j // 16, i % 4, j % 16)) applied "
            'on buffer "B" of shape (16, 24) would result in shape (4, 2, 4, 16). However, this '
            "would introduce padding wherever axis1 == 1 and 8 <= axis3 is true",
        ),
        (lambda i: [i], {}, 'takes 1 indices, but the buffer "B" has 2 dimension(s)'),
        (lambda i, j: [i % 4, j], {}, "is not injective: elements that differ in i get one place"),
        (lambda i, j: [i // -4, i % -4, j], {}, "is not injective"),
        (lambda i, j: [i // -1, j], {}, "starts at -15, not at 0"),
        (lambda i, j: [i * j], {}, "is not affine"),
        (lambda i, j: [i * 2, j], {}, "leaves gaps between neighbouring elements"),
        (lambda i, j: [i + 2, j], {}, "starts at 2, not at 0"),
        (
            lambda i, j: [i // 5, i % 5, j],
            {"pad_value": 0},
            'The buffer "B" has elements of type float32, but the padding',
        ),
        (
            lambda i, j: [i // 5, i % 5, j],
            {"pad_value": lambda a, b, c: [a, b]},
            "has 2 outputs, but should have one",
        ),
        (
            lambda i, j: [i // 5, i % 5, j],
            {"pad_value": IndexMap.from_func(lambda a: const(0.0), index_dtype="int32")},
            "takes 1 indices, but the new layout has 3",
        ),
    ],
)
def test_layouts_refused(index_map, options, reason):
    error = refusal(
        CHAIN, lambda sch: sch.transform_layout("B", ("write", 0), index_map, **options)
    )
    assert reason in error.reason
    assert error.primitive == "transform_layout"


def test_symbolic_dimensions_are_not_padded():
    program = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = A[vi]
"""
    error = refusal(
        program, lambda sch: sch.transform_layout("C", "C", lambda i: [i // 4, i % 4], 0.0)
    )
    assert "it is not known that n is divisible" in error.reason


def test_buffers_that_cannot_be_transformed():
    viewed = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 4:vi * 4 + 4])
            T.writes(C[vi * 4:vi * 4 + 4])
            V = T.match_buffer(A[vi * 4:vi * 4 + 4], (4,), offset_factor=1)
            for j in range(4):
                with T.block("C"):
                    vj = T.axis.spatial(4, j)
                    C[vi * 4 + vj] = V[vj]
"""
    error = refusal(viewed, lambda sch: sch.transform_layout("C", "V", lambda i: [i // 2, i % 2]))
    assert 'The buffer "V" is a view of a region of another buffer' in error.reason
    error = refusal(
        viewed, lambda sch: sch.transform_layout("outer", "A", lambda i: [i // 2, i % 2])
    )
    assert 'a region of it is viewed as buffer "V"' in error.reason
    called = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    with T.block("C"):
        T.reads(A[0:16])
        T.writes(C[0:16])
        T.evaluate(T.call_extern("int32", "copy", A.data, C.data))
"""
    error = refusal(called, lambda sch: sch.transform_layout("C", "A", lambda i: [i // 2, i % 2]))
    assert "its address is used" in error.reason
    error = refusal(CHAIN, lambda sch: sch.transform_layout("C", "D", lambda i, j: [j, i]))
    assert 'The block "C" does not read or write "D"' in error.reason
    assert error.advice == 'it reads "B"; it writes "C"'
    error = refusal(CHAIN, lambda sch: sch.transform_layout("C", ("read", 3), lambda i, j: [j, i]))
    assert "does not read or write ('read', 3)" in error.reason
    with pytest.raises(AssertionError, match="does not read or write"):
        Schedule(module(CHAIN)).transform_layout("C", ("both", 0), lambda i, j: [j, i])


@pytest.mark.parametrize("separators", [[0], [2], [1, 1]])
def test_axis_separators_refused(separators):
    error = refusal(CHAIN, lambda sch: sch.set_axis_separator("B", "B", separators))
    assert "are not rising numbers between 0 and 2" in error.reason


@pytest.mark.parametrize(
    ("index_map", "reason"),
    [
        (lambda i, j: [i // 5, j, i % 5], "is not bijective affine"),
        (lambda i, j: [i % 4, j], "is not injective"),
        (lambda i: [i], 'takes 1 indices, but the block "B" has 2 iterators'),
    ],
)
def test_block_layouts_refused(index_map, reason):
    error = refusal(CHAIN, lambda sch: sch.transform_block_layout("B", index_map))
    assert reason in error.reason
    assert "^^^" in str(error)


def test_iterators_of_different_kinds_stay_apart():
    error = refusal(
        MATMUL, lambda sch: sch.transform_block_layout("C", lambda i, j, k: [i, j * 8 + k])
    )
    assert error.reason == (
        'The new iterator j * 8 + k of block "C" mixes spatial and reduction iterators'
    )


@pytest.mark.parametrize(
    ("index_map", "types"),
    [
        (lambda i, a, k, m: (k, a, i, m), "SSSR"),
        (lambda i, a, k, m: (k + a, i, m), "SSR"),
        (lambda i, a, k, m: (i + k, a + m), "SR"),
    ],
)
def test_iterators_of_one_iteration_have_no_type(index_map, types):
    """The types are TVM's."""
    source = """
@T.prim_func
def main(A: T.Buffer((8, 1, 1, 4), "float32"), B: T.Buffer((8, 1), "float32")):
    for i, a, k, m in T.grid(8, 1, 1, 4):
        with T.block("B"):
            vi, va, vk, vm = T.axis.remap("SSRR", [i, a, k, m])
            with T.init():
                B[vi, va] = T.float32(0)
            B[vi, va] = B[vi, va] + A[vi, va, vk, vm]
"""
    sch = Schedule(module(source))
    inputs = random_inputs(sch.mod)
    expected = outputs(sch.mod, inputs)
    sch.transform_block_layout("B", index_map)
    assert f'T.axis.remap("{types}"' in sch.mod.script()
    for one, other in zip(outputs(sch.mod, inputs), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_loops_whose_domains_depend_on_each_other_are_no_box():
    source = """
@T.prim_func
def main(A: T.Buffer((7, 7), "float32"), B: T.Buffer((7, 7), "float32")):
    for i in range(7):
        for j in range(i + 1):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                vj = T.axis.spatial(7, j)
                B[vi, vj] = A[vi, vj]
"""
    error = refusal(source, lambda sch: sch.transform_block_layout("B", lambda i, j: [j, i]))
    assert 'The domain of loop "j" depends on another loop around block "B"' in error.reason


def test_blocks_whose_loops_have_changed():
    def split(sch):
        sch.split(sch.get_loops("B")[0], [4, 4])
        sch.transform_block_layout("B", lambda i, j: [j, i])

    assert "are not bound to the variables of its loops" in refusal(CHAIN, split).reason

    def moved(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.transform_block_layout("B", lambda i, j: [j, i])

    assert (
        'The loop "i" around block "B" holds other statements too' in refusal(CHAIN, moved).reason
    )


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    C = T.match_buffer(c, (3 * n,), "int32")
    for i, j in T.grid(3, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi * WIDTH + vj] = A[vi, vj] + 1
"""


def test_rows_of_a_symbolic_length_do_not_overlap():
    before = module(SYMBOLIC.replace("WIDTH", "n"))
    sch = Schedule(before)
    sch.transform_block_layout("C", lambda i, j: [j, i])
    a, c = np.arange(12, dtype="int32").reshape(3, 4), np.zeros(12, "int32")
    np.testing.assert_array_equal(outputs(sch.mod, [a, c])[1], a.ravel() + 1)
    shorter = SYMBOLIC.replace("WIDTH", "(n - 1)")
    refusal(shorter, lambda sch: sch.transform_block_layout("C", lambda i, j: [j, i]))


RECURRENCE = """
@T.prim_func
def main(A: T.Buffer((9, 9), "int32")):
    for i, j in T.grid(8, 8):
        with T.block("A"):
            vi = T.axis.scan(8, i)
            vj = T.axis.scan(8, j)
            A[vi + 1, vj] = A[vi, vj + DJ] + A[vi + 1, vj] * 2
"""


@pytest.mark.parametrize(
    ("ahead", "index_map", "kept"),
    [
        ("0", lambda i, j: [j, i], True),  # the element above, which stays before it
        ("1", lambda i, j: [j, i], False),  # above to the right: by columns it would come later
        ("1", lambda i, j: [i * 8 + j], True),
        ("1", lambda i, j: [i // 2, i % 2, j // 4, j % 4], True),
        ("1", lambda i, j: [i // 2, j, i % 2], False),
        ("0", lambda i, j: [i // 2, j // 4, i % 2, j % 4], True),
        ("0", lambda i, j: [7 - i, j], False),
    ],
)
def test_iterations_that_depend_on_each_other_stay_in_order(ahead, index_map, kept):
    before = module(RECURRENCE.replace("DJ", ahead))
    if not kept:
        error = refusal(
            RECURRENCE.replace("DJ", ahead), lambda sch: sch.transform_block_layout("A", index_map)
        )
        assert 'writes elements of "A" that it reads in another iteration' in error.reason
        return
    sch = Schedule(before)
    sch.transform_block_layout("A", index_map)
    arrays = random_inputs(before)
    np.testing.assert_array_equal(outputs(sch.mod, arrays), outputs(before, arrays))


SAMPLED = "index_map=lambda i, j: (i // v4, j, i % v4,)"


def with_sampled_tile(primitive):
    """CHAIN, with a layout of tiles of 4 rows, which are a random variable."""
    sch = Schedule(module(CHAIN))
    rows, _ = sch.get_loops("B")
    _, tile = sch.sample_perfect_tile(rows, 2, decision=[4, 4])
    if primitive == "transform_layout":
        sch.transform_layout("B", ("write", 0), lambda i, j: [i // tile, j, i % tile])
    else:
        sch.transform_block_layout("B", lambda i, j: [i // tile, j, i % tile])
    return sch


@pytest.mark.parametrize("primitive", ["transform_layout", "transform_block_layout"])
def test_a_map_of_a_sampled_tile(primitive):
    sch = with_sampled_tile(primitive)
    recorded = SAMPLED if primitive == "transform_layout" else SAMPLED.replace("v4", "4")
    assert recorded in str(sch.trace)
    replayed = [Schedule(module(CHAIN)) for _ in range(3)]
    names = {"tvm": mlcweb, "tir": mlcweb.tir}
    exec(str(sch.trace), names)
    names["apply_trace"](replayed[0])
    sch.trace.apply_to_schedule(replayed[1])
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), replayed[2])
    for other in replayed:
        assert structural_equal(other.mod, sch.mod)
        assert recorded in str(other.trace)
    arrays = random_inputs(module(CHAIN))
    want = outputs(module(CHAIN), arrays)
    for got, expected in zip(outputs(sch.mod, arrays), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_another_tile_makes_another_layout():
    trace = with_sampled_tile("transform_layout").trace
    sample = next(inst for inst in trace.insts if inst.kind.sampling)
    sch = Schedule(module(CHAIN))
    trace.with_decision(sample, [2, 8], False).apply_to_schedule(sch)
    assert "B = T.alloc_buffer((2, 24, 8))" in sch.mod.script()


def test_a_block_that_reads_earlier_elements_keeps_its_order_and_its_regions():
    sch = Schedule(module(programs("base_programs.txt")["prefix_sums"]))
    before = sch.mod
    sch.transform_layout("S", ("write", 0), lambda i, j: [i, j // 2, j % 2], pad_value=0)
    block = sch.get(sch.get_block("S"))
    written = {str(region) for region in block.writes}
    assert written.isdisjoint(str(region) for region in block.reads)
    assert block.iter_vars[1].iter_type == IterType.ORDERED
    loops = sch.get_loops("S")
    with pytest.raises(ScheduleError):
        sch.reorder(loops[-1], loops[-2])
    inputs = random_inputs(before)
    for found, wanted in zip(outputs(sch.mod, inputs), outputs(before, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
