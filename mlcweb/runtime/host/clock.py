"""A clock for measuring, and the finest step that it really makes.

Browsers round their clock to defend against timing attacks: to 5 µs in a cross-origin isolated
page, to 100 µs elsewhere. Batches have to be long against that step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import lru_cache


def in_browser() -> bool:
    """Whether Python runs in Pyodide."""
    return sys.platform == "emscripten"


@lru_cache(maxsize=1)
def _source() -> Callable[[], float]:
    if in_browser():
        from js import performance  # pyright: ignore[reportMissingImports]

        return lambda: performance.now() * 1e-3
    return time.perf_counter


def clock() -> float:
    """Seconds since some fixed moment, never going back."""
    return _source()()


@lru_cache(maxsize=1)
def clock_step() -> float:
    """The smallest step of the clock that was seen, in seconds."""
    return smallest_step(_source())


def smallest_step(now: Callable[[], float], samples: int = 20, readings: int = 100_000) -> float:
    """The least positive difference between `samples` successive changes of a clock.

    Gives up after `readings` readings and returns what was seen until then.
    """
    steps: list[float] = []
    before = now()
    for _ in range(readings):
        current = now()
        if current > before:
            steps.append(current - before)
            before = current
            if len(steps) == samples:
                break
    return min(steps, default=0.0)
