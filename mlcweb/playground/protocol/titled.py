"""What the page can ask about, as it offers it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Titled:
    """A trace, a program, or a step of a schedule, by an identifier."""

    id: str
    title: str
