"""What a program shows: hooks that receive the objects passed to `.show()` and `display`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

DisplayHook = Callable[[Any, str], None]
"""Called with the object shown and a title (possibly empty)."""

_hooks: list[DisplayHook] = []


class Listing(str):
    """Program text to be shown as it is."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/x-code": str(self)}


def publish(shown: Any, title: str = "") -> None:
    """Hand `shown` to the innermost hook; without one, print it."""
    if _hooks:
        _hooks[-1](shown, title)
    else:
        script = getattr(shown, "script", None)
        print(script() if callable(script) else shown)


@contextmanager
def display_hook(hook: DisplayHook):
    """While active, `hook` receives whatever is shown."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)
