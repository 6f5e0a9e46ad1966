"""Measuring in processes and in this one: what is right is timed, what goes wrong costs itself."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.artifact import Artifact, ModuleArtifact, WasmArtifact, build_artifact
from mlcweb.meta_schedule.process_pool import WorkerDied
from mlcweb.meta_schedule.process_runner import ProcessRunner
from mlcweb.meta_schedule.runner import (
    MIN_BATCHES,
    Runner,
    RunnerClosed,
    ThreadRunner,
    Timing,
    run_here,
)
from mlcweb.meta_schedule.trial_inputs import WrongResult, random_inputs
from mlcweb.runtime.host.arena import OutOfMemory
from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.tir import Schedule
from tests.meta_schedule import programs

BRIEF = Timing(batches=2, min_ms=0.01)


def code(module: IRModule) -> Artifact:
    return build_artifact(module, "main")


@asynccontextmanager
async def opened(runner: Runner, reference: IRModule) -> AsyncIterator[Runner]:
    try:
        assert len(await runner.begin(code(reference))) == BRIEF.batches
        yield runner
    finally:
        runner.close()


def processes(module: IRModule, **options: Any) -> ProcessRunner:
    return ProcessRunner(random_inputs(module), timing=BRIEF, **options)


@pytest.mark.parametrize("make", [lambda work: ThreadRunner(work, BRIEF), ProcessRunner])
@pytest.mark.parametrize("target", ["wasm", "numpy"])
def test_correct_programs_are_timed_and_wrong_ones_refused(
    make: Callable[..., Runner], target: str
) -> None:
    async def main() -> None:
        runner = make(random_inputs(programs.Double))
        try:
            await runner.begin(build_artifact(programs.Double, "main", target))
            schedule = Schedule(programs.Double, seed=1)
            programs.tile(schedule)
            seconds = await runner.run(build_artifact(schedule.mod, "main", target))
            assert seconds
            assert all(second > 0 for second in seconds)
            with pytest.raises(WrongResult, match=r"64 of 64 elements of B .* first is B\[0\]"):
                await runner.run(build_artifact(programs.Triple, "main", target))
        finally:
            runner.close()

    asyncio.run(main())


def test_code_travels_as_bytes_and_is_equal_where_the_bytes_are() -> None:
    artifact = code(programs.Double)
    assert isinstance(artifact, WasmArtifact)
    assert artifact.code.startswith(b"\0asm")
    assert artifact == code(programs.Double) != code(programs.Triple)
    assert isinstance(build_artifact(programs.Double, "main", "numpy"), ModuleArtifact)


def test_each_fault_costs_its_own_trial() -> None:
    async def main() -> None:
        async with opened(processes(programs.Copy, workers=2, timeout_s=1.0), programs.Copy) as r:
            faults = [programs.Divides, programs.Hangs, programs.Huge]
            mixed = [each for fault in faults for each in (fault, programs.Copy)]
            outcomes = await asyncio.gather(
                *(r.run(code(module)) for module in mixed), return_exceptions=True
            )
        trap, _, hang, _, huge, _ = outcomes
        assert isinstance(trap, KernelTrap)
        assert trap.message.endswith("was stopped: it divided an integer by zero")
        assert isinstance(hang, TimeoutError)
        assert str(hang) == "no result within 1 s"
        assert isinstance(huge, OutOfMemory)
        assert [len(times) for times in outcomes[1::2] if isinstance(times, tuple)] == [2, 2, 2]

    asyncio.run(main())


def test_a_worker_killed_mid_trial_costs_one_trial() -> None:
    async def main() -> None:
        async with opened(processes(programs.Copy, timeout_s=60.0), programs.Copy) as runner:
            lost = asyncio.ensure_future(runner.run(code(programs.Hangs)))
            after = asyncio.ensure_future(runner.run(code(programs.Copy)))
            await asyncio.sleep(0.3)
            assert isinstance(runner, ProcessRunner)
            (worker,) = runner._pool._workers
            os.kill(worker.process.pid, signal.SIGKILL)
            with pytest.raises(WorkerDied, match="killed by SIGKILL"):
                await lost
            assert len(await after) == BRIEF.batches

    asyncio.run(main())


def test_closing_ends_what_runs_and_what_waits() -> None:
    async def main() -> None:
        runner = processes(programs.Copy, timeout_s=60.0)
        async with opened(runner, programs.Copy):
            under_way = [
                asyncio.ensure_future(runner.run(code(programs.Hangs))),
                asyncio.ensure_future(runner.run(code(programs.Copy))),
            ]
            await asyncio.sleep(0.1)
        outcomes = await asyncio.gather(*under_way, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [RunnerClosed, RunnerClosed]
        with pytest.raises(RunnerClosed):
            await runner.run(code(programs.Copy))

    within_seconds(main())


def within_seconds(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


@pytest.mark.thorough
def test_memory_stays_bounded_over_thousands_of_trials() -> None:
    async def main() -> list[int]:
        runner = ThreadRunner(random_inputs(programs.Double), Timing(batches=1, min_ms=0.0))
        artifacts = [code(programs.Double), code(tiled(8)), code(tiled(32))]
        sizes = []
        await runner.begin(artifacts[0])
        for index in range(2000):
            await runner.run(artifacts[index % 3])
            if index % 500 == 499:
                gc.collect()
                sizes.append(resident_bytes())
        return sizes

    before = engine().nbytes
    sizes = asyncio.run(main())
    assert engine().nbytes == before
    # What one trial keeps would show 1500 times over: this is less than 3 KB of it.
    assert sizes[-1] - sizes[0] < 4 << 20


def tiled(factor: int) -> IRModule:
    schedule = Schedule(programs.Double)
    schedule.split(schedule.get_loops(schedule.get_block("B"))[0], [None, factor])
    return schedule.mod


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_takes_far_longer_than_the_best_is_not_timed_further() -> None:
    timing = Timing(batches=4, min_ms=0.0)
    assert timing.beside(1e-3).hopeless_s == pytest.approx(3e-3)
    assert Timing(min_ms=5.0).beside(1e-3).hopeless_s == pytest.approx(5e-3)
    workload = random_inputs(programs.Double)
    timed, _ = run_here(code(programs.Double), workload, timing.beside(1.0))
    assert (len(timed.seconds), len(timed.paces)) == (4, 5)
    timed, _ = run_here(code(programs.Double), workload, timing.beside(1e-12))
    assert (len(timed.seconds), len(timed.paces)) == (1, 0)


def test_of_a_program_with_long_batches_there_are_fewer() -> None:
    work = random_inputs(programs.Double)
    timed, _ = run_here(code(programs.Double), work, Timing(min_ms=0.1, enough_ms=0.0))
    assert (len(timed.seconds), len(timed.paces)) == (MIN_BATCHES, MIN_BATCHES + 1)
    timed, _ = run_here(code(programs.Double), work, Timing(2, min_ms=0.1, enough_ms=0.0))
    assert len(timed.seconds) == 2


@pytest.mark.parametrize("make", [ThreadRunner, ProcessRunner])
def test_runners_remember_the_best(make: Any) -> None:
    async def main() -> None:
        runner = make(random_inputs(programs.Double), timing=Timing(batches=3, min_ms=0.0))
        try:
            await runner.begin(code(programs.Double))
            assert len(await runner.run(code(programs.Double))) == 3
            # Beside one that takes no time at all, every other is hopeless.
            runner._state._best = 1e-12
            assert len(await runner.run(code(programs.Double))) == 1
        finally:
            runner.close()

    asyncio.run(main())
