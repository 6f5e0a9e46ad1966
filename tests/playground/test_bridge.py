"""The door between page and Python: JSON in, JSON out, never an exception."""

import asyncio
import json
from typing import Any

from mlcweb.playground import bridge


def call(name: str, *arguments: Any) -> Any:
    return json.loads(asyncio.run(bridge.call(name, json.dumps(arguments))))


def test_a_call_returns_the_value() -> None:
    assert call("cell.execute", "x = 1", "lesson.py")["value"]["ok"]


def test_errors_come_back_as_a_message() -> None:
    assert "no search" in call("search.step", "s0")["error"]
    assert "earlier run" in call("trace_view.trace_steps", "t0")["error"]
