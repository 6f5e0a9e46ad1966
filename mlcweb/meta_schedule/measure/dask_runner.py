"""Trials on the workers of a Dask cluster: many machines measure for one search.

    from mlcweb.meta_schedule.measure.dask_runner import DaskRunner
    runner = DaskRunner("tcp://scheduler:8786")
    ms.tune_tir(mod, target, work_dir, max_trials_global=1000, runner=runner)

The machines should be alike, since their times are compared, and each worker should be a process
with a core of its own. A worker that is lost, with its machine or without, costs nothing but time:
the scheduler gives what it was at to another. One whose trial does not end is started anew, also
where the search has ended meanwhile: by itself, where a nanny minds it, as Dask has it by default.
"""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from mlcweb.ir import IRModule
from mlcweb.ir.transform import PassContext
from mlcweb.meta_schedule.measure.artifact import Artifact, TrialInputs, build_artifact
from mlcweb.meta_schedule.measure.runner import (
    CalibratingRunner,
    Contents,
    EvaluatorConfig,
    RunnerClosed,
    Seconds,
    Timing,
    run_here,
)
from mlcweb.runtime.speed_calibration import Timed

if TYPE_CHECKING:
    from distributed import Client, Future


GRACE_S = 20.0
"""Beside the time that a trial may take: for the way there and back, and for starting elsewhere
where a worker is lost."""

GUARD_STEP_S = 0.5
"""How often a worker looks whether somebody still waits for a trial that takes too long."""


class DaskRunner:
    """Programs are built and measured by the workers of a Dask cluster.

    Args:
        client: a `distributed.Client`, or the address of a scheduler.
        timeout_sec: seconds that one trial may take.
        evaluator_config: how programs are timed.

    Raises:
        ModuleNotFoundError: `distributed` is not installed; names the extra that has it.
    """

    def __init__(
        self,
        client: Client | str,
        timeout_sec: float = 10.0,
        evaluator_config: EvaluatorConfig | None = None,
    ) -> None:
        try:
            import distributed
        except ModuleNotFoundError as error:
            message = "DaskRunner needs Dask: pip install 'mlcweb[dask]'"
            raise ModuleNotFoundError(message, name=error.name) from None
        # Of a client that waits, and of one that is awaited, Dask has one type.
        self._connect: Callable[[], Any] = partial(distributed.Client, client)
        self._owns_client = isinstance(client, str)
        self._client: Any = None if isinstance(client, str) else client
        self.timeout_sec = timeout_sec
        self.timing = (evaluator_config or EvaluatorConfig()).timing

    def open(self, workload: TrialInputs) -> ClusterRunner:
        """A runner for one program."""
        if self._client is None:
            self._client = self._connect()
        return ClusterRunner(self._client, workload, self.timeout_sec, self.timing)

    def close(self) -> None:
        """Leave the cluster, where this has joined it; `open` joins it again."""
        if self._owns_client and self._client is not None:
            self._client.close()
            self._client = None


class ClusterRunner(CalibratingRunner):
    """A `Runner` of one program on a cluster; see `DaskRunner`."""

    def __init__(
        self, client: Any, workload: TrialInputs, timeout_s: float, timing: Timing
    ) -> None:
        super().__init__(workload, timing)
        self.workers = max(1, len(client.nthreads()))
        self.timeout_s = timeout_s
        self._client = client
        # Nothing waits in the cluster, where waiting would count as running.
        self._room = asyncio.Semaphore(self.workers)
        self._under_way: set[Future] = set()
        self._closed = False
        self._shared = self._share(workload)

    async def begin(self, reference: Artifact) -> Seconds:
        seconds = await super().begin(reference)
        self._shared = self._share(self.workload)
        return seconds

    async def build(self, module: IRModule, target: str) -> Artifact:
        """Compile on a worker, beside the search, as `build_artifact` does here."""
        function, context = self.workload.function, PassContext.current().with_instruments(())
        return await self._submit(build_artifact, module, function, target, context)

    async def run(self, artifact: Artifact, timing: Timing, keep: bool) -> tuple[Timed, Contents]:
        return await self._submit(_run, artifact, self._shared, timing, self.timeout_s, keep)

    def undisturbed(self, artifact: Artifact) -> AbstractAsyncContextManager[Any]:
        """Each worker has a GPU of its own, and one trial at a time."""
        return nullcontext()

    def close(self) -> None:
        self._closed = True
        self._client.cancel(list(self._under_way))

    def _share(self, workload: TrialInputs) -> Future:
        """The workload as a result of the cluster: where the worker that has it is lost, another
        makes it anew."""
        with warnings.catch_warnings():
            # Dask would rather have large data scattered, but what is scattered can be lost.
            warnings.simplefilter("ignore")
            return self._client.submit(_itself, workload, pure=False)

    async def _submit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        async with self._room:
            if self._closed:
                raise RunnerClosed("The search was stopped")
            future = self._client.submit(call, *arguments, pure=False)
            self._under_way.add(future)
            try:
                return await asyncio.wait_for(_result(future), self.timeout_s + GRACE_S)
            except TimeoutError:
                await self._end(future)
                raise TimeoutError(f"no result after {self.timeout_s:g} s") from None
            except (CancelledError, asyncio.CancelledError):
                if self._closed:
                    raise RunnerClosed("The search was stopped") from None
                raise
            finally:
                self._under_way.discard(future)

    async def _end(self, future: Future) -> None:
        """Start the worker anew that a call is on: threads cannot be ended."""
        running = await asyncio.to_thread(self._client.processing)
        addresses = [address for address, keys in running.items() if future.key in keys]
        await asyncio.to_thread(self._client.cancel, [future])
        await asyncio.to_thread(self._client.restart_workers, addresses, raise_for_error=False)


async def _result(future: Future) -> Any:
    """The result of a call on the cluster, or what it raises."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def tell(_: Future) -> None:
        loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

    future.add_done_callback(tell)
    await done
    return await asyncio.to_thread(future.result)


_one_at_a_time = threading.Lock()
"""On a worker: programs that are timed beside each other disturb each other."""


def _itself(workload: TrialInputs) -> TrialInputs:
    return workload


def _run(
    artifact: Artifact, workload: TrialInputs, timing: Timing, limit_s: float, keep: bool
) -> tuple[Timed, Contents]:
    with _one_at_a_time, _guarded(limit_s):
        timed, results = run_here(artifact, workload, timing)
    return timed, results if keep else ()


@contextmanager
def _guarded(limit_s: float) -> Iterator[None]:
    """On a worker: ends its process where what runs takes longer than it may and nobody waits for
    it any more. A cancelled call goes on, since threads cannot be ended, and the next search would
    wait for the worker. Without a nanny to start it anew a worker is left alone: its process may be
    that of the search."""
    from distributed import get_worker

    worker = get_worker()
    if worker.nanny is None:
        yield
        return
    key = worker.get_current_task()
    done = threading.Event()

    def guard() -> None:
        if done.wait(limit_s):
            return
        while not done.wait(GUARD_STEP_S):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                os._exit(1)

    threading.Thread(target=guard, name="mlcweb-guard", daemon=True).start()
    try:
        yield
    finally:
        done.set()
