"""Random search over schedules, with stand-ins for building and timing."""

from itertools import islice
from typing import Any

import pytest

from mlcweb.ir import IRModule, structural_equal
from mlcweb.meta_schedule.checked_timer import CheckedTimer, WrongResult
from mlcweb.meta_schedule.random_search import best_trial, random_search
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.tir import Schedule


@I.ir_module
class Double:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(2)


@I.ir_module
class Triple:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(3)


def tile(sch: Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, sch.sample_perfect_tile(i, n=2))


def test_equal_programs_are_measured_once() -> None:
    measured: list[IRModule] = []

    def measure(module: IRModule) -> float:
        assert not any(structural_equal(module, known) for known in measured)
        measured.append(module)
        return float(len(measured))

    trials = list(islice(random_search(Double, tile, measure=measure, seed=5), 20))
    states = [trial.state for trial in trials]
    assert states.count("measured") == len(measured) <= 5
    for trial in trials:
        if trial.state == "repeated":
            earlier = trials[trial.same_as]
            assert earlier.state == "measured"
            assert (earlier.seconds, earlier.decisions) == (trial.seconds, trial.decisions)
    assert best_trial(trials) is next(t for t in trials if t.seconds == 1.0)


def test_the_same_seed_makes_the_same_trials() -> None:
    def sampled(seed: int) -> list[Any]:
        trials = random_search(Double, tile, measure=lambda module: 1.0, seed=seed)
        return [(trial.seed, trial.decisions) for trial in islice(trials, 5)]

    assert sampled(1) == sampled(1)
    assert sampled(1) != sampled(2)


def test_every_exception_fails_its_trial_only() -> None:
    def measure(module: IRModule) -> float:
        raise TimeoutError("no result within 10 s")

    trials = list(islice(random_search(Double, tile, measure=measure, seed=5), 20))
    assert {trial.state for trial in trials} == {"failed"}
    assert {trial.reason for trial in trials} == {"TimeoutError: no result within 10 s"}
    assert best_trial(trials) is None


def test_an_interrupt_is_not_swallowed() -> None:
    def measure(module: IRModule) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(random_search(Double, tile, measure=measure))


def test_a_failed_schedule_keeps_the_steps_before() -> None:
    def wrong(sch: Schedule) -> None:
        tile(sch)
        sch.get_block("nothing")

    trial = next(random_search(Double, wrong, measure=lambda module: 1.0))
    assert trial.state == "failed"
    assert "nothing" in (trial.reason or "")
    assert [inst.kind.method for inst in trial.trace.insts][-1] == "split"


def test_checked_timer_times_correct_programs() -> None:
    timer = CheckedTimer(Double, repeat=1, min_repeat_ms=0.0)
    schedule = Schedule(Double, seed=1)
    tile(schedule)
    assert timer(schedule.mod) > 0
    assert timer.baseline_seconds > 0


def test_checked_timer_refuses_wrong_programs() -> None:
    timer = CheckedTimer(Double, repeat=1, min_repeat_ms=0.0)
    with pytest.raises(WrongResult, match=r"64 of 64 elements of B differ.*the first is B\[0\]"):
        timer(Triple)
