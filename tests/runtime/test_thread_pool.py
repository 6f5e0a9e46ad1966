"""The threads that run parallel loops."""

import threading

import pytest

import mlcweb
from mlcweb.ir import TVMError
from mlcweb.runtime import get_global_func, thread_pool
from mlcweb.runtime.thread_pool import ThreadPool, static_chunks

WAIT = 20
"""Seconds after which a thread that does not come is missing."""


@pytest.fixture(autouse=True)
def _default_afterwards():
    yield
    mlcweb.runtime.config_threadpool()


def test_tasks_run_side_by_side():
    meeting = threading.Barrier(3)
    threads = set()

    def task():
        meeting.wait(WAIT)
        threads.add(threading.get_ident())

    ThreadPool().run([task] * 3)
    assert len(threads) == 3
    assert threading.get_ident() in threads


def test_the_caller_runs_what_nobody_has_begun():
    pool = ThreadPool()
    ended = threading.Event()
    # The only other thread is busy until the other launch is over.
    busy = threading.Thread(target=lambda: pool.run([lambda: None, lambda: ended.wait(WAIT)]))
    started = []
    pool.run([lambda: None, lambda: started.append(1)])
    busy.start()
    pool.run([lambda: started.append(2), lambda: started.append(3)])
    ended.set()
    busy.join(WAIT)
    assert started == [1, 2, 3]


def test_the_first_error_is_raised_when_all_have_ended():
    meeting = threading.Barrier(3)
    ended = []

    def failing(number):
        meeting.wait(WAIT)
        ended.append(number)
        raise ValueError(str(number))

    def fine():
        meeting.wait(WAIT)
        ended.append(0)

    with pytest.raises(ValueError, match="1"):
        ThreadPool().run([fine, lambda: failing(1), lambda: failing(2)])
    assert sorted(ended) == [0, 1, 2]


def test_tasks_of_tasks_run_in_order():
    pool, seen = ThreadPool(), []

    def outer():
        thread = threading.get_ident()
        pool.run([lambda: seen.append(threading.get_ident() == thread)] * 2)

    pool.run([outer, outer])
    assert seen == [True] * 4


def test_threads_are_kept():
    pool = ThreadPool()
    pool.run([lambda: None] * 3)
    before = threading.active_count()
    pool.run([lambda: None] * 3)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TVM_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"TVM_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"TVM_NUM_THREADS": "0"}, 7),
        ({"TVM_NUM_THREADS": "many"}, 7),
    ],
)
def test_the_environment_says_how_many(monkeypatch, variables, expected):
    monkeypatch.setattr(thread_pool, "_cores", lambda: 7)
    for name in thread_pool.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert mlcweb.runtime.num_threads() == expected


def test_the_program_says_how_many():
    mlcweb.runtime.config_threadpool(1, 6)
    assert mlcweb.runtime.num_threads() == 6
    get_global_func("runtime.config_threadpool")(1, 2)
    assert mlcweb.runtime.num_threads() == 2
    mlcweb.runtime.config_threadpool(-2, 0, ["0", "1", "2"])
    assert mlcweb.runtime.num_threads() == 3
    with pytest.raises(TVMError, match="-1"):
        mlcweb.runtime.config_threadpool(1, -1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, 10, 2), [(0, 5), (5, 10)]),
        ((3, 10, 4), [(3, 5), (5, 7), (7, 9), (9, 10)]),
        ((0, 2, 4), [(0, 1), (1, 2)]),
        ((5, 5, 4), []),
    ],
)
def test_chunks(arguments, expected):
    assert static_chunks(*arguments) == expected


def test_who_has_gone_is_told_nothing():
    class Memory:
        def __init__(self):
            thread_pool.on_change(self.set_threads)

        def set_threads(self, number):
            told.append(number)

    told = []
    memory = Memory()
    mlcweb.runtime.config_threadpool(1, 6)
    assert told[1:] == [6]
    del memory
    mlcweb.runtime.config_threadpool(1, 5)
    assert told[1:] == [6]
