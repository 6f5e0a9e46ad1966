"""How well a model ranks: numbers that compare predicted scores with measured times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

TIE = 0.02
"""Two times that differ by less than this share are the same."""

CLEAR = 0.1
"""Two times that differ by more than this share differ by more than noise."""


class Ranking(NamedTuple):
    """The pairwise accuracy of predictions: the share of pairs of programs in which the faster had
    the higher score. 0.5 is chance; NaN where there is no such pair.

    Attributes:
        clear: of the pairs whose times differ by more than noise.
        all: of all pairs whose times differ.
        clear_pairs: how many the first are.
        pairs: how many the second are.
    """

    clear: float
    all: float
    clear_pairs: int
    pairs: int

    def as_dict(self) -> dict[str, float | int | None]:
        """The fields by name, for JSON: None instead of NaN."""
        return {name: None if value != value else value for name, value in self._asdict().items()}


def together(rankings: Iterable[Ranking]) -> Ranking:
    """Several rankings as one, each pair counted once: scores of different models, or of one model
    at different times, are not compared with each other."""
    found = list(rankings)
    clear_pairs = sum(each.clear_pairs for each in found)
    pairs = sum(each.pairs for each in found)
    clear = sum(each.clear * each.clear_pairs for each in found if each.clear_pairs)
    every = sum(each.all * each.pairs for each in found if each.pairs)
    return Ranking(_share(clear, clear_pairs), _share(every, pairs), clear_pairs, pairs)


def rank(scores: Sequence[float], seconds: Sequence[float]) -> Ranking:
    """How well scores, the higher the faster, tell which of two programs takes longer."""
    clear, clear_pairs = _right(scores, seconds, CLEAR)
    every, pairs = _right(scores, seconds, TIE)
    return Ranking(_share(clear, clear_pairs), _share(every, pairs), clear_pairs, pairs)


def pairwise_accuracy(
    scores: Sequence[float], seconds: Sequence[float], noise: float = TIE
) -> float:
    """The share of pairs of different times in which the faster has the higher score; equal scores
    count a half. 0.5 is chance; NaN where all times are the same.

    Args:
        noise: two times that differ by less than this share are the same.
    """
    return _share(*_right(scores, seconds, noise))


def _share(right: float, pairs: int) -> float:
    return right / pairs if pairs else float("nan")


def _right(scores: Sequence[float], seconds: Sequence[float], noise: float) -> tuple[float, int]:
    """How many pairs are ranked right, and how many there are."""
    right, pairs = 0.0, 0
    for i, (score, time) in enumerate(zip(scores, seconds, strict=True)):
        for other_score, other in zip(scores[:i], seconds[:i], strict=True):
            if abs(time - other) <= noise * max(time, other):
                continue
            pairs += 1
            if score == other_score:
                right += 0.5
            else:
                right += (score > other_score) == (time < other)
    return right, pairs


def max_curve(scores: Sequence[float], seconds: Sequence[float]) -> list[float]:
    """The best speed among the first k by score, for each k, as a share of the best of all."""
    best = min(seconds)
    curve: list[float] = []
    for _, time in sorted(zip(scores, seconds, strict=True), key=lambda pair: -pair[0]):
        curve.append(max(best / time, curve[-1] if curve else 0.0))
    return curve
