"""Sampling: TVM's random numbers, perfect tiles, categorical choices."""

import pytest

from mlcweb.tir.schedule import Schedule, ScheduleError
from mlcweb.tir.schedule.random_state import RandomState
from mlcweb.tir.schedule.sampling import draw_perfect_tile, prime_powers
from tests.programs import matmul


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
