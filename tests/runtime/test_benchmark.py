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


class WarmingKernel(Kernel):
    """Is slow for its first calls."""

    def __init__(self, seconds, slow_calls):
        super().__init__(seconds)
        self.slow_calls = slow_calls

    def __call__(self, number):
        slow = min(number, self.slow_calls)
        self.slow_calls -= slow
        return super().__call__(number) + 4 * slow * self.seconds


def test_compiled_code_is_warmed_up_until_two_batches_agree():
    kernel = WarmingKernel(1e-3, slow_calls=2)
    result = measure(kernel, number=4, repeat=2, settle=True)
    assert result.results == pytest.approx([1e-3] * 2)
    assert kernel.batches[-2:] == [4, 4]
    assert sum(kernel.batches[:-2]) >= 2 + 2


def test_a_warm_up_batch_is_long_against_the_clock(monkeypatch):
    monkeypatch.setattr(host, "clock_step", lambda: 1e-4)
    kernel = Kernel(1e-5)
    measure(kernel, number=1, settle=True)
    agreeing = [number for number in kernel.batches if number * kernel.seconds >= 0.5 * 20e-3]
    assert len(agreeing) >= 3


def test_what_never_settles_is_measured_all_the_same():
    class Restless(Kernel):
        def __call__(self, number):
            return super().__call__(number) * (1 + len(self.batches) % 2)

    kernel = Restless(2e-3)
    result = measure(kernel, number=1, repeat=3, settle=True)
    assert len(result.results) == 3
    assert sum(kernel.batches) * kernel.seconds < 1


def test_a_call_that_takes_long_is_not_repeated_to_warm_up():
    kernel = Kernel(5.0)
    measure(kernel, number=1, repeat=1, settle=True)
    assert kernel.batches == [1, 1]


def test_the_conditions_are_kept_with_the_result():
    conditions = measure(Kernel(1e-3), repeat=1).conditions
    assert conditions is not None
    assert conditions.cores >= 1
    assert 0 < conditions.clock_step < 0.1
    assert conditions.isolated is None


def test_every_repeat_is_reported():
    times = iter([9.0, 0.5, 0.25, 0.75])
    result = measure(lambda number: next(times) * number, number=2, repeat=3)
    assert result.results == (0.5, 0.25, 0.75)
    assert result == BenchmarkResult((0.5, 0.25, 0.75))
