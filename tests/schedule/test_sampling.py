"""Sampling: TVM's random numbers, perfect tiles, categorical choices."""

import pytest

from mlcweb.schedule import Schedule, ScheduleError
from mlcweb.schedule.sampling import RandomState, draw_perfect_tile, prime_powers
from mlcweb.testing import verify_trace_roundtrip
from tests.programs import matmul
from tests.schedule.case_files import module


def test_draws_are_those_of_tvm():
    random = RandomState(42)
    pairs = [draw_perfect_tile(random, 128, 2, 16) for _ in range(8)]
    assert pairs == [
        [16, 8], [8, 16], [32, 4], [128, 1], [32, 4], [32, 4], [64, 2], [16, 8],
    ]  # fmt: skip
    fours = [draw_perfect_tile(random, 128, 4, 64) for _ in range(4)]
    assert fours == [[2, 4, 8, 2], [2, 4, 8, 2], [1, 16, 1, 8], [1, 16, 4, 2]]


@pytest.mark.parametrize("extent", [1, 2, 97, 360, 1024, 1000003])
def test_tiles_multiply_to_the_extent(extent):
    random = RandomState(7)
    for n in (1, 2, 3, 5):
        for _ in range(20):
            tile = draw_perfect_tile(random, extent, n, -1)
            product = 1
            for factor in tile:
                product *= factor
            assert product == extent
            assert len(tile) == n


def test_prime_powers():
    assert prime_powers(360) == [(2, 3), (3, 2), (5, 1)]
    assert prime_powers(1) == []


def test_the_innermost_factor_is_limited():
    random = RandomState(3)
    assert max(draw_perfect_tile(random, 1024, 2, 16)[1] for _ in range(200)) == 16


def test_a_schedule_with_a_seed_repeats():
    def draw():
        sch = Schedule(matmul(), seed=11)
        loops = sch.get_loops(sch.get_block("C"))
        return [sch.get(f) for _ in range(5) for f in sch.sample_perfect_tile(loops[0], n=3)]

    assert draw() == draw()


def test_a_decision_that_does_not_divide_is_mended():
    sch = Schedule(matmul())
    loop = sch.get_loops(sch.get_block("C"))[0]
    factors = sch.sample_perfect_tile(loop, n=3, decision=[4, 3, 2])
    assert [sch.get(f) for f in factors] == [1, 64, 2]


def test_a_decision_of_the_wrong_length_is_refused():
    sch = Schedule(matmul())
    loop = sch.get_loops(sch.get_block("C"))[0]
    with pytest.raises(ScheduleError, match="not a list of 2 positive integers"):
        sch.sample_perfect_tile(loop, n=2, decision=[4, 4, 8])


def test_categorical_respects_probabilities():
    sch = Schedule(matmul(), seed=5)
    drawn = [sch.get(sch.sample_categorical([3, 5], [0.9, 0.1])) for _ in range(300)]
    assert set(drawn) == {3, 5}
    assert 240 <= drawn.count(3) <= 295
    assert sch.get(sch.sample_categorical([3, 5], [0.9, 0.1], decision=1)) == 5


def test_categorical_refuses_a_decision_out_of_range():
    sch = Schedule(matmul())
    with pytest.raises(ScheduleError, match="not an index into the 2 candidates"):
        sch.sample_categorical([3, 5], [0.5, 0.5], decision=2)


def test_three_factors_are_drawn_as_in_tvm():
    seeds = (12345, 99999, 777777, 31337, 424242, 8888888)
    assert [draw_perfect_tile(RandomState(seed), 32, 3, 64) for seed in seeds] == [
        [2, 8, 2], [1, 1, 32], [2, 2, 8], [8, 1, 4], [4, 1, 8], [32, 1, 1],
    ]  # fmt: skip
    assert [draw_perfect_tile(RandomState(seed), 24, 4, 64) for seed in seeds] == [
        [1, 1, 4, 6], [3, 1, 4, 2], [1, 1, 3, 8], [1, 3, 4, 2], [2, 1, 1, 12], [2, 4, 1, 3],
    ]  # fmt: skip


PAIR = """
@T.prim_func
def main(A: T.Buffer((48, 48), "float32"), C: T.Buffer((48, 48), "float32")):
    B = T.alloc_buffer((48, 48))
    for i, j in T.grid(48, 48):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(48, 48):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
"""


