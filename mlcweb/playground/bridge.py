"""The one door through which the page calls Python: a function's name and JSON in, JSON out."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from mlcweb.playground import cell, code_measure, code_view, search, trace_view

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cell.execute": cell.execute_async,
    "trace_view.trace_steps": trace_view.trace_steps,
    "code_view.code": code_view.code,
    "code_view.after_pass": code_view.after_pass,
    "code_measure.measure": code_measure.measure,
    "search.begin": search.begin,
    "search.step": search.step,
    "search.details": search.details,
    "search.finish": search.finish,
}
"""What the page may call. A new view adds its functions here."""


async def call(name: str, arguments: str) -> str:
    """Call a function of `FUNCTIONS`; `arguments` is a JSON array.

    Returns:
        JSON: ``{"value": …}``, or ``{"error": message}`` if the function raised.
    """
    try:
        value = FUNCTIONS[name](*json.loads(arguments))
        if inspect.isawaitable(value):
            value = await value
        return json.dumps({"value": value})
    except Exception as error:
        return json.dumps({"error": str(error) or type(error).__name__})
    except KeyboardInterrupt:
        return json.dumps({"error": "stopped"})
