"""Waiting for states, never for a time: a test must be right on the slowest machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

HANG_S = 600.0
"""Limit for what comes to an end by itself: it stops a hanging test, and is never reached else."""


def until(holds: Callable[[], bool]) -> None:
    """Return once a state is there."""
    while not holds():
        time.sleep(0.01)


def until_it_computes(process: int) -> None:
    """Return once a process has computed for a tenth of a second from now."""
    begin = processor_seconds(process)
    until(lambda: processor_seconds(process) > begin + 0.1)


def processor_seconds(process: int) -> float:
    """What a process has computed so far, by Linux's books."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
