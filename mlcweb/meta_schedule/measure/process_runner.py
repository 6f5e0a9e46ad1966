"""Trials in processes of their own: the `Runner` of every system that has processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.ir.transform import PassContext
from mlcweb.meta_schedule.measure.artifact import Artifact, build_artifact
from mlcweb.meta_schedule.measure.process_pool import PoolClosed, ProcessPool, is_portable
from mlcweb.meta_schedule.measure.runner import RunnerClosed, RunnerState, Seconds, Timing, run_here
from mlcweb.meta_schedule.measure.trial_inputs import TrialInputs
from mlcweb.runtime.speed_calibration import Timed


class ProcessRunner:
    """A `Runner` whose workers are warm processes, each ended and replaced when it fails.

    Args:
        workers: programs measured at one time. With more than one they disturb each other where
            cores or caches are few.
        timeout_s: limit for one trial, in seconds.
        pool: processes of several runners, which then measure in turn; who made it ends it.
    """

    def __init__(
        self,
        workload: TrialInputs,
        *,
        workers: int = 1,
        timeout_s: float = 10.0,
        timing: Timing | None = None,
        pool: ProcessPool | None = None,
    ) -> None:
        self.workers = workers
        self.workload = workload
        self.timing = timing or Timing()
        self._state = RunnerState(self.timing)
        self._owns_pool = pool is None
        self._pool = pool or ProcessPool(workers, timeout_s=timeout_s)
        self._closed = False
        self._pool.prepare_workers(_set_workload, workload)
        self._pool.start_workers()

    async def begin(self, reference: Artifact) -> Seconds:
        timed, results = await self._submit(_run_with_results, reference, self.timing)
        self.workload = self.workload.expecting(results)
        return self._state.reference(timed)

    async def build(self, module: IRModule, target: str) -> Artifact:
        """Compile in a worker, beside the search, as `build_artifact` does here; passes that a
        program has added and that do not pickle stay here."""
        function, context = self.workload.function, PassContext.current().with_instruments(())
        if not is_portable(context):
            return build_artifact(module, function, target)
        return await self._submit(build_artifact, module, function, target, context)

    async def measure(self, artifact: Artifact) -> Seconds:
        timed = await self._submit(_run, artifact, self._state.next_timing())
        return self._state.seconds(timed)

    def close(self) -> None:
        self._closed = True
        if self._owns_pool:
            self._pool.shutdown(wait=False)

    async def _submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            if self._closed:
                raise PoolClosed
            self._pool.prepare_workers(_set_workload, self.workload)
            return await asyncio.wrap_future(self._pool.submit(call, *arguments))
        except PoolClosed:
            raise RunnerClosed("The search was stopped") from None


_workload: TrialInputs | None = None
"""In a worker: what its trials compute on. It is sent once, since it may be large."""


def _set_workload(workload: TrialInputs) -> None:
    global _workload
    _workload = workload


def _run_with_results(artifact: Artifact, timing: Timing) -> Any:
    assert _workload is not None
    return run_here(artifact, _workload, timing)


def _run(artifact: Artifact, timing: Timing) -> Timed:
    return _run_with_results(artifact, timing)[0]
