"""Ranges of addresses that overlap: memory that is copied as one piece, so that aliases stay so."""

from __future__ import annotations

from collections.abc import Iterable


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of ranges (start, length) as disjoint ranges, in order. Empty ones vanish."""
    result: list[tuple[int, int]] = []
    for start, length in sorted(ranges):
        if length <= 0:
            continue
        if result and start < sum(result[-1]):
            first, covered = result[-1]
            result[-1] = first, max(covered, start + length - first)
        else:
            result.append((start, length))
    return result


def piece_of(address: int, pieces: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The piece that an address lies in."""
    return next((start, length) for start, length in pieces if start <= address < start + length)
