"""A clock for measuring, and the finest step that it really makes.

Browsers round their clock to defend against timing attacks: to 5 µs in a cross-origin isolated
page, to 100 µs elsewhere. Batches have to be long against that step.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


def in_browser() -> bool:
    """Whether Python runs in Pyodide."""
    return sys.platform == "emscripten"


@lru_cache(maxsize=1)
def clock_source() -> Callable[[], float]:
    """The clock itself, for whoever reads it often."""
    if in_browser():
        from js import performance  # pyright: ignore[reportMissingImports]

        return lambda: performance.now() * 1e-3
    return time.perf_counter


def clock() -> float:
    """Seconds since some fixed moment, never going back."""
    return clock_source()()


def timer_of(function: Callable[..., Any]) -> Callable[..., float]:
    """A function that gives the seconds that a call takes."""

    def run(*arguments: Any) -> float:
        start = clock()
        function(*arguments)
        return clock() - start

    return run


@lru_cache(maxsize=1)
def clock_step() -> float:
    """The smallest step of the clock that was seen, in seconds."""
    return smallest_step(clock_source())


@lru_cache(maxsize=1)
def shares_memory() -> bool:
    """Whether threads of the page may share memory: it is isolated, and the browser plays along."""
    import js  # pyright: ignore[reportMissingImports]

    isolated = getattr(js, "crossOriginIsolated", False)
    return bool(isolated) and hasattr(js, "SharedArrayBuffer")


def processors() -> int:
    """The processors of this machine, as far as the browser tells in a page."""
    if not in_browser():
        return os.cpu_count() or 1
    import js  # pyright: ignore[reportMissingImports]

    return int(getattr(getattr(js, "navigator", None), "hardwareConcurrency", 1) or 1)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a measurement depends on besides the program: the step of the clock in seconds, how many
    processor cores there are, and whether the page is isolated from others (None natively)."""

    clock_step: float
    cores: int
    isolated: bool | None


@lru_cache(maxsize=1)
def conditions() -> Conditions:
    """The conditions here."""
    isolated = shares_memory() if in_browser() else None
    return Conditions(clock_step(), processors(), isolated)


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
