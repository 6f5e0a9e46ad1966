"""Programs that attack Python itself, or leave it blocked: the page goes on, and so does Stop."""

import re

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground

ENDS = {
    "exit": "import os\nos._exit(3)",
    "abort": "import os\nos.abort()",
    "overflow in repr": (
        "import sys\n"
        "sys.setrecursionlimit(10**8)\n"
        "class Deep:\n"
        "    def __repr__(self): return repr(self)\n"
        "Deep()"
    ),
    "overflow in the parser": "x = " + "-" * 100_000 + "1",
    "memory of others": "import ctypes\nctypes.memset(0, 1, 10**7)",
    "globals of the browser": (
        "import js\nfor name in dir(js):\n    try: delattr(js, name)\n    except Exception: pass"
    ),
    "answers": 'import json\njson.dumps = lambda *of, **how: \'{"value": {"ok": true}}\'',
    "the bridge": "import json\njson.loads = json.dumps = None",
}

CALLBACKS = {
    "raises": "js.setTimeout(create_proxy(lambda: 1 / 0), 0)",
    "rejects": "js.Promise.reject('nobody awaits it')",
    "reports": "js.reportError('reported')",
    "in the loop": "asyncio.get_running_loop().call_soon(lambda: 1 / 0)",
    "borrowed": "js.setTimeout(lambda: None, 0)",
}

SPINS = {
    "timer": "js.setTimeout(create_proxy(spin), 1000)",
    "loop": "asyncio.get_running_loop().call_later(1, spin)",
}


def callback(text: str) -> str:
    return f"""
import asyncio, js
from pyodide.ffi import create_proxy
def spin():
    while True: pass
{text}
print("begun")
"""


def goes_on(playground: Playground) -> None:
    playground.run_to_end("print('once ' + 'more')")
    expect(playground["console"]).to_contain_text("once more")
    playground.expect_state("ready")
    # Pyodide reports its end, too.
    playground.problems.clear()


def some(cases: dict[str, str], *always: str) -> list[object]:
    return [pytest.param(n, marks=() if n in always else pytest.mark.thorough) for n in cases]


@pytest.mark.parametrize("name", some(ENDS, "exit", "answers"))
def test_a_program_that_ends_python_is_told_and_python_starts_again(used_playground, name):
    playground = used_playground()
    playground.run_to_end(ENDS[name])
    expect(playground["console"]).to_contain_text("Python failed and was restarted")
    goes_on(playground)


def test_python_survives_a_long_chain_of_exceptions(used_playground):
    playground = used_playground()
    playground.run_to_end(
        "error = None\nfor i in range(20_000):\n"
        "    new = ValueError(i)\n    new.__cause__, error = error, new\nraise error"
    )
    console = playground["console"]
    expect(console).to_contain_text("19,980 earlier exceptions are not shown")
    expect(console).to_contain_text("ValueError: 19999")
    playground.run_to_end("print('the same ' + 'Python')")
    expect(console).to_contain_text("the same Python")
    # It has not ended: a second one would be told.
    expect(console).not_to_contain_text("restarted")


@pytest.mark.thorough
def test_objects_that_make_others_when_they_are_deleted_end_python_at_most(used_playground):
    playground = used_playground()
    # Whether the stack or Python's own limit ends first depends on how deep the stack may be.
    playground.run_to_end(
        "class Deep:\n    def __del__(self):\n        print('.', end='')\n        Deep()\nDeep();"
    )
    expect(playground["console"]).to_contain_text(re.compile("RecursionError|Python failed"))
    goes_on(playground)


@pytest.mark.parametrize("name", some(CALLBACKS, "raises", "reports"))
def test_a_callback_that_fails_is_told_and_harms_nothing(used_playground, name):
    playground = used_playground()
    playground.run_to_end("kept = 1\n" + callback(CALLBACKS[name]))
    console = playground["console"]
    expect(console).to_contain_text("begun")
    expect(console.locator(".out-stderr, .stderr").first).to_be_visible()
    expect(console).not_to_contain_text("Python did not load")
    goes_on(playground)


@pytest.mark.parametrize("isolated", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", some(SPINS, "timer"))
def test_stop_works_while_a_callback_blocks_python(used_playground, name, isolated):
    playground = used_playground(isolated=isolated)
    playground.run_to_end(callback(SPINS[name]))
    expect(playground["status"]).to_contain_text("A callback of a program keeps Python busy")
    playground.stop()
    goes_on(playground)


@pytest.mark.thorough
def test_stop_works_after_a_program_has_changed_the_handler_of_interrupts(used_playground):
    playground = used_playground()
    playground.run_to_end("import signal\nsignal.signal(signal.SIGINT, lambda *of: print('no'))")
    playground.run("print('begun')\nwhile True: pass")
    expect(playground["console"]).to_contain_text("begun")
    playground.stop()
    expect(playground["console"]).to_contain_text("Stopped after")
