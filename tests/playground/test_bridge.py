"""The door between page and Python: JSON in, JSON out, never an exception."""

import asyncio
import json
import subprocess
import sys
from typing import Any

from mlcweb.playground import bridge


def call(name: str, *arguments: Any) -> Any:
    return json.loads(asyncio.run(bridge.call(name, json.dumps(arguments))))


def test_a_call_returns_the_value() -> None:
    assert call("cell.execute", "x = 1", "lesson.py")["value"]["ok"]


def test_errors_come_back_as_a_message() -> None:
    assert "no search" in call("search.step", "s0")["error"]
    assert "earlier run" in call("trace_view.trace_steps", "t0")["error"]


def test_what_few_programs_need_is_not_loaded_when_the_page_starts() -> None:
    code = (
        "import sys, mlcweb.compat, mlcweb.playground.bridge; "
        "print([name for name in ('topi', 'lower.transform') if f'mlcweb.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
