"""How well a model ranks: numbers that compare predicted scores with measured times."""

from __future__ import annotations

from collections.abc import Sequence

TIE = 0.02
"""Two times that differ by less than this share are the same."""


def pairwise_accuracy(scores: Sequence[float], seconds: Sequence[float]) -> float:
    """The share of pairs of different times in which the faster has the higher score; equal scores
    count a half. 0.5 is chance; NaN where all times are the same."""
    right = pairs = 0.0
    for i, (score, time) in enumerate(zip(scores, seconds, strict=True)):
        for other_score, other in zip(scores[:i], seconds[:i], strict=True):
            if abs(time - other) <= TIE * max(time, other):
                continue
            pairs += 1
            if score == other_score:
                right += 0.5
            else:
                right += (score > other_score) == (time < other)
    return right / pairs if pairs else float("nan")


def max_curve(scores: Sequence[float], seconds: Sequence[float]) -> list[float]:
    """The best speed among the first k by score, for each k, as a share of the best of all."""
    best = min(seconds)
    curve: list[float] = []
    for _, time in sorted(zip(scores, seconds, strict=True), key=lambda pair: -pair[0]):
        curve.append(max(best / time, curve[-1] if curve else 0.0))
    return curve
