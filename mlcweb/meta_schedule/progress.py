"""A table of the tasks of a search, live in a terminal; elsewhere nothing is said."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mlcweb.runtime.host import in_browser

if TYPE_CHECKING:
    from mlcweb.meta_schedule.task_scheduler import TaskScheduler

COLUMNS = (
    "ID", "Name", "FLOP", "Weight", "Speed (GFLOPS)", "Latency (us)", "Weighted Latency (us)",
    "Trials", "Done",
)  # fmt: skip


def rows(scheduler: TaskScheduler) -> list[tuple[str, ...]]:
    """The tasks as the table shows them, with `COLUMNS`."""
    found = []
    for number, task in enumerate(scheduler.tasks):
        known = task.best < float("inf")
        speed = task.gflops
        found.append(
            (
                str(number),
                task.name,
                f"{task.flops:.0f}" if task.flops else "N/A",
                f"{task.weight:g}",
                "N/A" if speed is None else f"{speed:.4f}",
                f"{task.best * 1e6:.4f}" if known else "N/A",
                f"{task.best * task.weight * 1e6:.4f}" if known else "N/A",
                str(task.trials),
                "Y" if task.terminated else "",
            )
        )
    return found


def totals(scheduler: TaskScheduler, seconds: float) -> str:
    """Trials and time, done and to come.

    Args:
        seconds: since the search began.
    """
    done, most = scheduler.total_trials, scheduler.max_trials_global
    best = [task.best * task.weight for task in scheduler.tasks if task.best < float("inf")]
    latency = f"total latency {sum(best) * 1e6:.4g} us, " if best else ""
    left = f", about {seconds / done * (most - done):.0f} s left" if 0 < done < most else ""
    return f"{latency}trials {done}/{most}, {seconds:.0f} s{left}"


class Progress:
    """An observer of a task scheduler that shows a live table where standard error is a terminal.

    Use it as a context: the table ends with it.
    """

    def __init__(self) -> None:
        self._live: Any = None
        self._begin = time.monotonic()

    def __enter__(self) -> Progress:
        if in_browser() or not sys.stderr.isatty():
            return self
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            return self
        self._live = Live(console=Console(stderr=True), refresh_per_second=4)
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*exception)

    def __call__(self, scheduler: TaskScheduler, task_id: int | None) -> None:
        if self._live is not None:
            self._live.update(table(scheduler, time.monotonic() - self._begin))


def table(scheduler: TaskScheduler, seconds: float) -> Any:
    """The tasks and totals as a `rich.table.Table`."""
    from rich.table import Table

    made = Table(caption=totals(scheduler, seconds))
    for number, column in enumerate(COLUMNS):
        made.add_column(column, justify="left" if number == 1 else "right")
    for row in rows(scheduler):
        made.add_row(*row)
    return made
