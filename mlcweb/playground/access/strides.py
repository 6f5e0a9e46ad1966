"""How the address of an access moves with each iteration of a loop around it: from recordings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcweb.playground.access.instrumented import Loop
from mlcweb.playground.access.recording import Recording


@dataclass(frozen=True, slots=True)
class Stride:
    """Elements that an iteration of the innermost loop moves on; None where they differ. Loops of
    one iteration do not count; outside of others there is no loop."""

    loop: str | None
    elements: int | None

    @property
    def badge(self) -> str:
        """ "unit", "stride n", "same", "irregular", or "once" outside such loops."""
        if self.loop is None:
            return "once"
        if self.elements is None:
            return "irregular"
        return {0: "same", 1: "unit"}.get(self.elements, f"stride {self.elements}")


def strides(recording: Recording) -> tuple[Stride, ...]:
    """The stride of every subscript, seen in the addresses of its accesses."""
    per_site = []
    for number, site in enumerate(recording.sites):
        chosen = recording.site == number
        per_site.append(stride_of(site.loops, recording.point[chosen], recording.element[chosen]))
    return tuple(per_site)


def stride_of(loops: tuple[Loop, ...], points: np.ndarray, elements: np.ndarray) -> Stride:
    """The step between accesses of which only the innermost loop's iteration differs, by one."""
    inner = 1
    for loop in reversed(loops):
        # Accesses at the same iteration of all inner loops, such as their first.
        same = points % inner == (points[0] % inner if len(points) else 0)
        iterations, places = points[same] // inner, elements[same]
        follows = (np.diff(iterations) == 1) & (iterations[1:] % loop.extent != 0)
        distances = np.unique(np.diff(places)[follows])
        if len(distances):
            return Stride(loop.name, int(distances[0]) if len(distances) == 1 else None)
        inner *= loop.extent
    return Stride(None, None)
