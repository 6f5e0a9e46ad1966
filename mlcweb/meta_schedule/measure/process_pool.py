"""Measuring in processes of their own, so that a runaway candidate costs one trial.

`ProcessPool` is an ordinary ``concurrent.futures.Executor`` but for two promises that the
standard pool does not make: a call has a time limit, and a worker that hangs or dies spoils
its own call alone; a fresh worker takes the next one.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.ir.transform import PassContext
from mlcweb.meta_schedule.measure.artifact import Artifact, TrialInputs, build_artifact
from mlcweb.meta_schedule.measure.runner import (
    CalibratingRunner,
    Contents,
    RunnerClosed,
    Timing,
    run_here,
)
from mlcweb.runtime.build import leave_warnings_to_parent
from mlcweb.runtime.speed_calibration import Timed

_Call = tuple[Callable[..., Any], tuple, dict[str, Any]]

START_TIMEOUT_S = 60.0
"""Limit for starting a worker, and for preparing it."""

LOADING_CALLS = 2
"""Calls that load all modules a worker needs: one prepares, one builds."""


class WorkerDied(RuntimeError):
    """A worker process ended before its call returned."""


class PoolClosed(RuntimeError):
    """The pool was shut down before the call returned."""


class ProcessPool(Executor):
    """Calls functions in worker processes, each call with a time limit.

    Functions, arguments and results travel by pickle. What a call raises is raised by its
    future's ``result()``; a call over its limit gives TimeoutError, a dead worker `WorkerDied`.

    Args:
        max_workers: calls at one time. Keep the default of one where times are compared, so
            that candidates do not disturb each other.
        timeout_s: limit for one call, in seconds; starting a worker does not count.
    """

    def __init__(self, max_workers: int = 1, *, timeout_s: float = 10.0) -> None:
        self.timeout_s = timeout_s
        self._max_workers = max_workers
        self._started = False
        # One thread supervises one worker: it waits for the answer, and ends it if none comes.
        self._supervisors = ThreadPoolExecutor(max_workers, thread_name_prefix="mlcweb-measure")
        self._mine = threading.local()
        self._workers: set[_Worker] = set()
        self._preparation: _Call | None = None
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Schedules ``fn(*args, **kwargs)`` in a worker; see `concurrent.futures.Executor`."""
        if self._closed:
            raise PoolClosed("the pool was shut down")
        return self._supervisors.submit(self._call, (fn, args, kwargs))

    def prepare_workers(self, fn: Callable[[Any], Any], argument: Any) -> None:
        """Have every worker, also one to come, call ``fn(argument)`` before its next call."""
        current = self._preparation
        if current is None or current[0] is not fn or current[1][0] is not argument:
            self._preparation = (fn, (argument,), {})

    def start_workers(self) -> None:
        """Start and prepare the workers now, beside whatever else there is to do before the first
        call."""
        if not self._started and not self._closed:
            self._started = True
            for _ in range(self._max_workers):
                self._supervisors.submit(self._prepared_worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the workers. Without `wait`, calls in progress are cut off and give `PoolClosed`."""
        self._closed = self._closed or not wait
        if not wait:
            self._end_workers()
        self._supervisors.shutdown(wait=True, cancel_futures=cancel_futures)
        self._end_workers()

    def _end_workers(self) -> None:
        for worker in tuple(self._workers):
            worker.end()

    def _call(self, call: _Call) -> Any:
        if self._closed:
            raise PoolClosed("the pool was shut down")
        try:
            return self._prepared_worker().call(call, self.timeout_s)
        except (TimeoutError, WorkerDied) as failure:
            if self._closed:
                raise PoolClosed("the pool was shut down") from failure
            raise

    def _prepared_worker(self) -> _Worker:
        worker, preparation = self._worker(), self._preparation
        if preparation is not None and worker.preparation is not preparation:
            worker.call(preparation, START_TIMEOUT_S)
            worker.preparation = preparation
        return worker

    def _worker(self) -> _Worker:
        """The worker that this thread supervises: a fresh one if there is none, or no longer."""
        worker: _Worker | None = getattr(self._mine, "worker", None)
        if worker is None or worker.ended:
            if worker is not None:
                self._workers.discard(worker)
            worker = self._mine.worker = _Worker()
            self._workers.add(worker)
            if self._closed:
                worker.end()
            worker.receive(START_TIMEOUT_S)
        return worker


class _Worker:
    """A process that answers calls, and this end of the pipe to it."""

    def __init__(self) -> None:
        # Forking a process that holds threads (ours, BLAS's) can deadlock the child.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.preparation: _Call | None = None
        self.ended = False
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _without_main_program():
            self.process.start()
        theirs.close()

    def call(self, call: _Call, timeout_s: float) -> Any:
        """The result of a call, or what it raises. After a TimeoutError of ours, and after
        `WorkerDied`, the worker is ended."""
        try:
            self.connection.send(call)
        except ConnectionError:
            raise self._died() from None
        succeeded, value = self.receive(timeout_s)
        if succeeded:
            return value
        raise value

    def receive(self, timeout_s: float) -> tuple[bool, Any]:
        """The next message of the worker: whether the call succeeded, and value or exception."""
        try:
            if self.connection.poll(timeout_s):
                return self.connection.recv()
        except (EOFError, OSError):
            raise self._died() from None
        self.end()
        self.connection.close()
        raise TimeoutError(f"no result within {timeout_s:g} s")

    def end(self) -> None:
        """Kill the process."""
        self.ended = True
        self.process.kill()

    def _died(self) -> WorkerDied:
        self.process.join(1.0)
        self.end()
        self.connection.close()
        return WorkerDied(f"the worker process {_ending(self.process.exitcode)}")


_main_program = threading.Lock()


@contextmanager
def _without_main_program() -> Iterator[None]:
    """A process that is started runs the main program again, to have what that defines. Workers
    need nothing of it, and a program that searches without asking for its `__name__` would search
    again."""
    with _main_program:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _ending(exitcode: int | None) -> str:
    if exitcode is None:
        return "closed its connection"
    if exitcode < 0:
        return f"was killed by {signal.Signals(-exitcode).name}"
    return f"ended with exit code {exitcode}"


def is_portable(value: Any) -> bool:
    """Whether something can be sent to another process, and made again there."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return False
    return True


def _serve(connection: Connection) -> None:
    """The worker's loop: says that it is up, then answers one call after another."""
    # Ctrl-C in a terminal reaches the whole group; ending workers is the parent's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # NumPy is not loaded yet. Its threads would compete with the other workers' for the cores, and
    # a small product would take a thousand times as long.
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    leave_warnings_to_parent()
    connection.send((True, None))
    calls = 0
    while True:
        try:
            fn, args, kwargs = connection.recv()
        except EOFError:
            return
        try:
            answer = (True, fn(*args, **kwargs))
        except Exception as error:
            # Its text, where the other side could not make it again.
            text = f"{type(error).__name__}: {error}"
            answer = (False, error if is_portable(error) else RuntimeError(text))
        try:
            connection.send(answer)
        except Exception as error:
            connection.send((False, TypeError(f"the result cannot be sent back: {error}")))
        calls += 1
        if calls <= LOADING_CALLS:
            # Modules: no garbage for as long as the process lives.
            gc.collect()
            gc.freeze()


class ProcessRunner(CalibratingRunner):
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
        super().__init__(workload, timing)
        self.workers = workers
        self._owns_pool = pool is None
        self._pool = pool or ProcessPool(workers, timeout_s=timeout_s)
        self._closed = False
        self._pool.prepare_workers(_set_workload, workload)
        self._pool.start_workers()

    async def build(self, module: IRModule, target: str) -> Artifact:
        """Compile in a worker, beside the search, as `build_artifact` does here; passes that a
        program has added and that do not pickle stay here."""
        function, context = self.workload.function, PassContext.current().with_instruments(())
        if not is_portable(context):
            return build_artifact(module, function, target)
        return await self._submit(build_artifact, module, function, target, context)

    async def run(self, artifact: Artifact, timing: Timing, keep: bool) -> tuple[Timed, Contents]:
        return await self._submit(_run, artifact, timing, keep)

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


def _run(artifact: Artifact, timing: Timing, keep: bool) -> tuple[Timed, Contents]:
    assert _workload is not None
    timed, results = run_here(artifact, _workload, timing)
    return timed, results if keep else ()
