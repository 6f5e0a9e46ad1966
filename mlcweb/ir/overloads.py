"""Python's operators for classes whose instances build expressions: `a + b`, `2 * a`, `a < b`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
Method = Callable[[Any, Any], Result]


def overloads(
    build: Callable[[str, Any, Any], Result],
) -> Callable[[str], tuple[Method[Result], Method[Result]]]:
    """What gives the methods of an operator, for operands as they stand and for reflected ones
    (`__add__` and `__radd__`), by the name under which `build(name, a, b)` knows it."""

    def methods(name: str) -> tuple[Method[Result], Method[Result]]:
        return (
            lambda self, other: build(name, self, other),
            lambda self, other: build(name, other, self),
        )

    return methods
