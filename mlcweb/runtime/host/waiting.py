"""How a plain function waits for what is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mlcweb.runtime.host.blocking_loop import run_blocking
from mlcweb.runtime.host.clock import in_browser

Result = TypeVar("Result")


def wait_for(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, whether or not an event loop runs already, and return its
    result. In a page whose browser cannot suspend Python its worker is blocked meanwhile."""
    if in_browser():
        return _wait_in_page(work)
    if asyncio._get_running_loop() is None:
        return asyncio.run(work)
    # A notebook: its loop runs in this thread and cannot be entered again.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _wait_in_page(work: Coroutine[Any, Any, Result]) -> Result:
    from pyodide.ffi import can_run_sync, run_sync  # pyright: ignore[reportMissingImports]

    return run_sync(work) if can_run_sync() else run_blocking(work)


def can_wait_for_gpu() -> bool:
    """Whether a plain function can wait for a GPU: suspended, or blocked while another worker of
    the page has it."""
    if can_suspend():
        return True
    from mlcweb.runtime.host.page_script import page_gpu_line

    return page_gpu_line() is not None


def can_suspend() -> bool:
    """Whether a plain function can wait for what the host does asynchronously."""
    if not in_browser():
        return True
    from pyodide.ffi import can_run_sync  # pyright: ignore[reportMissingImports]

    return can_run_sync()
