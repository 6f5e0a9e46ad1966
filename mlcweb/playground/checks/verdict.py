"""What a checker comes to; apart from the checkers, since those need NumPy and this does not."""

from __future__ import annotations

from typing import NamedTuple


class Wrong(Exception):
    """The exercise is not solved yet; the message is for its reader."""


class Verdict(NamedTuple):
    """Whether an exercise is solved, and what to tell its reader."""

    passed: bool
    message: str