@pytest.mark.parametrize(
    ("decision", "position", "factor", "factors"),
    [
        ([3, 3, 4], 2, 4, [4, 3, 4]),
        ([5, 4, 4], 2, 4, [3, 4, 4]),
        ([4, 3, 5], 1, 3, [1, 1, 48]),
        ([7, 2, 6], 1, 4, [4, 2, 6]),
        ([3, 3, 3], 1, 4, [12, 4, 1]),
        ([4, 4, 3], 2, 5, [-1, 1, 1]),
    ],
)
def test_partitioned_decisions_are_mended_as_in_tvm(decision, position, factor, factors):
    sch = Schedule(module(PAIR))
    loop = sch.get_loops("C")[0]
    tile = sch.sample_partitioned_tile(loop, 3, position, factor, decision=decision)
    assert [sch.get(f) for f in tile] == factors


def test_the_inner_part_is_a_multiple():
    sch = Schedule(module(PAIR), seed=9)
    loop = sch.get_loops("C")[0]
    for _ in range(50):
        a, b, c = (sch.get(f) for f in sch.sample_partitioned_tile(loop, 3, 1, 6))
        assert a * b * c == 48
        assert b * c % 6 == 0
    with pytest.raises(ScheduleError, match="There is no tiling into 3 factors"):
        sch.sample_partitioned_tile(loop, 3, 3, 4)
    with pytest.raises(ScheduleError, match="at least two factors"):
        sch.sample_partitioned_tile(loop, 1, 1)


def test_compute_locations():
    sch = Schedule(module(PAIR), seed=2)
    drawn = {sch.trace.get_decision(_sampled(sch, "B")) for _ in range(40)}
    assert drawn == {-2, -1, 0, 1}
    assert {sch.trace.get_decision(_sampled(sch, "C")) for _ in range(5)} == {-1}


def _sampled(sch, block):
    sch.sample_compute_location(block)
    return sch.trace.insts[-1]


@pytest.mark.parametrize(("decision", "kept"), [(7, 1), (0, 0), (-1, -1), (-2, -2), (-9, -1)])
def test_an_impossible_location_becomes_the_next_one_outside(decision, kept):
    sch = Schedule(module(PAIR))
    sch.sample_compute_location("B", decision=decision)
    assert sch.trace.get_decision(sch.trace.insts[-1]) == kept


def test_special_locations():
    sch = Schedule(module(PAIR))
    block = sch.get_block("B")
    before = str(sch.mod)
    root = sch.sample_compute_location(block, decision=-1)
    sch.compute_at(block, root)
    sch.reverse_compute_at("C", root)
    assert str(sch.mod) == before
    with pytest.raises(IndexError, match="not a loop of this schedule"):
        sch.split(root, [None, 2])
    sch.compute_at(block, sch.sample_compute_location(block, decision=-2))
    assert "A[vi, vj] + T.float32(1)) * T.float32(2)" in str(sch.mod)
    again = Schedule(module(PAIR))
    sch.trace.apply_to_schedule(again)
    assert str(again.mod) == str(sch.mod)


def test_reverse_compute_at_inline():
    sch = Schedule(module(PAIR))
    inline = sch.sample_compute_location("B", decision=-2)
    sch.reverse_compute_at("C", inline)
    assert [sch.get(b).name_hint for b in sch.get_child_blocks("root")] == ["B"]


@pytest.mark.parametrize(
    "probabilities", [[float("nan"), 0.5], [-1.0, 2.0], [0.0, 0.0], [float("inf"), 0.0]]
)
def test_probabilities_are_finite_and_not_negative(probabilities):
    with pytest.raises(ScheduleError, match="are no probabilities"):
        Schedule(matmul()).sample_categorical([1, 2], probabilities)


def test_a_factor_to_be_inferred_is_none():
    before = module("""
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
""")
    sch = Schedule(before)
    (loop,) = sch.get_loops(sch.get_block("B"))
    first, second, third = sch.sample_perfect_tile(loop, n=3)
    assert first is None
    assert (sch.get(second), sch.get(third)) == (1, 1)
    sch.split(loop, [first, second, third])
    lines = sch.trace.as_python()
    assert lines[2].startswith("_, v3, v4 = sch.sample_perfect_tile(loop=l1, n=3")
    assert "decision=[-1, 1, 1]" in lines[2]
    assert lines[3].startswith("l5, l6, l7 = sch.split(loop=l1, factors=[None, v3, v4]")
    assert sch.trace.as_json()[0][2][3] == ["_", "v3", "v4"]
    for again in (Schedule(before), Schedule(before)):
        sch.trace.apply_to_schedule(again)
        assert again.trace.as_python() == lines
    verify_trace_roundtrip(sch, before)
    # A candidate of -1 is a number as any other.
    assert sch.get(sch.sample_categorical([-1], [1.0])) == -1
