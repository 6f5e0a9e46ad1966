"""Measuring in processes and in this one: what is right is timed, what goes wrong costs itself."""

import asyncio
import gc
import math
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.measure import runner as measuring
from mlcweb.meta_schedule.measure.artifact import (
    Artifact,
    ModuleArtifact,
    NativeArtifact,
    TrialInputs,
    WasmArtifact,
    WrongResult,
    build_artifact,
    random_contents,
    random_inputs,
    tolerance,
)
from mlcweb.meta_schedule.measure.process_pool import ProcessRunner, WorkerDied
from mlcweb.meta_schedule.measure.runner import (
    MIN_BATCHES,
    EvaluatorConfig,
    Runner,
    RunnerClosed,
    ThreadRunner,
    Timing,
    run_here,
)
from mlcweb.runtime.benchmark import FLUSH, flush_caches
from mlcweb.runtime.host.arena import OutOfMemory
from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.host.traps import KernelTrap
from mlcweb.runtime.registry import register_func
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule import programs
from tests.waiting import HANG_S, until_it_computes

BRIEF = Timing(batches=2, min_ms=0.01)


def code(module: IRModule) -> Artifact:
    return build_artifact(module, "main", "wasm")


@asynccontextmanager
async def opened(runner: Runner, reference: IRModule) -> AsyncIterator[Runner]:
    try:
        assert len(await runner.begin(code(reference))) == BRIEF.batches
        yield runner
    finally:
        runner.close()


def processes(module: IRModule, workers: int = 1) -> ProcessRunner:
    return ProcessRunner(random_inputs(module), timing=BRIEF, workers=workers, timeout_s=HANG_S)


@pytest.mark.parametrize("make", [lambda work: ThreadRunner(work, BRIEF), ProcessRunner])
@pytest.mark.parametrize("target", ["llvm", "wasm", "numpy"])
def test_correct_programs_are_timed_and_wrong_ones_refused(
    make: Callable[..., Runner], target: str
) -> None:
    async def main() -> None:
        runner = make(random_inputs(programs.Double))
        try:
            await runner.begin(build_artifact(programs.Double, "main", target))
            schedule = Schedule(programs.Double, seed=1)
            programs.tile(schedule)
            seconds = await runner.measure(build_artifact(schedule.mod, "main", target))
            assert seconds
            assert all(second > 0 for second in seconds)
            with pytest.raises(WrongResult, match=r"64 of 64 elements of B .* first is B\[0\]"):
                await runner.measure(build_artifact(programs.Triple, "main", target))
        finally:
            runner.close()

    asyncio.run(main())


def test_results_may_be_infinite_or_not_a_number_where_the_program_has_them_so() -> None:
    def check(result: list[float], expected: list[float]) -> None:
        got, wanted = (np.array(values, "float32") for values in (result, expected))
        TrialInputs("main", ("B",), ("float32",), (got,), (wanted,)).check((got,))

    nan, infinite = float("nan"), float("inf")
    check([nan, infinite, -infinite, 1.00001], [nan, infinite, -infinite, 1.0])
    for wrong in ([1.0, 1.0], [nan, 1.0], [infinite, nan], [-infinite, 1.0], [infinite, 1.1]):
        with pytest.raises(WrongResult, match="1 of 2"):
            check(wrong, [infinite, 1.0])


