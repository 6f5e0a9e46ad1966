"""The handlers of a signal that libraries install in this process, one in place of another."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from signal import Signals

_BYTES = 256
"""More than a `struct sigaction` has on any system; what is in it is only copied."""


class SignalHandler:
    """What a library does with a signal, put in place only while it is needed: the library of a
    device may take a signal that another one, such as an engine, counts on."""

    def __init__(self, signal: Signals) -> None:
        self._signal = signal
        self._own: ctypes.Array[ctypes.c_char] | None = None
        self._others: ctypes.Array[ctypes.c_char] | None = None

    @contextmanager
    def installed_within(self) -> Iterator[None]:
        """Take the handler that is installed within, if any, and put back the one from before."""
        before = self._exchange(None)
        try:
            yield
        finally:
            after = self._exchange(before)
            if before is not None and after is not None and _function(after) != _function(before):
                self._own = after

    def enter(self) -> None:
        """Put the handler in place."""
        if self._own is not None and self._others is None:
            self._others = self._exchange(self._own)

    def leave(self) -> None:
        """Put back the handler that was there before. One that came in the meantime stays."""
        if self._own is None or self._others is None:
            return
        there = self._exchange(self._others)
        if there is not None and _function(there) != _function(self._own):
            self._exchange(there)
        self._others = None

    def _exchange(
        self, handler: ctypes.Array[ctypes.c_char] | None
    ) -> ctypes.Array[ctypes.c_char] | None:
        """Install a handler, or none, and return the one that was there."""
        if sys.platform == "win32":
            return None
        there = ctypes.create_string_buffer(_BYTES)
        ctypes.CDLL(None).sigaction(int(self._signal), handler, there)
        return there


def _function(handler: ctypes.Array[ctypes.c_char]) -> bytes:
    """The address of a handler, with which a `struct sigaction` begins. Of the rest, the signals
    that are masked have more bits than any system fills."""
    return handler.raw[: ctypes.sizeof(ctypes.c_void_p)]
