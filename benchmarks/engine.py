"""What the suite asks of an engine, whatever it is and wherever it runs."""

from __future__ import annotations

from typing import Protocol


class NotForThis(Exception):
    """An engine has no such program."""


class Engine(Protocol):
    """Programs are known by the name ``workload/program``."""

    name: str
    """As in options and tables."""
    title: str
    """As in the heading of a column."""
    only_best: bool
    """Whether it knows computations but no schedules, so that one program of each is enough."""

    def prepare(self, name: str) -> None:
        """Make a program ready and check what it computes.

        Raises:
            NotForThis: the engine has no such program.
        """
        ...

    def sample(self, name: str) -> float:
        """Seconds per call, measured once."""
        ...

    def peak(self) -> float | None:
        """The GFLOPS of arithmetic on registers now; None where that is not measured."""
        ...

    def forget(self, name: str) -> None:
        """Free what `prepare` made."""
        ...
