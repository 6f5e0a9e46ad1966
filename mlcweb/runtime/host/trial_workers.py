"""Light workers of the page that run untrusted kernels: the Python end of the line to them.

The page's own thread keeps the workers, since it never blocks: it hands kernels out, minds their
time limit, and replaces a worker that hangs or dies. Python, in its worker, reaches it by a port
that the page laid (`mlcwebTrials`), and awaits the answers.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import js  # pyright: ignore[reportMissingImports]
from pyodide.ffi import JsProxy, to_js  # pyright: ignore[reportMissingImports]

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.arena import OutOfMemory
from mlcweb.runtime.host.blocking_loop import BlockingLoop
from mlcweb.runtime.host.clock import clock_step, shares_memory
from mlcweb.runtime.host.traps import trap_in_browser
from mlcweb.runtime.host.trial_messages import (
    CalibrationWork,
    TrialArray,
    TrialJob,
    TrialWorkload,
    Uint8Array,
    plain,
)
from mlcweb.runtime.speed_calibration import ITERATIONS, MIN_STEPS, Timed, calibration_code

MAX_WORKERS = 4
"""Workers by default, at most: more cores share caches and the clock rate."""


class WorkerDied(TVMError, RuntimeError):
    """A worker ended before its kernel did."""


class Stopped(TVMError):
    """The workers were ended before the kernel was measured."""


_numbers = count(1)
_asked: dict[int, asyncio.Future[Any]] = {}
"""Whom the answers are for that come while Python is blocked."""


def reachable() -> bool:
    """Whether answers of the workers arrive in the loop that runs: not in one that blocks Python,
    unless it shares memory with the page."""
    return shares_memory() or not isinstance(asyncio._get_running_loop(), BlockingLoop)


class TrialWorkers:
    """The page's pool of light workers. Several searches may hold it: each has buffers of its own,
    and what it closes is its own alone.

    Args:
        workers: how many; by default as many as the machine has cores, but at most `MAX_WORKERS`.
        timeout_s: limit for one kernel, in seconds; starting a worker does not count.
    """

    def __init__(self, workers: int | None, timeout_s: float) -> None:
        cores = int(js.navigator.hardwareConcurrency or 1)
        self.workers = workers or min(cores, MAX_WORKERS)
        self.timeout_s = timeout_s
        self._owner = next(_numbers)
        self._line: Any = js.mlcwebTrials

    def open(self, arrays: list[TrialArray]) -> None:
        """Have the buffers of all kernels to come ready in all workers."""
        calibration = CalibrationWork(
            Uint8Array(calibration_code()), ITERATIONS, MIN_STEPS * clock_step() * 1e3
        )
        workload = _to_js(TrialWorkload(calibration, arrays))
        self._line.open(self._owner, workload, self.workers, self.timeout_s * 1e3)

    async def run(self, trial: TrialJob) -> tuple[Timed, tuple[bytes, ...] | None]:
        """Run a kernel once, look at its buffers, and time it.

        Returns:
            The times of the batches, or of the quickest of the first calls where those are all;
            and the content of the buffers after the first call, or None where all are as expected.

        Raises:
            TimeoutError: it took longer than its limit.
            Stopped: the workers were ended meanwhile.
            WorkerDied, OutOfMemory, KernelTrap: what else can become of it.
        """
        job = _to_js(trial)
        loop = asyncio.get_running_loop()
        if isinstance(loop, BlockingLoop):
            outcome = await self._answer(loop, self._line.ask(self._owner, job))
        else:
            outcome = await self._line.run(self._owner, job)
        if not outcome.ok:
            raise self._failure(outcome)
        content = getattr(outcome, "arrays", None)
        timed = Timed(tuple(outcome.seconds.to_py()), tuple(outcome.calibration.to_py()))
        return timed, (
            tuple(array.to_bytes() for array in content) if content is not None else None
        )

    def close(self) -> None:
        """Let go of the workers; what they were at raises `Stopped`."""
        self._line.close(self._owner)

    async def _answer(self, loop: BlockingLoop, number: int) -> Any:
        """The outcome of what was asked under this number, for which the thread blocks."""
        answer = _asked[number] = loop.create_future()
        loop.poll = self._collect
        return await answer

    def _collect(self, seconds: float) -> None:
        for number, outcome in self._line.collect(seconds * 1e3):
            answer = _asked.pop(number, None)
            if answer is not None and not answer.done():
                answer.set_result(outcome)

    def _failure(self, outcome: JsProxy) -> Exception:
        match outcome.kind:
            case "Stopped":
                return Stopped(outcome.message)
            case "TimeoutError":
                return TimeoutError(f"no result within {self.timeout_s:g} s")
            case "WorkerDied":
                return WorkerDied(outcome.message)
            case "OutOfMemory":
                return OutOfMemory(outcome.message)
        return trap_in_browser(outcome.kind, outcome.message, outcome.stack)


def _to_js(message: Any) -> Any:
    return to_js(plain(message), dict_converter=js.Object.fromEntries)