@pytest.mark.parametrize("target", ["llvm", "wasm", "numpy"])
def test_bfloat16_is_compared_with_a_tolerance_of_its_own(target: str) -> None:
    module = programs.BFloat16Product
    inputs = random_inputs(module)
    a, b, _ = inputs.inputs
    assert inputs.dtypes == ("bfloat16",) * 3
    assert [str(array.dtype) for array in inputs.inputs] == ["float32"] * 3
    assert not ((a.view("uint32") | b.view("uint32")) & 0xFFFF).any()
    _, (_, _, c) = run_here(build_artifact(module, "main", target), inputs, BRIEF)
    np.testing.assert_allclose(c, a @ b, atol=tolerance(a @ b, "bfloat16"))
    split = Schedule(module)
    split.rfactor(split.split(split.get_loops("C")[2], [4, None])[1], 2)
    wrong = from_source(module.script().replace("+ A[vi, vk] * B[vk, vj]", "+ A[vi, vk]"))

    async def main() -> None:
        runner = ThreadRunner(inputs, BRIEF)
        await runner.begin(build_artifact(module, "main", target))
        assert await runner.measure(build_artifact(split.mod, "main", target))
        with pytest.raises(WrongResult, match="elements of C differ"):
            await runner.measure(build_artifact(wrong, "main", target))

    asyncio.run(main())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_contents_have_the_shapes_that_were_asked_for(dtype: str) -> None:
    shapes = [(), (1,), (2, 3)]
    contents = random_contents([(shape, dtype) for shape in shapes])
    assert [content.shape for content in contents] == shapes
    assert tvm.nd.array(contents[0]).shape == ()


def test_a_search_of_a_type_that_arrays_have_not_says_so() -> None:
    narrow = programs.BFloat16Product.script().replace("bfloat16", "float8_e3m4")
    with pytest.raises(TVMError, match="NumPy has no float8_e3m4"):
        random_inputs(from_source(narrow))


def test_code_travels_as_bytes_and_is_equal_where_the_bytes_are() -> None:
    for target, kind in ("llvm", NativeArtifact), ("wasm", WasmArtifact):
        artifact, again = (build_artifact(programs.Double, "main", target) for _ in range(2))
        assert isinstance(artifact, kind)
        assert artifact == again != build_artifact(programs.Triple, "main", target)
    assert isinstance(build_artifact(programs.Double, "main", "numpy"), ModuleArtifact)


def test_a_loop_on_threads_is_no_code_that_stands_alone() -> None:
    parallel = from_source(
        "@T.prim_func\n"
        'def main(A: T.Buffer((4, 1000000), "float32"), B: T.Buffer((4, 1000000), "float32")):\n'
        "    for i in T.parallel(4):\n"
        "        for j in range(1000000):\n"
        "            B[i, j] = T.tanh(A[i, j])\n"
    )
    module = IRModule({"main": parallel})
    for target in ("llvm", "wasm"):
        artifact = build_artifact(module, "main", target)
        assert isinstance(artifact, ModuleArtifact)
    _, (a, b) = run_here(artifact, random_inputs(module, "main"), BRIEF)
    np.testing.assert_allclose(b, np.tanh(a), rtol=1e-5, atol=1e-6)


def test_machine_code_says_why_it_stopped() -> None:
    artifact = build_artifact(programs.Divides, "main", "llvm")
    with pytest.raises(KernelTrap, match="was stopped: it divided an integer by zero"):
        run_here(artifact, random_inputs(programs.Divides), BRIEF)


def test_each_fault_costs_its_own_trial() -> None:
    async def main() -> None:
        runner = processes(programs.Copy, workers=2)
        async with opened(runner, programs.Copy):
            mixed = [programs.Divides, programs.Copy, programs.Huge, programs.Copy]
            trap, one, huge, other = await asyncio.gather(
                *(runner.measure(code(module)) for module in mixed), return_exceptions=True
            )
            runner._pool.timeout_s = 1.0
            with pytest.raises(TimeoutError, match=r"^no result within 1 s$"):
                await runner.measure(code(programs.Hangs))
            runner._pool.timeout_s = HANG_S
            after = await runner.measure(code(programs.Copy))
        assert isinstance(trap, KernelTrap)
        assert trap.message.endswith("was stopped: it divided an integer by zero")
        assert isinstance(huge, OutOfMemory)
        assert all(isinstance(times, tuple) and times for times in (one, other, after))

    asyncio.run(main())


def test_a_worker_killed_mid_trial_costs_one_trial() -> None:
    async def main() -> None:
        runner = processes(programs.Copy)
        async with opened(runner, programs.Copy):
            lost = asyncio.ensure_future(runner.measure(code(programs.Hangs)))
            after = asyncio.ensure_future(runner.measure(code(programs.Copy)))
            os.kill(await worker_at_work(runner), signal.SIGKILL)
            with pytest.raises(WorkerDied, match="killed by SIGKILL"):
                await lost
            assert await after

    asyncio.run(main())


