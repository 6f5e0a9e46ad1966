"""What a checker raises; apart from the checkers, since those need NumPy and this does not."""

from __future__ import annotations

from mlcweb.ir import Span


class Wrong(Exception):
    """The exercise is not solved yet; the message is for its reader. `span` is the part of the
    reader's program that it is about, if it is about one."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.span = span
        super().__init__(message)
