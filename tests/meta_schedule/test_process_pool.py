"""A runaway or crashing call costs itself, never the pool."""

import math
import os
import signal
import time
from concurrent.futures import CancelledError

import pytest

from mlcweb.meta_schedule.measure.process_pool import ProcessPool, WorkerDied
from mlcweb.runtime.build import reset_warnings, say_once
from tests.waiting import HANG_S


@pytest.fixture(scope="module")
def pool():
    with ProcessPool(timeout_s=HANG_S) as pool:
        yield pool


def test_returns_results_in_order(pool):
    assert list(pool.map(math.factorial, range(6))) == [1, 1, 2, 6, 24, 120]


def test_runs_in_another_process_and_keeps_it(pool):
    first, second = pool.submit(os.getpid).result(), pool.submit(os.getpid).result()
    assert first == second != os.getpid()


def test_passes_an_exception_on(pool):
    with pytest.raises(ValueError, match="math domain error"):
        pool.submit(math.sqrt, -1).result()


def test_a_hanging_call_is_ended_and_the_next_one_runs():
    with ProcessPool(timeout_s=0.2) as pool:
        hanging = pool.submit(time.sleep, 3600)
        with pytest.raises(TimeoutError, match=r"no result within 0\.2 s"):
            hanging.result()
        pool.timeout_s = HANG_S
        assert pool.submit(math.sqrt, 4).result() == 2


def test_a_killed_worker_fails_one_call_with_its_reason(pool):
    crashing = pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL)
    with pytest.raises(WorkerDied, match="was killed by SIGKILL"):
        crashing.result()
    assert pool.submit(math.sqrt, 9).result() == 3


def test_an_exit_is_told_by_its_code(pool):
    with pytest.raises(WorkerDied, match="ended with exit code 3"):
        pool.submit(os._exit, 3).result()


def test_a_result_that_cannot_travel_is_an_error(pool):
    with pytest.raises(TypeError, match="cannot be sent back"):
        pool.submit(eval, "lambda: 0").result()


def test_workers_can_be_started_and_prepared_before_the_first_call():
    with ProcessPool(2) as pool:
        pool.prepare_workers(math.sqrt, 4)
        pool.start_workers()
        pool.start_workers()
    assert len(pool._workers) == 2
    assert all(worker.preparation == (math.sqrt, (4,), {}) for worker in pool._workers)


def test_shutdown_without_waiting_cuts_a_call_off():
    pool = ProcessPool(timeout_s=3600)
    pool.submit(os.getpid).result()
    hanging = pool.submit(time.sleep, 3600)
    pool.shutdown(wait=False, cancel_futures=True)
    with pytest.raises((WorkerDied, CancelledError)):
        hanging.result(timeout=HANG_S)


def test_what_is_said_once_comes_from_the_parent_alone(capfd):
    with ProcessPool(2) as pool:
        futures = [pool.submit(say_once, f"worker {n}", "from a worker") for n in range(4)]
        for future in futures:
            future.result()
    say_once("the parent", "from the parent")
    assert capfd.readouterr().err == "from the parent\n"
    reset_warnings()
