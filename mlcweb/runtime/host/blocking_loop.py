"""An event loop inside of another one that stands still meanwhile.

A browser with JavaScript Promise Integration suspends a plain Python function until a promise is
settled. Elsewhere nothing of the thread's own event loop can happen before the function returns, so
its coroutines run in a loop of their own, which blocks the thread where there is nothing to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

MAX_BLOCK_S = 0.1
"""Seconds after which Python gets a moment, so that it hears of an interrupt."""


class BlockingLoop(asyncio.BaseEventLoop):
    """Where nothing is left to do, `poll` is called with seconds: it returns after these, or
    earlier when it has settled a future. Without it the loop sleeps."""

    poll: Callable[[float], None] | None = None

    def __init__(self) -> None:
        super().__init__()
        # What `BaseEventLoop` asks for events.
        self._selector = self

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for at most so many seconds; a loop calls it when it runs out of callbacks.

        Raises:
            RuntimeError: there is nothing that could happen.
        """
        if self.poll is not None:
            self.poll(MAX_BLOCK_S if timeout is None else min(timeout, MAX_BLOCK_S))
        elif timeout is None:
            raise RuntimeError("A coroutine waits for what cannot happen while Python is blocked")
        elif timeout > 0:
            time.sleep(timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """The poll has settled its futures already."""

    def _write_to_self(self) -> None:
        """No other thread wakes the loop."""


def run_blocking(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end in a `BlockingLoop`, whether or not another loop runs here."""
    loop = BlockingLoop()
    try:
        with _outside_of_running_loop():
            try:
                return loop.run_until_complete(work)
            finally:
                _cancel_rest(loop)
    finally:
        loop.close()


@contextmanager
def _outside_of_running_loop() -> Iterator[None]:
    """Leave the loop that runs in this thread, and its task, for a while."""
    outer = asyncio._get_running_loop()
    if outer is None:
        yield
        return
    task = asyncio.current_task(outer)
    if task is not None:
        asyncio._leave_task(outer, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if task is not None:
            asyncio._enter_task(outer, task)


def _cancel_rest(loop: BlockingLoop) -> None:
    # No answer counts any more, and what interrupted the poll need not do so again.
    loop.poll = None
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
