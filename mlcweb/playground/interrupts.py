"""Stop: an interrupt ends what the page has called, and never the event loop between two steps.

An exception in the event loop's own code takes the step of a task with it, and whoever waits for
that task waits for ever. There the task is cancelled instead.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_LOOP = {"asyncio", "pyodide", "_pyodide"}
"""Packages whose code runs tasks."""

_DISPATCHERS = {"run_handle", "_run_once"}
"""Their functions that call one step after the other."""


class Interrupts:
    """What an interrupt ends."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    def install(self) -> None:
        """Handle interrupts of this process from now on."""
        signal.signal(signal.SIGINT, self._handle)

    @contextmanager
    def ending_this_task(self) -> Iterator[None]:
        """Let interrupts between two steps end the task that runs now."""
        self._task = asyncio.current_task()
        try:
            yield
        finally:
            self._task = None

    def _handle(self, _number: int, frame: FrameType | None) -> None:
        task = self._task
        between = _between_steps(frame)
        if not between and (task is None or asyncio.current_task(task.get_loop()) is task):
            raise KeyboardInterrupt
        if task is not None:
            task.cancel()
        if not between:
            # A task beside it: this error does not leave the task, as a KeyboardInterrupt would.
            raise asyncio.CancelledError


def as_interrupt(error: BaseException) -> BaseException:
    """A ``KeyboardInterrupt`` for a cancelled task; other errors as they are."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        task.uncancel()
        return KeyboardInterrupt().with_traceback(error.__traceback__)
    return error


def _between_steps(frame: FrameType | None) -> bool:
    """Whether the innermost code is the event loop's, and no task's."""
    while frame is not None and _package(frame) in _LOOP:
        if frame.f_code.co_name in _DISPATCHERS:
            return True
        frame = frame.f_back
    return frame is None


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
