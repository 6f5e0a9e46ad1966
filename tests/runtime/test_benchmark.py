"""The measuring protocol, on a clock that the test turns."""

import pytest

from mlcweb.runtime import host
from mlcweb.runtime.benchmark import STEPS_PER_BATCH, BenchmarkResult, measure
from mlcweb.runtime.host.clock import smallest_step


class Kernel:
    """Takes a fixed time for a call; remembers the batches that it was run in."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.batches = []

    def __call__(self, number):
        self.batches.append(number)
        return number * self.seconds


@pytest.fixture(autouse=True)
def fine_clock(monkeypatch):
    monkeypatch.setattr(host, "clock_step", lambda: 1e-9)


def test_one_call_warms_up_and_each_repeat_is_a_batch():
    kernel = Kernel(1e-3)
    result = measure(kernel, number=10, repeat=3)
    assert kernel.batches == [1, 10, 10, 10]
    assert result.results == pytest.approx([1e-3] * 3)


def test_batches_grow_until_they_last_long_enough():
    kernel = Kernel(1e-5)
    result = measure(kernel, number=10, repeat=2, min_repeat_ms=20)
    assert kernel.batches[-1] * kernel.seconds >= 20e-3
    assert kernel.batches[-1] == kernel.batches[-2]
    assert result.mean == pytest.approx(1e-5)


def test_a_coarse_clock_needs_long_batches(monkeypatch):
    monkeypatch.setattr(host, "clock_step", lambda: 1e-4)
    kernel = Kernel(1e-6)
    measure(kernel, number=1)
    assert kernel.batches[-1] * kernel.seconds >= STEPS_PER_BATCH * 1e-4


def test_a_clock_that_stands_still_is_given_up():
    kernel = Kernel(0.0)
    result = measure(kernel, number=1, limit_zero_time_iterations=3)
    assert result.results == (0.0,)
    assert len(kernel.batches) == 1 + 4


def test_the_smallest_step_of_a_clock():
    readings = iter([0, 0, 0, 5, 5, 12, 12, 17])
    assert smallest_step(lambda: next(readings), samples=3) == 5
    assert smallest_step(lambda: 1.0, readings=10) == 0.0


def test_statistics_and_text():
    result = BenchmarkResult((1e-3, 2e-3, 6e-3))
    assert (result.mean, result.median) == pytest.approx((3e-3, 2e-3))
    assert (result.min, result.max) == (1e-3, 6e-3)
    assert result.std == pytest.approx(2.160246899e-3)
    assert str(result).splitlines() == [
        "Execution time summary:",
        " mean (ms)   median (ms)    max (ms)     min (ms)     std (ms)  ",
        "   3.0000       2.0000       6.0000       1.0000       2.1602   ",
    ]


def test_the_clock_runs():
    before = host.clock()
    assert host.clock() >= before
