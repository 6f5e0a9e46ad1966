"""Chapter 2: how the width of a tile changes the time of a matrix product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.playground.checks.common import variable
from mlcweb.playground.checks.verdict import Wrong

EXTENT = 128
ENOUGH = 5


def check(variables: Mapping[str, Any]) -> str:
    times = variable(variables, "times", dict, "a dictionary from jfactor to seconds")
    if not times:
        raise Wrong("times is empty: measure some factors and write times[jfactor] = seconds.")
    for factor, seconds in times.items():
        if not isinstance(factor, int) or factor < 1 or EXTENT % factor:
            raise Wrong(
                f"{factor!r} is no divisor of {EXTENT}, so a tile of that width leaves a rest; "
                "take powers of two from 1 to 128."
            )
        if not isinstance(seconds, float | int) or not seconds > 0:
            raise Wrong(
                f"times[{factor}] is {seconds!r}; it should be a number of seconds above 0."
            )
    if len(times) < ENOUGH:
        raise Wrong(
            f"You have measured {len(times)} factor(s). Measure at least {ENOUGH}, small and "
            "large, so that the shape of the curve shows."
        )
    best = variable(variables, "best", int, "the jfactor with the least time")
    least = min(times, key=lambda factor: times[factor])
    if best != least:
        raise Wrong(f"best is {best}, but among your times that of {least} is the least.")
    worst = max(times, key=lambda factor: times[factor])
    ratio = times[worst] / times[best]
    return (
        f"Of {len(times)} widths {best} is the fastest here, {ratio:.1f} times as fast as {worst}."
    )