async def worker_at_work(runner: ProcessRunner) -> int:
    """The process of a runner's only worker, once it is in the middle of a long trial."""
    (worker,) = runner._pool._workers
    process = worker.process.pid
    assert process is not None
    await asyncio.to_thread(until_it_computes, process)
    return process


def test_closing_ends_what_runs_and_what_waits() -> None:
    async def main() -> None:
        runner = processes(programs.Copy)
        async with opened(runner, programs.Copy):
            under_way = [
                asyncio.ensure_future(runner.measure(code(programs.Hangs))),
                asyncio.ensure_future(runner.measure(code(programs.Copy))),
            ]
            await worker_at_work(runner)
        outcomes = await asyncio.gather(*under_way, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [RunnerClosed, RunnerClosed]
        with pytest.raises(RunnerClosed):
            await runner.measure(code(programs.Copy))

    asyncio.run(main())


@pytest.mark.thorough
def test_memory_stays_bounded_over_thousands_of_trials() -> None:
    async def main() -> list[int]:
        runner = ThreadRunner(random_inputs(programs.Double), Timing(batches=1, min_ms=0.0))
        artifacts = [code(programs.Double), code(tiled(8)), code(tiled(32))]
        sizes = []
        await runner.begin(artifacts[0])
        for index in range(2000):
            await runner.measure(artifacts[index % 3])
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
    assert timing.beside(1e-3).early_stop_s == pytest.approx(3e-3)
    assert Timing(min_ms=5.0).beside(1e-3).early_stop_s == pytest.approx(5e-3)
    workload = random_inputs(programs.Double)
    timed, _ = run_here(code(programs.Double), workload, timing.beside(1e3))
    assert (len(timed.seconds), len(timed.calibration)) == (4, 5)
    timed, _ = run_here(code(programs.Double), workload, timing.beside(1e-12))
    assert (len(timed.seconds), len(timed.calibration)) == (1, 0)


def test_of_a_program_with_long_batches_there_are_fewer() -> None:
    work = random_inputs(programs.Double)
    timed, _ = run_here(code(programs.Double), work, Timing(min_ms=0.1, enough_ms=0.0))
    assert (len(timed.seconds), len(timed.calibration)) == (MIN_BATCHES, MIN_BATCHES + 1)
    timed, _ = run_here(code(programs.Double), work, Timing(2, min_ms=0.1, enough_ms=0.0))
    assert len(timed.seconds) == 2


@pytest.mark.parametrize("make", [ThreadRunner, ProcessRunner])
def test_runners_remember_the_best(make: Any) -> None:
    async def main() -> None:
        runner = make(random_inputs(programs.Double), timing=Timing(batches=3, min_ms=0.0))
        try:
            await runner.begin(code(programs.Double))
            assert runner._best == math.inf
            assert len(await runner.measure(code(programs.Double))) == 3
            assert 0 < runner._best < math.inf
            # Beside one that takes no time at all, every other is hopeless.
            runner._best = 1e-12
            assert len(await runner.measure(code(programs.Double))) == 1
        finally:
            runner.close()

    asyncio.run(main())


@pytest.mark.parametrize("target", ["wasm", "llvm", "numpy"])
def test_caches_are_emptied_before_each_batch(target: str, monkeypatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(measuring, "flush_caches", lambda *arrays: flushed.append(len(arrays)))
    register_func(FLUSH, lambda *arrays: flushed.append(len(arrays)), override=True)
    try:
        inputs = random_inputs(programs.Double)
        config = EvaluatorConfig(repeat=4, enable_cpu_cache_flush=True)
        artifact = build_artifact(programs.Double, inputs.function, target)
        timed, _ = run_here(artifact, inputs, config.timing)
    finally:
        register_func(FLUSH, flush_caches, override=True)
    assert flushed == [len(inputs.names)] * 4
    assert len(timed.seconds) == 4
