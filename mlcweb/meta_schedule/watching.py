"""Whoever wants to know of every search of task schedulers, no matter who began it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlcweb.meta_schedule.task_scheduler import TaskScheduler
    from mlcweb.meta_schedule.trial import Trial

Watcher = Callable[["TaskScheduler", "int | None", "Trial | None"], None]
"""Told of each trial, with the number of its task, and of the beginning and the end (None)."""

_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """While active, `watcher` is told of all searches."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def tell(scheduler: TaskScheduler, number: int | None = None, trial: Trial | None = None) -> None:
    """Tell all who watch."""
    for watcher in tuple(_watchers):
        watcher(scheduler, number, trial)
