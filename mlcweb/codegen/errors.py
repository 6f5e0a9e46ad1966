"""The errors of running programs, whatever target runs them."""

from __future__ import annotations

import builtins
from functools import cache
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.span import Span


class IndexOutOfBounds(TVMError, IndexError):
    """A program touched an element that its buffer does not have."""


class AssertionFailed(TVMError, AssertionError):
    """An assertion of a program does not hold."""


def assertion_failed(kind: str, message: Any, span: Span | None = None) -> AssertionFailed:
    """The error of an assertion, which is also one of Python's class `kind` ("ValueError")."""
    return _class_of_assertion(kind)(f"Assertion failed: {message}", span)


@cache
def _class_of_assertion(kind: str) -> type[AssertionFailed]:
    if kind not in ("ValueError", "TypeError", "IndexError", "KeyError", "NotImplementedError"):
        return AssertionFailed
    return type(f"Assertion{kind}", (AssertionFailed, getattr(builtins, kind)), {})
