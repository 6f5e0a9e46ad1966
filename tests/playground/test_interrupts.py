"""Where an interrupt strikes: in what the page has called, not in the event loop."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest

from mlcweb.playground import bridge


@pytest.fixture(autouse=True)
def handled() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    bridge.interrupts.install()
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def run(function: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch) -> dict:
    """The answer to a call of a function that the page may call."""
    monkeypatch.setitem(bridge.FUNCTIONS, "wait", function)
    return json.loads(asyncio.run(bridge.call("wait", "[]")))


def test_between_two_steps_it_ends_the_call(monkeypatch):
    async def wait() -> str:
        # `raise_signal` is called by the loop itself: no frame of a task is on the stack.
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        await asyncio.get_running_loop().create_future()
        return "went on"

    assert run(wait, monkeypatch) == {"error": "stopped"}


@pytest.mark.parametrize("callback", [interrupt, lambda: interrupt()])
def test_in_a_function_of_the_call_it_is_raised(monkeypatch, callback):
    async def wait() -> str:
        callback()
        return "went on"

    assert run(wait, monkeypatch) == {"error": "stopped"}


def test_in_what_a_task_calls_of_the_loop_it_is_raised(monkeypatch):
    async def wait() -> str:
        loop = asyncio.get_running_loop()
        asyncio.Handle(signal.raise_signal, (signal.SIGINT,), loop)._run()
        return "went on"

    assert run(wait, monkeypatch) == {"error": "stopped"}


def test_a_task_beside_the_call_ends_with_it(monkeypatch):
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)
            interrupt()

    async def wait() -> str:
        await asyncio.gather(spin(), asyncio.get_running_loop().create_future())
        return "went on"

    assert run(wait, monkeypatch) == {"error": "stopped"}


def test_without_a_call_it_ends_nothing():
    async def idle() -> str:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "went on"

    assert asyncio.run(idle()) == "went on"


WAIT = """
import asyncio
import signal
asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
try:
    await asyncio.get_running_loop().create_future()
finally:
    print("cleared up")
"""


def test_a_cell_that_waits_is_stopped(capsys):
    answer = json.loads(asyncio.run(bridge.call("cell.execute", json.dumps([WAIT, "cell.py"]))))
    assert answer["value"]["error"]["kind"] == "KeyboardInterrupt"
    assert "create_future()" in answer["value"]["error"]["text"]
    assert capsys.readouterr().out == "cleared up\n"


def test_a_cell_that_cancels_itself_is_no_interrupt():
    source = "import asyncio\nraise asyncio.CancelledError('mine')"
    answer = json.loads(asyncio.run(bridge.call("cell.execute", json.dumps([source, "cell.py"]))))
    assert answer["value"]["error"]["kind"] == "CancelledError"
