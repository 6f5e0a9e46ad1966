"""Exceptions that hang together in great numbers, as causes, contexts or groups.

What `traceback` makes of them is as deep as they are, and groups that are in a group twice are
written twice, so that a few dozen of them take for ever.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator

MAX_EXCEPTIONS = 100
"""Whole tracebacks have so many at most."""

LAST = 20
"""Exceptions shown of more."""

MAX_LINKS = 1000
"""Where more exceptions hang together, Python may find no room to free them one within another: in
the browser it has ended then."""


def is_small(error: BaseException) -> bool:
    """Whether there are few enough exceptions for a whole traceback."""
    pending, count, seen = [error], 0, {id(error)}
    while pending and count <= MAX_EXCEPTIONS:
        each = pending.pop()
        count += 1
        for link in _links(each):
            if id(link) not in seen:
                seen.add(id(link))
                pending.append(link)
        if isinstance(each, BaseExceptionGroup):
            pending += each.exceptions[:MAX_EXCEPTIONS]
    return not pending and count <= MAX_EXCEPTIONS


def last_of(error: BaseException, own_files: Collection[str]) -> str:
    """The last exceptions of a chain, without those of groups, with the frames of these files; and
    how many came before."""
    chain = list(_chain(error))
    shown = [_described(each, own_files) for each in reversed(chain[:LAST])]
    before = len(chain) - len(shown)
    if before:
        shown.insert(0, f"({before:,} earlier exceptions are not shown)")
    return "\n\nled to\n\n".join(shown)


def unlink(error: BaseException) -> None:
    """Where very many exceptions hang together, take them apart."""
    linked = {id(error): error}
    pending = [error]
    while pending:
        for each in _links(pending.pop()):
            if id(each) not in linked:
                linked[id(each)] = each
                pending.append(each)
    if len(linked) > MAX_LINKS:
        for each in linked.values():
            each.__cause__ = each.__context__ = None


def _described(error: BaseException, own_files: Collection[str]) -> str:
    stack = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in stack if frame.filename in own_files]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)] if own else []
    return f"{''.join(lines)}{type(error).__name__}: {error}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, the one that led to it, and so on, as tracebacks have them."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        yield each
        seen.add(id(each))
        context = None if each.__suppress_context__ else each.__context__
        each = context if each.__cause__ is None else each.__cause__


def _links(error: BaseException) -> list[BaseException]:
    return [each for each in (error.__cause__, error.__context__) if each is not None]
