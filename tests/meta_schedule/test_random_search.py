"""Random search and its last rounds, with stand-ins for building and timing."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mlcweb.ir import IRModule, structural_equal
from mlcweb.meta_schedule.database import MemoryDatabase
from mlcweb.meta_schedule.events import Confirmed, Ended, Event, Round, Started, Trial, best_trial
from mlcweb.meta_schedule.history import History
from mlcweb.meta_schedule.measure.artifact import Artifact, ModuleArtifact
from mlcweb.meta_schedule.measure.measuring import ROUNDS, Finalists
from mlcweb.meta_schedule.measure.runner import RunnerClosed, Seconds
from mlcweb.meta_schedule.search import search
from mlcweb.meta_schedule.search_strategy.replay import CallFunction
from mlcweb.meta_schedule.space_generator import ScheduleFn
from mlcweb.runtime.build import reset_warnings
from mlcweb.tir import Schedule
from mlcweb.tir.function import SCHEDULED
from tests.meta_schedule.matmul import Matmul, tiles
from tests.meta_schedule.matmul import seconds as time_of
from tests.meta_schedule.programs import Double, tile


class FakeRunner:
    """A clock of our own: a program takes as many seconds as its inner loop has iterations, in the
    order of `delays` turns of the event loop."""

    def __init__(self, workers: int = 1, delays: tuple[int, ...] = (1,)) -> None:
        self.workers = workers
        self.delays = delays
        self.measured: list[IRModule] = []
        self.under_way = 0
        self.most_under_way = 0
        self.closed = False

    async def build(self, module: IRModule, target: str) -> Artifact:
        return ModuleArtifact(module, "main", target)

    async def begin(self, reference: Artifact) -> Seconds:
        return (64.0,)

    async def measure(self, artifact: Artifact) -> Seconds:
        assert isinstance(artifact, ModuleArtifact)
        number = len(self.measured)
        self.measured.append(artifact.module)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(self.delays[number % len(self.delays)]):
            await asyncio.sleep(0)
        self.under_way -= 1
        if self.closed:
            raise RunnerClosed("closed")
        return self.seconds(artifact.module)

    def seconds(self, module: IRModule) -> Seconds:
        return (float(inner_extent(module)),) * 3

    def close(self) -> None:
        self.closed = True


class FailingRunner(FakeRunner):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def seconds(self, module: IRModule) -> Seconds:
        raise self.error


def inner_extent(module: IRModule) -> int:
    schedule = Schedule(module)
    return int(schedule.get(schedule.get_loops(schedule.get_block("B"))[-1]).extent)


def events(
    runner: FakeRunner, limit: int | None = 20, seed: int = 5, function: Any = tile
) -> AsyncIterator[Event]:
    history = History(MemoryDatabase(), Double)
    return search(
        Double, None, CallFunction(function), runner=runner, history=history, target="numpy",
        seed=seed, trials=limit,
    )  # fmt: skip


def searched(runner: FakeRunner, limit: int = 20, seed: int = 5, function: Any = tile) -> list:
    """The trials before the last rounds."""

    async def main() -> list[Trial]:
        found = []
        async for event in events(runner, limit, seed, function):
            if isinstance(event, Trial):
                found.append(event)
            elif isinstance(event, Round):
                return found
        return found

    return asyncio.run(main())


def test_equal_programs_are_measured_once() -> None:
    runner = FakeRunner()
    trials = sorted(searched(runner), key=lambda trial: trial.index)
    assert [trial.index for trial in trials] == list(range(20))
    assert len(runner.measured) <= 5
    for index, module in enumerate(runner.measured):
        assert not any(structural_equal(module, known) for known in runner.measured[:index])
    assert [t.state for t in trials].count("measured") == len(runner.measured)
    for trial in trials:
        if trial.state == "repeated":
            assert trial.same_as is not None
            earlier = trials[trial.same_as]
            assert earlier.state == "measured"
            assert (earlier.run_secs, earlier.decisions) == (trial.run_secs, trial.decisions)
    assert best_trial(trials) is min(trials, key=lambda trial: trial.seconds or math.inf)


def test_equal_code_is_measured_once() -> None:
    class OneCode(FakeRunner):
        async def build(self, module: IRModule, target: str) -> Artifact:
            return ModuleArtifact(Double, "main", "numpy")

    runner = OneCode()
    trials = searched(runner, 10)
    assert len(runner.measured) == 1
    assert [trial.same_as for trial in trials if trial.index] == [0] * 9


def test_the_same_seed_makes_the_same_trials() -> None:
    def made(seed: int, delays: tuple[int, ...] = (1,)) -> list[Any]:
        trials = searched(FakeRunner(2, delays), 8, seed)
        return sorted((trial.index, trial.seed, trial.decisions, trial.seconds) for trial in trials)

    assert made(1) == made(1)
    assert made(1) != made(2)
    # However long each takes.
    assert made(1) == made(1, (7, 1, 3))


def test_workers_are_kept_busy_and_no_more_is_sampled_than_that_takes() -> None:
    runner = FakeRunner(2, (9,))
    sampled = []

    def counted(sch: Schedule) -> None:
        sampled.append(len(sampled))
        (i,) = sch.get_loops(sch.get_block("B"))
        sch.annotate(i, "number", len(sampled))

    async def main() -> None:
        async for trial in events(runner, None, function=counted):
            if isinstance(trial, Trial):
                assert len(sampled) <= trial.index + 1 + 2 * runner.workers
                if trial.index == 10:
                    break

    asyncio.run(main())
    assert runner.most_under_way == 4


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func", "evolutionary", "exhaustive"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_ends_with_as_many_trials_as_it_may_make(strategy: str, workers: int) -> None:
    """Neither the size of rounds nor programs that are under way at the end change the number."""

    class Runner(FakeRunner):
        def seconds(self, module: IRModule) -> Seconds:
            return (time_of(module),)

    async def main() -> list[Event]:
        history = History(MemoryDatabase(), Matmul)
        runner = Runner(workers, (9, 1, 4))
        return [
            event
            async for event in search(
                Matmul, ScheduleFn(tiles, sch_rules=[], postprocs=[], mutator_probs={}), strategy,
                runner=runner, history=history, target="numpy", seed=3, trials=21,
            )
        ]  # fmt: skip

    came = asyncio.run(main())
    trials = [event for event in came if isinstance(event, Trial)]
    assert sorted(trial.index for trial in trials) == list(range(21))
    assert came[-1] == Ended(21)


def test_trials_come_as_they_are_done() -> None:
    def distinct(sch: Schedule) -> None:
        (i,) = sch.get_loops(sch.get_block("B"))
        sch.annotate(i, "number", sch.sample_categorical(list(range(1000)), [1e-3] * 1000))

    trials = searched(FakeRunner(2, (30, 1)), 6, function=distinct)
    assert sorted(trial.index for trial in trials) == list(range(6))
    assert trials[0].index == 1


def test_every_exception_fails_its_trial_only() -> None:
    trials = searched(FailingRunner(TimeoutError("no result within 10 s")))
    assert len(trials) == 20
    assert {trial.state for trial in trials} == {"failed"}
    assert {trial.reason for trial in trials} == {"TimeoutError: no result within 10 s"}
    assert best_trial(trials) is None


def test_a_program_that_cannot_be_built_fails_its_trial() -> None:
    class Refuses(FakeRunner):
        async def build(self, module: IRModule, target: str) -> Artifact:
            if module is not Double:
                raise ValueError("no form")
            return await super().build(module, target)

    assert {trial.reason for trial in searched(Refuses(), 3)} == {"ValueError: no form"}


def test_an_interrupt_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        searched(FailingRunner(KeyboardInterrupt()))


def test_a_failed_schedule_keeps_the_steps_before() -> None:
    def wrong(sch: Schedule) -> None:
        tile(sch)
        sch.get_block("nothing")

    (trial,) = searched(FakeRunner(), 1, function=wrong)
    assert trial.state == "failed"
    assert "nothing" in (trial.reason or "")
    assert [inst.kind.method for inst in trial.trace.insts][-1] == "split"


def test_closing_the_runner_keeps_what_was_done() -> None:
    async def main() -> list[Trial]:
        runner = FakeRunner(2, (1, 1, 1, 50))
        found: list[Trial] = []
        told: list[Event] = []
        async for event in events(runner, None):
            told.append(event)
            if isinstance(event, Trial):
                found.append(event)
                if len(found) == 3:
                    runner.close()
        assert told[-1] == Ended(len(found))
        return found

    found = asyncio.run(main())
    assert len(found) >= 3
    assert all(trial.seconds is not None for trial in found)


class NoisyRunner(FakeRunner):
    """Beside other programs a program takes ten times as long, but for one lucky batch."""

    def seconds(self, module: IRModule) -> Seconds:
        true = float(inner_extent(module))
        return (true,) * 3 if self.under_way == 0 and self.quiet else (true, 10 * true, 11 * true)

    quiet = False


def test_the_best_are_measured_again_in_turn_and_decide() -> None:
    async def main() -> tuple[list[Trial], list[int]]:
        runner = NoisyRunner(2)
        best = Finalists(2)
        trials: dict[int, Trial] = {}
        async for event in events(runner):
            if isinstance(event, Round):
                break
            if isinstance(event, Trial):
                trials[event.index] = event
                best.add(event)
        runner.quiet = True
        runner.measured.clear()
        async for trial in best.confirm(runner, "numpy"):
            assert trial.confirmed
            trials[trial.index] = trial
        return [*trials.values()], [inner_extent(module) for module in runner.measured]

    trials, order = asyncio.run(main())
    fastest, second = sorted({inner_extent(trial.module) for trial in trials})[:2]
    assert order == [fastest, second] * ROUNDS
    best = best_trial(trials)
    assert best is not None
    assert best.confirmed
    assert best.run_secs == (float(fastest),) * 3 * ROUNDS
    for trial in trials:
        if inner_extent(trial.module) == fastest:
            assert (trial.confirmed, trial.seconds) == (True, float(fastest))


def test_a_confirmed_time_goes_before_a_shorter_one_that_is_not() -> None:
    (trial,) = searched(FakeRunner(), 1)
    lucky = Trial(1, 1, trial.trace, trial.module, run_secs=(0.5,))
    sure = Trial(2, 1, trial.trace, trial.module, run_secs=(1.0,), confirmed=True)
    assert best_trial([lucky, sure]) is sure
    assert best_trial([lucky]) is lucky


def test_a_search_tells_its_start_each_trial_the_rounds_what_is_confirmed_and_its_end() -> None:
    async def main() -> list[Event]:
        return [event async for event in events(FakeRunner(), 6)]

    told = asyncio.run(main())
    assert told[0] == Started((64.0,), 1, 64.0)
    assert [event.index for event in told[1:7] if isinstance(event, Trial)] == list(range(6))
    assert told[7] == Round(0, min(event.seconds for event in told[1:7]))
    assert all(isinstance(event, Confirmed) and event.trial.confirmed for event in told[8:-1])
    # Every trial shares its program with one of the best.
    assert sorted(event.trial.index for event in told[8:-1]) == list(range(6))
    assert told[-1] == Ended(6)


class SlowAsWritten(FakeRunner):
    """A runner for which programs without a schedule take too long, or all."""

    def __init__(self, scheduled_too: bool = False) -> None:
        super().__init__()
        self.begun: list[IRModule] = []
        self.scheduled_too = scheduled_too

    async def begin(self, reference: Artifact) -> Seconds:
        assert isinstance(reference, ModuleArtifact)
        self.begun.append(reference.module)
        if self.scheduled_too or SCHEDULED not in reference.module["main"].attrs:
            raise TimeoutError("no result within 10 s")
        return (2.0,)

    def first_event(self, target: str) -> Event:
        history = History(MemoryDatabase(), Matmul)
        events = search(Matmul, runner=self, history=history, target=target, trials=1)

        async def first() -> Event:
            return await anext(aiter(events))

        return asyncio.run(first())


@pytest.mark.parametrize("target", ["llvm", "nvidia/nvidia-a100"])
def test_what_takes_too_long_as_written_is_compared_with_its_default_schedule(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reset_warnings()
    runner = SlowAsWritten()
    started = runner.first_event(target)
    assert isinstance(started, Started)
    assert started.baseline == (2.0,)
    as_written, scheduled = runner.begun
    assert structural_equal(as_written, Matmul)
    assert SCHEDULED in scheduled["main"].attrs
    assert "blockIdx.x" not in scheduled.script()
    assert "as it stands gives no result within 10 s" in capsys.readouterr().err


def test_what_takes_too_long_with_its_default_schedule_is_not_searched() -> None:
    with pytest.raises(TimeoutError, match="no result within 10 s"):
        SlowAsWritten(scheduled_too=True).first_event("llvm")
