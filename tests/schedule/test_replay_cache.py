"""Replays that take over what others did give the same programs and traces."""

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.schedule.replay_cache import ReplayCache
from mlcweb.tir import Schedule
from tests.programs import matmul, matmul_relu


def tiled():
    sch = Schedule(matmul_relu(), seed=1)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(i0, j0, k, i1, j1)
    factor = sch.sample_categorical([2, 4], [0.5, 0.5])
    sch.annotate(block, "note", factor)
    sch.reverse_compute_at(sch.get_block("C"), j0)
    return sch.trace


def replayed(mod, trace, seed, memory=None, decide=lambda *_: None):
    sch = Schedule(mod, seed=seed)
    trace.apply_to_schedule(sch, decision_provider=decide, memory=memory)
    return sch


@pytest.mark.parametrize("max_steps", [2, 1024])
def test_replays_are_what_they_are_without_a_memory(max_steps):
    trace, mod, memory = tiled(), matmul_relu(), ReplayCache(max_steps)
    for seed in range(1, 20):
        alone, remembered = replayed(mod, trace, seed), replayed(mod, trace, seed, memory)
        assert remembered.trace.as_json() == alone.trace.as_json()
        assert_structural_equal(remembered.mod, alone.mod)


def test_the_same_decisions_give_the_same_program():
    trace, mod, memory = tiled(), matmul_relu(), ReplayCache()
    first = replayed(mod, trace, 1, memory)
    steps = memory.steps
    again = replayed(mod, first.trace, 2, memory, decide=lambda inst, i, a, decision: decision)
    assert again.mod is first.mod
    assert again.trace.insts == first.trace.insts
    assert memory.steps == steps == len(trace.insts)


def test_only_what_follows_another_decision_is_done_anew():
    trace, mod, memory = tiled(), matmul_relu(), ReplayCache()
    first = replayed(mod, trace, 1, memory)
    steps = memory.steps
    second_tile = [inst for inst in first.trace.insts if inst.kind.sampling][1]
    other = first.trace.with_decision(second_tile, [15, 2], remove_postproc=True)
    sch = Schedule(mod)
    other.apply_to_schedule(sch, memory=memory)
    position = first.trace.insts.index(second_tile)
    assert memory.steps == steps + len(trace.insts) - position
    assert sch.trace.insts[:position] == first.trace.insts[:position]
    alone = Schedule(mod)
    other.apply_to_schedule(alone)
    assert_structural_equal(sch.mod, alone.mod)


def test_a_schedule_goes_on_from_what_it_took_over():
    trace, mod, memory = tiled(), matmul_relu(), ReplayCache()
    for _ in range(2):
        sch = replayed(mod, trace, 1, memory)
        sch.unroll(sch.get_loops(sch.get_block("Y"))[-1])
        assert sch.trace.insts[-1].kind.name == "Unroll"
    assert "Unroll" not in {inst.kind.name for inst in replayed(mod, trace, 1, memory).trace.insts}


def test_decisions_that_are_mended_and_ones_that_fail():
    trace, mod, memory = tiled(), matmul_relu(), ReplayCache()
    for _ in range(2):
        mended = replayed(
            mod, trace, 1, memory, lambda inst, *_: [3, 4] if inst.attrs[0] == 2 else 0
        )
        tile = next(inst for inst in mended.trace.insts if inst.kind.sampling)
        assert mended.trace.get_decision(tile) == [1, 30]
        with pytest.raises(ScheduleError, match="not a list of 2 positive"):
            replayed(mod, trace, 1, memory, lambda *_: [0])


def test_arithmetic_on_sampled_values_is_not_remembered():
    sch = Schedule(matmul())
    i = sch.get_loops("C")[0]
    outer, inner = sch.sample_perfect_tile(i, n=2, decision=[32, 4])
    sch.split(i, [outer // 2, inner * 2])
    memory = ReplayCache()
    for _ in range(2):
        again = Schedule(matmul())
        sch.trace.apply_to_schedule(again, memory=memory)
        assert_structural_equal(again.mod, sch.mod)
        assert again.trace.as_json() == sch.trace.as_json()
    assert memory.steps == len(sch.trace.insts) - 1
