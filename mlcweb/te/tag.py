"""Tags of operations, set for all that is computed inside of a `with te.tag_scope("name"):`."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar

from mlcweb.te.errors import ExpressionError

_current: ContextVar[str] = ContextVar("tag", default="")


class TagScope(ContextDecorator):
    """What `tag_scope` gives: for a `with`, or as a decorator of a function."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __enter__(self) -> TagScope:
        if _current.get():
            raise ExpressionError(
                f'A tag_scope is inside of that of "{_current.get()}"; use one of them'
            )
        _current.set(self.tag)
        return self

    def __exit__(self, *exception: object) -> None:
        _current.set("")


def tag_scope(tag: str) -> TagScope:
    """Gives a tag to the operations that have none of their own."""
    return TagScope(tag)


def current_tag() -> str:
    return _current.get()
