"""The peak of an engine: multiplications and additions of vectors on registers alone."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.runtime.host.engine import engine
from mlcweb.runtime.machine_peak import multiply_add_timer, operations_an_iteration

ITERATIONS = 250_000
"""Some milliseconds for each measurement."""


def peak_timers() -> list[Callable[[], float]]:
    """Functions that measure the engine's GFLOPS: plain, and fused where the engine has that."""
    return [_timer(fused) for fused in ((False, True) if engine().relaxed_simd else (False,))]


def _timer(fused: bool) -> Callable[[], float]:
    run = multiply_add_timer("float32", fused)
    return lambda: operations_an_iteration("float32") * ITERATIONS / run(ITERATIONS) / 1e9
