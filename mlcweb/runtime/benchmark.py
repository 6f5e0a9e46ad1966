"""Measuring how long a function takes."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mlcweb.runtime import host
from mlcweb.runtime.ndarray import NDArray
from mlcweb.runtime.registry import get_global_func, register_func

STEPS_PER_BATCH = 200
"""Steps of the clock in a batch, at least: one is half a percent of it."""

AGREEMENT = 0.03
"""Compiled code is warm when two batches that follow each other differ by no more."""
MUCH = 0.3
"""The share of a time from which on a call is much of it."""
LONG = 5e-3
"""Seconds, of which a call that has nothing to do is a small part on any GPU."""
MIN_WARM_UP_BATCH = 1e-3
MAX_WARM_UP = 0.2
"""Seconds."""


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call: one number for each repeat, and what they amount to. `conditions` tell
    under which they were measured; `call` is what a call takes on a GPU that has nothing to do,
    None where that is little."""

    results: tuple[float, ...]
    conditions: host.Conditions | None = field(default=None, compare=False)
    call: float | None = field(default=None, compare=False)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        columns = ("mean", "median", "max", "min", "std")
        head = " ".join(f"{f'{name} (ms)':^12}" for name in columns)
        row = " ".join(f"{getattr(self, name) * 1e3:^12.4f}" for name in columns)
        return f"Execution time summary:\n{head}\n{row}{self._overhead()}"

    def _overhead(self) -> str:
        """A line where calls themselves take most of the time, or nothing."""
        if self.call is None or self.call < MUCH * self.median:
            return ""
        share = min(1, self.call / self.median)
        return (
            f"\nAbout {share:.0%} of this is the call itself: on this GPU one takes "
            f"{self.call * 1e3:.3g} ms that has nothing to do"
        )

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name in ("min", "mean", "median", "max", "std", "results")
        )
        return f"BenchmarkResult({values})"


def measure(
    time_batch: Callable[[int], float],
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: float = 0,
    limit_zero_time_iterations: int = 100,
    cooldown_interval_ms: float = 0,
    repeats_to_cooldown: int = 1,
    before_repeat: Callable[[], Any] | None = None,
    settle: bool = False,
) -> BenchmarkResult:
    """Time `repeat` batches of `number` calls, after a call that does not count; to `settle`, after
    so many that two batches agree.

    `time_batch(n)` makes n calls and returns the seconds that they took. A batch that is shorter
    than `min_repeat_ms`, or than the clock can tell, is run again with a greater number; while it
    takes no measurable time at all, at most `limit_zero_time_iterations` times.
    """
    shortest = max(min_repeat_ms * 1e-3, STEPS_PER_BATCH * host.clock_step())
    first = time_batch(1)
    if settle and first < MAX_WARM_UP:
        _warm_up(time_batch, shortest)
    results: list[float] = []
    for index in range(repeat):
        if before_repeat is not None:
            before_repeat()
        number, seconds = long_enough(time_batch, number, shortest, limit_zero_time_iterations)
        results.append(seconds / number)
        if cooldown_interval_ms > 0 and (index + 1) % repeats_to_cooldown == 0:
            time.sleep(cooldown_interval_ms * 1e-3)
    return BenchmarkResult(tuple(results), host.conditions())


def _warm_up(time_batch: Callable[[int], float], shortest: float) -> None:
    """Run batches until two that follow each other agree, or it has taken long enough."""
    number, before, spent = 1, math.inf, 0.0
    while spent < MAX_WARM_UP:
        number, seconds = long_enough(time_batch, number, max(shortest, MIN_WARM_UP_BATCH), 0)
        if abs(seconds / number - before) <= AGREEMENT * before < math.inf:
            return
        before = seconds / number
        spent += max(seconds, MIN_WARM_UP_BATCH)


def long_enough(
    time_batch: Callable[[int], float], number: int, shortest: float, zero_limit: int
) -> tuple[int, float]:
    """A batch of `number` calls, or of enough more to last `shortest` seconds; how many they
    are, and what they took. No more than `zero_limit` batches that take no time are tried."""
    zeros = 0
    while True:
        seconds = time_batch(number)
        zeros += seconds <= 0
        if seconds >= shortest or zeros > zero_limit:
            return number, seconds
        enough = number * shortest / seconds if seconds > 0 else 0
        number = max(math.ceil(enough * 1.05), math.ceil(number * 1.6))


CACHE_BYTES = 1 << 27
"""More than the caches of most processors hold."""

FLUSH = "cache_flush_cpu_non_first_arg"


@cache
def _memory_beyond_caches() -> Any:
    import numpy as np

    return np.zeros(CACHE_BYTES, "uint8")


@register_func(FLUSH)
def flush_caches(*arguments: Any) -> None:
    """What `f_preproc` of a `time_evaluator` may name: evicts all arguments but the first from the
    caches, as a function of a model finds them that takes what was made just before."""
    memory = _memory_beyond_caches()
    memory += 1
    for first in arguments[:1]:
        if isinstance(first, NDArray):
            first.numpy()


def prepare_repeat(arguments: Sequence[Any], f_preproc: str, cache_flush_bytes: int) -> None:
    """What `time_evaluator` does before each repeat: the registered function `f_preproc` is called
    with the arguments, and `cache_flush_bytes` of memory are touched."""
    if f_preproc:
        get_global_func(f_preproc)(*arguments)
    if cache_flush_bytes:
        bytearray(cache_flush_bytes).count(1)


def time_in_python(function: Callable[..., Any], arguments: list[Any], number: int) -> float:
    """Seconds that `number` calls take; the loop and the clock are all there is around them."""
    calls = range(number)
    start = host.clock()
    for _ in calls:
        function(*arguments)
    return host.clock() - start
