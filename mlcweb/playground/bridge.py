"""The one door through which the page calls Python: a function's name and JSON in, JSON out."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

from mlcweb.playground import (
    access_view,
    cell,
    checking,
    code_measure,
    code_view,
    completion,
    files,
    gpu_view,
    notebook,
    search,
    trace_compare,
    trace_export,
    trace_timing,
    trace_view,
)
from mlcweb.playground.interrupts import Interrupts
from mlcweb.playground.protocol.program import Picture
from mlcweb.playground.protocol.search import SearchNews
from mlcweb.playground.protocol.wire import from_plain, to_json

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cell.execute": cell.execute_async,
    "notebook.execute": notebook.execute,
    "notebook.restart": notebook.restart,
    "notebook.close": notebook.close,
    "notebook.check": notebook.check,
    "checking.check": checking.check,
    "completion.live": completion.live,
    "files.place": files.place,
    "trace_view.trace_steps": trace_view.trace_steps,
    "trace_view.derive": trace_view.derive,
    "trace_view.refusal": trace_view.refusal,
    "trace_timing.begin": trace_timing.begin,
    "trace_timing.step": trace_timing.step,
    "trace_timing.finish": trace_timing.finish,
    "trace_compare.compare": trace_compare.compare,
    "trace_export.python": trace_export.python,
    "trace_export.record": trace_export.record,
    "trace_export.steps_json": trace_export.steps_json,
    "trace_export.load": trace_export.load,
    "access_view.explain": access_view.explain,
    "access_view.simulate": access_view.simulate,
    "gpu_view.explain": gpu_view.explain,
    "gpu_view.lanes": gpu_view.lanes,
    "gpu_view.occupancy": gpu_view.occupancy,
    "code_view.code": code_view.code,
    "code_view.after_pass": code_view.after_pass,
    "code_measure.measure": code_measure.measure,
    "search.workload": search.workload,
    "search.begin": search.begin,
    "search.step": search.step,
    "search.details": search.details,
    "search.finish": search.finish,
    "search.forget": search.forget,
    "search.compare": search.compare,
    "search.read_files": search.read_files,
}
"""What the page may call. A new view adds its functions here."""

EVENTS: dict[str, Any] = {"picture": Picture, "html": str, "search": SearchNews}
"""What Python tells while it is busy, and its type."""


interrupts = Interrupts()


async def call(name: str, arguments: str) -> str:
    """Call a function of `FUNCTIONS`; `arguments` is a JSON array.

    Returns:
        JSON: ``{"value": …}``, or ``{"error": message}`` if the function raised.
    """
    try:
        plain = zip(_parameters(name), json.loads(arguments), strict=False)
        with interrupts.ending_this_task():
            value = FUNCTIONS[name](*(from_plain(kind, argument) for kind, argument in plain))
            if inspect.isawaitable(value):
                value = await value
        return to_json({"value": value})
    except Exception as error:
        return json.dumps({"error": str(error) or type(error).__name__})
    except (KeyboardInterrupt, asyncio.CancelledError):
        return json.dumps({"error": "stopped"})


@cache
def _parameters(name: str) -> tuple[Any, ...]:
    """The types of a function's parameters."""
    types = get_type_hints(FUNCTIONS[name])
    return tuple(types[parameter] for parameter in inspect.signature(FUNCTIONS[name]).parameters)
