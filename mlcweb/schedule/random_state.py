"""The random numbers of a schedule, equal to TVM's draw for draw.

The engine is the minimal standard generator of Park and Miller with the multiplier 48271 ("Another
test for randomness", CACM 36(7), 1993).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

MODULUS = 2**31 - 1
_MULTIPLIER = 48271
_FORK_MULTIPLIER, _FORK_MODULUS = 32767, 1999999973


class RandomState:
    """A stream of random numbers; `seed` -1 or None seeds it from the system."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed(seed)

    def seed(self, seed: int | None) -> None:
        if seed is None or seed == -1:
            seed = secrets.randbelow(MODULUS)
        self.state = seed % MODULUS or MODULUS - 1

    def next(self) -> int:
        """A number in [1, 2**31 - 2]."""
        self.state = self.state * _MULTIPLIER % MODULUS
        return self.state

    def fork(self) -> int:
        """The seed of an independent stream."""
        return self.next() * _FORK_MULTIPLIER % _FORK_MODULUS

    def integer(self, low: int, high: int) -> int:
        """A number in [low, high); nothing is drawn where there is no choice."""
        count = high - low
        if count <= 1:
            return low
        scale = (MODULUS - 1) // count
        while True:
            drawn = self.next() - 1
            if drawn < scale * count:
                return low + drawn // scale

    def index(self, weights: Sequence[float]) -> int:
        """An index into `weights`, each with the probability of its weight."""
        total = sum(weights)
        first, second = self.next() - 1, self.next() - 1
        point = (first + second * MODULUS) / MODULUS**2
        cumulative = 0.0
        for position, weight in enumerate(weights):
            cumulative += weight / total
            if cumulative >= point:
                return position
        return len(weights) - 1
