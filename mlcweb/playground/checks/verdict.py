"""What a checker raises; apart from the checkers, since those need NumPy and this does not."""

from __future__ import annotations


class Wrong(Exception):
    """The exercise is not solved yet; the message is for its reader."""
