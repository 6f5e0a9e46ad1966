"""Trials in light workers of the page: the `Runner` of a browser."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mlcweb.meta_schedule.measure.artifact import (
    Artifact,
    TrialInputs,
    WasmArtifact,
    tolerance,
)
from mlcweb.meta_schedule.measure.runner import (
    CalibratingRunner,
    Contents,
    Runner,
    RunnerClosed,
    Seconds,
    ThreadRunner,
    Timing,
    run_here,
)
from mlcweb.runtime.benchmark import STEPS_PER_BATCH
from mlcweb.runtime.host import clock_step
from mlcweb.runtime.host.trial_messages import ReplacedArray, TrialArray, TrialJob, Uint8Array
from mlcweb.runtime.host.trial_workers import Stopped, TrialWorkers, reachable
from mlcweb.runtime.ndarray import from_bytes, to_bits
from mlcweb.runtime.speed_calibration import Timed

if TYPE_CHECKING:
    import numpy as np


def open_page_runner(
    workload: TrialInputs, workers: int | None, timeout_s: float, timing: Timing
) -> Runner:
    """The runner of a page: light workers, or this very thread where their answers could not
    arrive while it waits."""
    if reachable():
        return PageRunner(workload, workers=workers, timeout_s=timeout_s, timing=timing)
    _say_what_is_coarser()
    return ThreadRunner(workload, timing)


@lru_cache(maxsize=1)
def _say_what_is_coarser() -> None:
    print(
        "This browser has no JavaScript Promise Integration, and the page is not cross-origin "
        "isolated, so that Python cannot wait for other workers: it measures by itself, one "
        f"program at a time, with a clock of {clock_step() * 1e3:.3g} ms, and a kernel that hangs "
        "can only be stopped together with Python. The Search view still uses other workers",
        file=sys.stderr,
    )


class PageRunner(CalibratingRunner):
    """A `Runner` whose workers hold nothing but one kernel and its buffers. A program that has no
    WebAssembly form is measured by Python itself, with nothing to end it.

    Args:
        workers: programs measured at one time; by default what the page thinks right.
        timeout_s: limit for one trial, in seconds, beside what measuring itself takes.
    """

    def __init__(
        self,
        workload: TrialInputs,
        *,
        workers: int | None = None,
        timeout_s: float = 10.0,
        timing: Timing | None = None,
    ) -> None:
        timing = timing or Timing()
        shortest = STEPS_PER_BATCH * clock_step() * 1e3
        super().__init__(workload, replace(timing, min_ms=max(timing.min_ms, shortest)))
        # A coarse clock needs long batches, which are no fault of the program.
        measuring_s = 2e-3 * self.timing.batches * self.timing.min_ms
        self._pool = TrialWorkers(workers, timeout_s + measuring_s)
        self.workers = self._pool.workers

    async def begin(self, reference: Artifact) -> Seconds:
        self._pool.open(self._arrays())
        seconds = await super().begin(reference)
        self._pool.open(self._arrays())
        return seconds

    def close(self) -> None:
        self._pool.close()

    async def run(self, artifact: Artifact, timing: Timing, keep: bool) -> tuple[Timed, Contents]:
        if not isinstance(artifact, WasmArtifact):
            return run_here(artifact, self.workload, timing)
        taken = self.workload.arranged(artifact.layouts)
        replaced = [
            ReplacedArray(n, _trial_array(taken.dtypes[n], taken.inputs[n], taken.inputs[n]))
            for n in (layout.number for layout in artifact.layouts)
        ]
        job = TrialJob(
            code=Uint8Array(artifact.code),
            entry=artifact.function,
            repeated=artifact.repeated,
            scratch_bytes=artifact.scratch_bytes,
            batches=timing.batches,
            fewest=timing.fewest,
            min_ms=timing.min_ms,
            enough_ms=timing.enough_ms,
            early_stop_ms=timing.early_stop_s * 1e3,
            replaced=replaced or None,
        )
        try:
            timed, content = await self._pool.run(job)
        except Stopped:
            raise RunnerClosed("The search was stopped") from None
        # No content: the worker found all as expected.
        if content is None:
            return timed, self.workload.expected or ()
        results = tuple(
            from_bytes(data, dtype, array.shape)
            for data, dtype, array in zip(content, taken.dtypes, taken.inputs, strict=True)
        )
        taken.check(results)
        return timed, self.workload.restored(results, artifact.layouts)

    def _arrays(self) -> list[TrialArray]:
        inputs = self.workload.inputs
        expected = self.workload.expected or (None,) * len(inputs)
        return list(map(_trial_array, self.workload.dtypes, inputs, expected))


def _trial_array(dtype: str, array: np.ndarray, result: np.ndarray | None) -> TrialArray:
    return TrialArray(
        dtype,
        Uint8Array(to_bits(array, dtype).tobytes()),
        0.0 if result is None else tolerance(result, dtype),
        None if result is None else Uint8Array(to_bits(result, dtype).tobytes()),
    )
