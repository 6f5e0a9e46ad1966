"""How programs are measured, as an argument: `builder=` and `runner=` of the tuning functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mlcweb.meta_schedule.measure.runner import Runner, Timing
from mlcweb.meta_schedule.measure.trial_inputs import TrialInputs
from mlcweb.runtime.host import in_browser

if TYPE_CHECKING:
    from mlcweb.meta_schedule.measure.process_pool import ProcessPool


OpenRunner = Callable[[TrialInputs], Runner]
"""Makes the runner of a task."""


class Runners(Protocol):
    """Makes the runner of each task of a search, and ends with it: `LocalRunner` and its like."""

    def open(self, workload: TrialInputs) -> Runner:
        """A runner for one program."""
        ...

    def close(self) -> None:
        """End what the runners share."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """How a program is timed, with the names of `time_evaluator`.

    Attributes:
        number: calls in a batch, at least.
        repeat: batches, of which those in the quietest third of the time count.
        min_repeat_ms: the shortest batch, in milliseconds.
        enable_cpu_cache_flush: whether caches are emptied between batches; they cannot be here.
    """

    number: int = 1
    repeat: int = 9
    min_repeat_ms: float = 1.0
    enable_cpu_cache_flush: bool = False

    def __post_init__(self) -> None:
        if self.enable_cpu_cache_flush:
            raise ValueError("enable_cpu_cache_flush: caches cannot be emptied here; leave it out")

    @property
    def timing(self) -> Timing:
        return Timing(self.repeat, self.min_repeat_ms)


@dataclass(frozen=True, slots=True)
class LocalBuilder:
    """Programs are built on this machine.

    Attributes:
        max_workers: processes that build; they are those that measure.
    """

    max_workers: int | None = None
    timeout_sec: float = 30.0


class LocalRunner:
    """Programs are measured on this machine: in worker processes, or workers of the page. The same
    workers serve one task after another.

    Args:
        timeout_sec: seconds that one trial may take.
        max_workers: programs measured at one time; by default what suits this machine or page.
    """

    def __init__(
        self,
        timeout_sec: float = 10.0,
        evaluator_config: EvaluatorConfig | None = None,
        max_workers: int | None = None,
    ) -> None:
        self.timeout_sec = timeout_sec
        self.timing = (evaluator_config or EvaluatorConfig()).timing
        self.max_workers = max_workers
        self._pool: ProcessPool | None = None

    def open(self, workload: TrialInputs) -> Runner:
        """A runner for one program."""
        if in_browser():
            from mlcweb.meta_schedule.measure.page_runner import open_page_runner

            return open_page_runner(workload, self.max_workers, self.timeout_sec, self.timing)
        from mlcweb.meta_schedule.measure.process_pool import ProcessPool
        from mlcweb.meta_schedule.measure.process_runner import ProcessRunner

        workers = self.max_workers or native_workers()
        if self._pool is None:
            self._pool = ProcessPool(workers, timeout_s=self.timeout_sec)
        return ProcessRunner(workload, workers=workers, timing=self.timing, pool=self._pool)

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


def native_workers() -> int:
    """How many programs are measured at one time where nobody says: two, on more than one core."""
    return min(2, os.cpu_count() or 1)
