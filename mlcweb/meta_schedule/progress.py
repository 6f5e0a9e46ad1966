"""How a search goes on: a live table of its tasks in a terminal, lines of a log elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.cost_model.learned_model import LearnedModel, together
from mlcweb.runtime.host import clock, in_browser

if TYPE_CHECKING:
    from mlcweb.meta_schedule.task_scheduler import TaskScheduler

LOG_EVERY_S = 10.0
"""Seconds between two lines of the log, at most; each better program has one more."""

MIN_GAIN = 0.02
"""The share by which a program has to be faster to be worth a line."""

REASON_WIDTH = 160
"""Characters of the reason for a failed trial, at most."""

COLUMNS = (
    "ID", "Name", "FLOP", "Weight", "Speed (GFLOPS)", "Latency (us)", "Weighted Latency (us)",
    "Trials", "Done",
)  # fmt: skip


def rows(scheduler: TaskScheduler) -> list[tuple[str, ...]]:
    """The tasks as the table shows them, with `COLUMNS`."""
    table = []
    for number, task in enumerate(scheduler.tasks):
        is_measured = task.best < float("inf")
        speed = task.gflops
        table.append(
            (
                str(number),
                task.name,
                f"{task.flops:.0f}" if task.flops else "N/A",
                f"{task.weight:g}",
                "N/A" if speed is None else f"{speed:.4f}",
                f"{task.best * 1e6:.4f}" if is_measured else "N/A",
                f"{task.best * task.weight * 1e6:.4f}" if is_measured else "N/A",
                str(task.trials),
                "Y" if task.terminated else "",
            )
        )
    return table


def totals(scheduler: TaskScheduler, seconds: float) -> str:
    """Trials and time, done and to come.

    Args:
        seconds: since the search began.
    """
    best = [task.best * task.weight for task in scheduler.tasks if task.best < float("inf")]
    latency = f"total latency {sum(best) * 1e6:.4g} us, " if best else ""
    return latency + trials(scheduler, seconds)


def trials(scheduler: TaskScheduler, seconds: float) -> str:
    """How many trials are done, and how long the others will take if all goes on like this."""
    done, most = scheduler.total_trials, scheduler.max_trials_global
    goes_on = 0 < done < most and not all(task.terminated for task in scheduler.tasks)
    left = f", about {seconds / done * (most - done):.0f} s left" if goes_on else ""
    return f"trials {done}/{most}, {seconds:.0f} s{left}{failures(scheduler)}{ranked(scheduler)}"


def failures(scheduler: TaskScheduler) -> str:
    """How many trials failed, and why one of them did, where there are such."""
    failed = sum(task.failed for task in scheduler.tasks)
    reasons = (task.failure.strip() for task in scheduler.tasks if task.failure)
    why = next((f" ({shorten(reason, REASON_WIDTH)})" for reason in reasons), "")
    return f", {failed} failed{why}" if failed else ""


def ranked(scheduler: TaskScheduler) -> str:
    """How well the cost model ranked programs before they were measured, where there is one."""
    rankings = []
    for task in scheduler.tasks:
        model = getattr(task.context.search_strategy, "cost_model", None)
        if isinstance(model, LearnedModel):
            rankings.append(model.ranking(task.context))
    both = together(rankings)
    if not both.clear_pairs:
        return ""
    return f", {both.clear:.0%} of clear pairs ranked right ({both.all:.0%} of all)"


class Progress:
    """An observer of a task scheduler. Where standard error is a terminal, and `rich` is installed,
    it shows a live table; elsewhere it writes to the logger "mlcweb.meta_schedule". In a page,
    whose views show searches, it says nothing.

    Use it as a context: what it shows ends with it.

    Args:
        now: the seconds of a clock.
    """

    def __init__(self, now: Callable[[], float] = clock) -> None:
        self._now = now
        self._begin = now()
        self._show: Callable[[TaskScheduler, int | None, float], None] | None = None
        self._open = ExitStack()

    def __enter__(self) -> Progress:
        if in_browser():
            return self
        live = _live(self._open) if sys.stderr.isatty() else None
        self._show = live or Log(self._open)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._show = None
        self._open.close()

    def __call__(self, scheduler: TaskScheduler, task_id: int | None) -> None:
        if self._show is not None:
            self._show(scheduler, task_id, self._now() - self._begin)


class Log:
    """Writes a line for each program that is faster than all before, and now and then another; at
    the end the table.

    Without logging set up, lines go to standard error.
    """

    def __init__(self, open_until_the_end: ExitStack) -> None:
        self.logger = logging.getLogger("mlcweb.meta_schedule")
        if not self.logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s [INFO] %(message)s", "%H:%M:%S"))
            self.logger.addHandler(handler)
            open_until_the_end.callback(self.logger.removeHandler, handler)
        if self.logger.level == logging.NOTSET:
            self.logger.setLevel(logging.INFO)
            open_until_the_end.callback(self.logger.setLevel, logging.NOTSET)
        self._best: dict[int, float] = {}
        self._last = 0.0
        self._began = False

    def __call__(self, scheduler: TaskScheduler, task_id: int | None, seconds: float) -> None:
        if task_id is not None:
            best = scheduler.tasks[task_id].best
            better = best < self._best.get(task_id, float("inf")) * (1 - MIN_GAIN)
            if better or seconds - self._last >= LOG_EVERY_S:
                self._best[task_id], self._last = best, seconds
                self.logger.info(line(scheduler, task_id, seconds))
        elif not self._began:
            self._began = True
            names = ", ".join(task.name for task in scheduler.tasks)
            self.logger.info(f"Tuning {names}: {scheduler.max_trials_global} trials at most")
        else:
            self.logger.info(f"Done: {totals(scheduler, seconds)}\n{text(scheduler)}")


def line(scheduler: TaskScheduler, task_id: int, seconds: float) -> str:
    """A task, and how far the search is, in one line."""
    task = scheduler.tasks[task_id]
    best = f"best {task.best * 1e6:.4g} us" if task.best < float("inf") else "nothing ran yet"
    speed = "" if task.gflops is None else f", {task.gflops:.4g} GFLOPS"
    return f'Task #{task_id} "{task.name}": {best}{speed}; {trials(scheduler, seconds)}'


def text(scheduler: TaskScheduler) -> str:
    """The tasks as a table in plain text."""
    lines = [COLUMNS, *rows(scheduler)]
    widths = [max(len(row[column]) for row in lines) for column in range(len(COLUMNS))]
    texts = [
        " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in lines
    ]
    rule = "-" * len(texts[0])
    return "\n".join([texts[0], rule, *texts[1:], rule])


def _live(open_until_the_end: ExitStack) -> Any:
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        return None
    live = open_until_the_end.enter_context(
        Live(console=Console(stderr=True), refresh_per_second=4)
    )
    return lambda scheduler, task_id, seconds: live.update(table(scheduler, seconds))


def table(scheduler: TaskScheduler, seconds: float) -> Any:
    """The tasks and totals as a `rich.table.Table`."""
    from rich.table import Table

    shown = Table(caption=totals(scheduler, seconds))
    for number, column in enumerate(COLUMNS):
        shown.add_column(column, justify="left" if number == 1 else "right")
    for row in rows(scheduler):
        shown.add_row(*row)
    return shown
