"""A search on a cluster of two processes, one of which is killed in the middle."""

import asyncio
import os
import signal
from contextlib import suppress

import pytest

from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.measure import dask_runner
from mlcweb.meta_schedule.measure.artifact import WrongResult, build_artifact, random_inputs
from mlcweb.meta_schedule.measure.dask_runner import DaskRunner
from mlcweb.meta_schedule.measure.runner import RunnerClosed
from mlcweb.meta_schedule.runner import EvaluatorConfig
from tests.meta_schedule import programs
from tests.meta_schedule.matmul import Matmul, tiles
from tests.waiting import HANG_S, until

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")

# What the cluster warns of as it ends is not ours.
pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]

QUICK = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0.1)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_worker_that_is_killed_costs_no_trial(client, tmp_path) -> None:
    workers = client.run(os.getpid).values()
    killed, seen = [], []

    def observe(scheduler, task_id) -> None:
        seen.append(task_id)
        if len(seen) == 5:
            killed.append(kill_one(workers))

    database = ms.tune_tir(
        Matmul,
        "llvm",
        str(tmp_path),
        max_trials_global=24,
        space=tiles,
        strategy="replay-trace",
        seed=1,
        runner=DaskRunner(client.scheduler.address, HANG_S, QUICK),
        measure_callbacks=observe,
    )
    assert len(seen) > 5
    records = database.get_records_of(database.commit_workload(Matmul))
    assert len(records) == 24
    assert all(record.is_valid for record in records)
    assert killed[0] not in client.run(os.getpid).values()


def kill_one(processes) -> int:
    """Kill the first that is there: a worker that another test has ended may end only now."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            return process
    raise AssertionError("no worker is there")


def test_what_is_wrong_or_hangs_costs_its_own_trial_alone(client, monkeypatch) -> None:
    monkeypatch.setattr(dask_runner, "GRACE_S", 1.0)

    async def trials() -> None:
        opened = DaskRunner(client, HANG_S, QUICK).open(random_inputs(programs.Double))
        await opened.begin(build_artifact(programs.Double, "main"))
        with pytest.raises(WrongResult, match="differ from the unscheduled"):
            await opened.measure(build_artifact(programs.Triple, "main"))
        opened.timeout_s = 1.0
        with pytest.raises(TimeoutError, match="no result after 1 s"):
            await opened.measure(build_artifact(programs.Hangs, "main"))
        # The worker is back, and so is what it computes on.
        opened.timeout_s = HANG_S
        assert await opened.measure(await opened.build(programs.Double, "llvm"))
        # The worker may give up soon, but this side has to wait until it has begun.
        opened.timeout_s = 1.0
        monkeypatch.setattr(dask_runner, "GRACE_S", HANG_S)
        waiting = asyncio.ensure_future(opened.measure(build_artifact(programs.Hangs, "main")))
        await asyncio.to_thread(until, lambda: any(client.run(is_executing).values()))
        opened.close()
        with pytest.raises(RunnerClosed):
            await waiting
        with pytest.raises(RunnerClosed):
            await opened.measure(build_artifact(programs.Double, "main"))

    asyncio.run(trials())


def is_executing(dask_worker) -> bool:
    return bool(dask_worker.state.executing)


def test_a_worker_is_rid_of_a_hanging_trial_of_a_search_that_was_closed(
    client, monkeypatch
) -> None:
    monkeypatch.setattr(dask_runner, "GRACE_S", HANG_S)
    before = client.run(os.getpid)
    hanging: set[int] = set()

    async def trials() -> None:
        hung = DaskRunner(client, HANG_S, QUICK).open(random_inputs(programs.Double))
        await hung.begin(build_artifact(programs.Double, "main"))
        hung.timeout_s = 2.0
        code = build_artifact(programs.Hangs, "main")
        waiting = [asyncio.ensure_future(hung.measure(code)) for _ in before]

        def some_hang() -> bool:
            executing = client.run(is_executing)
            hanging.update(before[address] for address, is_busy in executing.items() if is_busy)
            return bool(hanging)

        # One at the least: Dask may give both to the worker that has the data already.
        await asyncio.to_thread(until, some_hang)
        hung.close()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [RunnerClosed] * len(before)
        # The next search waits for nothing but the workers' starting anew.
        following = DaskRunner(client, HANG_S, QUICK).open(random_inputs(programs.Double))
        double = build_artifact(programs.Double, "main")
        await following.begin(double)
        times = await asyncio.gather(*(following.measure(double) for _ in range(8)))
        assert all(times)
        following.close()

    asyncio.run(trials())
    # The first worker that was back may have done all that; another follows.
    assert hanging
    until(lambda: not hanging & set(client.run(os.getpid, on_error="ignore").values()))
    client.wait_for_workers(len(before), timeout=120)
