"""How a plain function waits for what is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.clock import in_browser

Result = TypeVar("Result")


def wait_for(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, whether or not an event loop runs already, and return its result.

    Raises:
        TVMError: this browser has no way to let Python wait.
    """
    if in_browser():
        return _wait_in_page(work)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A notebook: its loop runs in this thread and cannot be entered again.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _wait_in_page(work: Coroutine[Any, Any, Result]) -> Result:
    from pyodide.ffi import can_run_sync, run_sync  # pyright: ignore[reportMissingImports]

    if not can_run_sync():
        work.close()
        raise TVMError(
            "This browser cannot let Python wait for a worker (it lacks JavaScript Promise "
            "Integration); use the Search view, or `await` the search"
        )
    return run_sync(work)
