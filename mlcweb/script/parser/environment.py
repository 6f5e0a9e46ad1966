"""Which names a script sees, and what they mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import FrameType, FunctionType
from typing import Any


class Scopes:
    """Names bound by the script, innermost first, over the Python names around it."""

    def __init__(self, outside: Mapping[str, Any]) -> None:
        self._outside = outside
        self._scopes: list[dict[str, Any]] = []
        self._ended: dict[str, str] = {}
        self._origin: dict[str, str] = {}

    def push(self) -> None:
        self._scopes.append({})

    def pop(self) -> None:
        for name in self._scopes.pop():
            self._ended[name] = self._origin.get(name, "")

    def bind(self, name: str, value: Any, origin: str = "") -> None:
        """Bind a name in the innermost scope. `origin` says for messages what it is."""
        self._scopes[-1][name] = value
        self._origin[name] = origin

    def bind_in_function(self, name: str, value: Any, origin: str = "") -> None:
        """Bind a name in the outermost scope of the script."""
        self._scopes[0][name] = value
        self._origin[name] = origin

    def find(self, name: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._outside.get(name, default)

    def find_here(self, name: str) -> Any:
        """The value of a name that the innermost scope binds; None where it does not."""
        return self._scopes[-1].get(name)

    def is_script_name(self, name: str) -> bool:
        """Whether the script itself binds the name at this point."""
        return any(name in scope for scope in self._scopes)

    def is_from_outside(self, name: str) -> bool:
        """Whether the script binds the name, and not in the innermost scope."""
        return self.is_script_name(name) and name not in self._scopes[-1]

    def origin(self, name: str) -> str:
        """What `bind` said that a name is."""
        return self._origin.get(name, "")

    def complaint(self, name: str, more: Iterable[str] = ()) -> str:
        """Why a name is not known, and what may have been meant: one of the names here, or of
        `more`."""
        if name in self._ended:
            origin = self._ended[name] or "a name"
            return f'"{name}" is {origin} and means nothing outside of it'
        names = {key for scope in self._scopes for key in scope} | {*self._outside, *more}
        return f'"{name}" is not defined{suggestion(name, names)}'


def suggestion(name: str, known: Iterable[str]) -> str:
    """A half sentence with the known names that look like `name`, or nothing."""
    close = difflib.get_close_matches(name, [key for key in known if isinstance(key, str)], n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def names_around(frame: FrameType | None, functions: Iterable[FunctionType]) -> dict[str, Any]:
    """What Python code at `frame` and inside `functions` sees: globals, then the locals of the
    enclosing frames, then closures."""
    layers: list[Mapping[str, Any]] = []
    while frame is not None:
        layers.append(frame.f_locals)
        # A class body sees the function around it; a function's own frame is as far as we look.
        if "__qualname__" not in frame.f_locals or frame.f_back is None:
            break
        frame = frame.f_back
    if frame is not None:
        layers.append(frame.f_globals)
    names: dict[str, Any] = {}
    for layer in reversed(layers):
        names.update(layer)
    for function in functions:
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # a variable of the enclosing function that is not assigned yet
                continue
    return names
