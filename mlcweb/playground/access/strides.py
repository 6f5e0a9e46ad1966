"""How the address of an access moves with each iteration of a loop around it: from recordings."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mlcweb.playground.access.instrumented import Loop
from mlcweb.playground.access.recording import Recording


@dataclass(frozen=True, slots=True)
class Stride:
    """Elements that an iteration of a loop moves on; None where they differ."""

    loop: str
    elements: int | None


@dataclass(frozen=True, slots=True)
class Strides:
    """The strides of one subscript, the outermost loop first; loops of one iteration have none."""

    steps: tuple[Stride, ...]

    @property
    def innermost(self) -> Stride | None:
        """The stride of the innermost loop with more than one iteration."""
        return self.steps[-1] if self.steps else None

    @property
    def badge(self) -> str:
        """ "unit", "stride n", "same", "irregular", or "once" outside such loops."""
        step = self.innermost
        if step is None:
            return "once"
        if step.elements is None:
            return "irregular"
        return {0: "same", 1: "unit"}.get(step.elements, f"stride {step.elements}")


def strides(recording: Recording) -> tuple[Strides, ...]:
    """The strides of every subscript, seen in the addresses of its accesses."""
    per_site = []
    for number, site in enumerate(recording.sites):
        chosen = recording.site == number
        per_site.append(strides_of(site.loops, recording.point[chosen], recording.element[chosen]))
    return tuple(per_site)


def strides_of(loops: tuple[Loop, ...], points: np.ndarray, elements: np.ndarray) -> Strides:
    """The steps between accesses of which only one loop's iteration differs, by one."""
    steps = []
    for level, loop in enumerate(loops):
        inner = prod(each.extent for each in loops[level + 1 :])
        # Accesses at the same iteration of all inner loops, such as their first.
        same = points % inner == (points[0] % inner if len(points) else 0)
        iterations, places = points[same] // inner, elements[same]
        follows = (np.diff(iterations) == 1) & (iterations[1:] % loop.extent != 0)
        distances = np.unique(np.diff(places)[follows])
        if len(distances):
            distance = int(distances[0]) if len(distances) == 1 else None
            steps.append(Stride(loop.name, distance))
    return Strides(tuple(steps))
