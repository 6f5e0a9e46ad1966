"""The errors of every layer, under TVM's class names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

from mlcweb.ir.span import Span

Function = TypeVar("Function", bound=Callable[..., Any])


class TVMError(RuntimeError):
    """Base of the errors that this package raises on purpose.

    `message` is the text without the source excerpt; `span` is the source range at fault, if known.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.message = message
        self.span = span
        super().__init__(f"{message}\n{span.render()}" if span else message)


class InternalError(TVMError):
    """A check that failed, as TVM names it: a broken invariant of this package itself, or, in its
    subclasses, a program that is refused."""


class DiagnosticError(InternalError):
    """A program that cannot be what it claims to be: bad script, bad types, bad structure. TVM has
    an InternalError for most of these."""

    def located(self, span: Span | None) -> DiagnosticError:
        """This error, or, where it has no span, one of its class that has this one."""
        if self.span is not None or span is None:
            return self
        return type(self)(self.message, span)


class NestingError(TVMError):
    """A program nests deeper than it can be walked."""


TOO_DEEP = (RecursionError, NestingError)
"""What a recursive walk ends with where a program nests too deep for Python's stack. Walks that are
entered most often catch these themselves: `try` costs nothing, `nesting_limit` a call. Each raises
anew, so that the error names what was asked for, and its traceback is short."""


class _Stack:
    """Python's limit of calls inside of each other, raised while walks run in any thread.

    The scope of a binding or an allocation is the rest of its block, so a block with hundreds of
    these, which is flat to read, is a tree as deep. Python's functions call each other without the
    machine's stack, but not all of the calls of a walk are such: a browser's is too small for more.
    """

    CALLS = 1000 if sys.platform == "emscripten" else 4000

    def __init__(self) -> None:
        self.lock = Lock()
        self.walks = 0
        self.usual = 0

    def enter(self) -> None:
        with self.lock:
            if not self.walks:
                self.usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self.usual, self.CALLS))
            self.walks += 1

    def leave(self) -> None:
        with self.lock:
            self.walks -= 1
            if not self.walks:
                sys.setrecursionlimit(self.usual)


_stack = _Stack()


class nesting_limit:
    """Makes room on Python's stack, and turns its end into a clear error; for a `with`, or over a
    function.

    `action` says what could not be done, as "printed".
    """

    def __init__(self, action: str) -> None:
        self.action = action

    def __enter__(self) -> None:
        _stack.enter()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        _stack.leave()
        if kind is not None and issubclass(kind, TOO_DEEP):
            raise nests_too_deep(self.action) from None

    def __call__(self, function: Function) -> Function:
        @wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return limited  # type: ignore[return-value]


def nests_too_deep(action: str) -> NestingError:
    """The error for a program that cannot be printed, built, … since it nests too deep."""
    return NestingError(
        f"The program nests too deep to be {action}: split its longest expression (a sum of "
        "hundreds of terms, say) by storing parts of it to a buffer, or use fewer nested "
        "statements and fewer chained buffers"
    )
