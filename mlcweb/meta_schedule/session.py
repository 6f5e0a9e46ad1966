"""A search from beginning to end, as the page, the command line and programs hold one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.measure.artifact import build_artifact
from mlcweb.meta_schedule.measure.confirm import confirm
from mlcweb.meta_schedule.measure.runner import Runner, RunnerClosed, Seconds, Timing
from mlcweb.meta_schedule.measure.trial_inputs import TrialInputs, random_inputs
from mlcweb.meta_schedule.random_search import ScheduleFunction, random_search
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.utils import gc_frozen
from mlcweb.runtime.host import in_browser
from mlcweb.runtime.host.waiting import wait_for

TIMEOUT_S = 10.0
"""Seconds that one trial may take."""


class Search:
    """A random search over the schedules of one program.

    First `begin`, then the `trials`; `close` may be called at any moment, also while another task
    waits for a trial, and ends them.

    Args:
        module: the program to schedule.
        schedule_function: applied to a schedule of `module` in each trial.
        trials: how many; without end if None.
        function: which function of the module runs; the only one, or "main", by default.
        target: what to build for, as `build` takes it.
        seed: the same seed samples the same schedules.
        workers: programs measured at one time; by default what suits this machine.
        timeout_s: seconds that one trial may take.
        timing: how programs are timed.
        runner: measures; by default workers of this machine or page.

    Raises:
        TVMError: the function takes something else than buffers of constant shape.
    """

    def __init__(
        self,
        module: IRModule,
        schedule_function: ScheduleFunction,
        *,
        trials: int | None = 20,
        function: str | None = None,
        target: str = "llvm",
        seed: int = 0,
        workers: int | None = None,
        timeout_s: float = TIMEOUT_S,
        timing: Timing | None = None,
        runner: Runner | None = None,
    ) -> None:
        workload = random_inputs(module, function)
        self.module = module
        self.schedule_function = schedule_function
        self.limit = trials
        self.seed = seed
        self.build = partial(build_artifact, function=workload.function, target=target)
        self.runner = runner or _runner(workload, workers, timeout_s, timing or Timing())

    async def begin(self) -> Seconds:
        """Run and time the program as it stands; what it computes is what trials must compute."""
        return await self.runner.begin(self.build(self.module))

    async def trials(self) -> AsyncIterator[Trial]:
        """Each trial as soon as it is done; then the best of them again, with confirmed times.
        Where the runner is closed meanwhile, no more come."""
        done: list[Trial] = []
        sampled = random_search(
            self.module,
            self.schedule_function,
            build=self.build,
            runner=self.runner,
            seed=self.seed,
            limit=self.limit,
        )
        with gc_frozen(), suppress(RunnerClosed):
            async for trial in sampled:
                done.append(trial)
                yield trial
            async for trial in confirm(done, build=self.build, runner=self.runner):
                yield trial

    def close(self) -> None:
        """End the workers, and so the trials."""
        self.runner.close()


def search(
    module: IRModule, schedule_function: ScheduleFunction, trials: int = 20, **options: object
) -> list[Trial]:
    """Search and wait for the end: the trials in the order in which they were sampled.

    `options` are those of `Search`. `best_trial` finds the best of the result.
    """
    return wait_for(_run(module, schedule_function, trials=trials, **options))


async def _run(
    module: IRModule, schedule_function: ScheduleFunction, **options: Any
) -> list[Trial]:
    # How a page measures depends on the event loop that runs.
    session = Search(module, schedule_function, **options)
    trials: dict[int, Trial] = {}
    try:
        await session.begin()
        async for trial in session.trials():
            trials[trial.index] = trial
    finally:
        session.close()
    return [trials[index] for index in sorted(trials)]


def _runner(workload: TrialInputs, workers: int | None, timeout_s: float, timing: Timing) -> Runner:
    if in_browser():
        from mlcweb.meta_schedule.measure.page_runner import open_page_runner

        return open_page_runner(workload, workers, timeout_s, timing)
    from mlcweb.meta_schedule.measure.process_runner import ProcessRunner

    return ProcessRunner(workload, workers=workers or 1, timeout_s=timeout_s, timing=timing)
