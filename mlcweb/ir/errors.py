"""The errors of every layer, under TVM's class names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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


class nesting_limit:
    """Turns the end of Python's stack into a clear error; for a `with`, or over a function.

    `action` says what could not be done, as "printed".
    """

    def __init__(self, action: str) -> None:
        self.action = action

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None and issubclass(kind, TOO_DEEP):
            raise nests_too_deep(self.action) from None

    def __call__(self, function: Function) -> Function:
        @wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TOO_DEEP:
                raise nests_too_deep(self.action) from None

        return limited  # type: ignore[return-value]


def nests_too_deep(action: str) -> NestingError:
    """The error for a program that cannot be printed, built, … since it nests too deep."""
    return NestingError(
        f"The program nests too deep to be {action}: split its longest expression (a sum of "
        "hundreds of terms, say) by storing parts of it to a buffer, or use fewer nested "
        "statements and fewer chained buffers"
    )
