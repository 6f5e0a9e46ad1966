"""How the place of an access moves when a loop around it takes one turn more: from recordings."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mlcweb.playground.access.instrumented import Loop
from mlcweb.playground.access.recording import Recording


@dataclass(frozen=True, slots=True)
class Step:
    """How many elements a turn of `loop` goes on: always `elements`, or differently (None)."""

    loop: str
    elements: int | None


@dataclass(frozen=True, slots=True)
class Movement:
    """The steps of one subscript, the outermost loop's first; loops of one turn have none."""

    steps: tuple[Step, ...]

    @property
    def innermost(self) -> Step | None:
        """The step of the innermost loop that takes turns."""
        return self.steps[-1] if self.steps else None

    @property
    def badge(self) -> str:
        """ "unit", "stride n", "same", "irregular", or "once" where no loop takes turns."""
        step = self.innermost
        if step is None:
            return "once"
        if step.elements is None:
            return "irregular"
        return {0: "same", 1: "unit"}.get(step.elements, f"stride {step.elements}")


def movements(recording: Recording) -> tuple[Movement, ...]:
    """The movement of every subscript, seen in the addresses of its accesses."""
    found = []
    for number, site in enumerate(recording.sites):
        chosen = recording.site == number
        found.append(movement(site.loops, recording.point[chosen], recording.element[chosen]))
    return tuple(found)


def movement(loops: tuple[Loop, ...], points: np.ndarray, elements: np.ndarray) -> Movement:
    """The steps between accesses of which only one loop's turn differs, by one."""
    steps = []
    for level, loop in enumerate(loops):
        inner = prod(each.extent for each in loops[level + 1 :])
        # Accesses at the same turn of all inner loops, such as their first.
        same = points % inner == (points[0] % inner if len(points) else 0)
        turns, places = points[same] // inner, elements[same]
        follows = (np.diff(turns) == 1) & (turns[1:] % loop.extent != 0)
        distances = np.unique(np.diff(places)[follows])
        if len(distances):
            steps.append(Step(loop.name, int(distances[0]) if len(distances) == 1 else None))
    return Movement(tuple(steps))
