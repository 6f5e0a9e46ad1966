"""Handlers of a signal that is ignored where nobody handles it."""

import os
import sys
from signal import SIG_DFL, SIG_IGN, getsignal, signal

import pytest

if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

from signal import SIGWINCH

from mlcweb.runtime.host.signal_handler import SignalHandler


@pytest.fixture
def received():
    signals: list[int] = []
    before = getsignal(SIGWINCH)
    signal(SIGWINCH, SIG_DFL)
    yield signals
    signal(SIGWINCH, before)


def library_handler(handler):
    """What a library installs when it is opened."""
    own = SignalHandler(SIGWINCH)
    with own.installed_within():
        signal(SIGWINCH, handler)
    return own


def raise_it():
    os.kill(os.getpid(), SIGWINCH)


def test_a_handler_is_in_place_only_between_enter_and_leave(received):
    own = library_handler(lambda number, frame: received.append(number))
    raise_it()
    assert received == []
    own.enter()
    raise_it()
    assert received == [SIGWINCH]
    own.leave()
    raise_it()
    assert received == [SIGWINCH]


def test_a_handler_that_came_in_the_meantime_stays(received):
    """As that of an engine, which is started while a device still computes."""
    own = library_handler(SIG_IGN)
    own.enter()
    signal(SIGWINCH, lambda number, frame: received.append(number))
    own.leave()
    raise_it()
    assert received == [SIGWINCH]
