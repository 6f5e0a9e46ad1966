"""The random numbers of a schedule, equal to TVM's draw for draw, and random factorisations.

The engine is the minimal standard generator of Park and Miller with the multiplier 48271 ("Another
test for randomness", CACM 36(7), 1993).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import pairwise

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


def draw_perfect_tile(
    random: RandomState, extent: int, n: int, max_innermost_factor: int = -1
) -> list[int]:
    """A random factorisation of `extent`: each prime power is dealt out among the factors by
    stars and bars; drawn again until the innermost factor is within the limit (-1: none)."""
    if n == 1:
        return [extent]
    limit = max_innermost_factor if max_innermost_factor >= 1 else extent
    powers = prime_powers(extent)
    while True:
        factors = [1] * n
        for prime, exponent in powers:
            if n == 2:
                first = random.integer(0, exponent + 1)
                shares = [first, exponent - first]
            elif exponent == 1:
                lucky = random.integer(0, n)
                shares = [int(position == lucky) for position in range(n)]
            else:
                shares = _stars_and_bars(random, exponent, n)
            factors = [f * prime**share for f, share in zip(factors, shares, strict=True)]
        if factors[-1] <= limit:
            return factors


def _stars_and_bars(random: RandomState, stars: int, n: int) -> list[int]:
    bars = sorted(_without_replacement(random, stars + n - 1, n - 1))
    edges = [-1, *bars, stars + n - 1]
    return [right - left - 1 for left, right in pairwise(edges)]


def _without_replacement(random: RandomState, count: int, k: int) -> list[int]:
    """`k` different numbers in [0, count)."""
    if k == 2:
        first, second = random.integer(0, count), random.integer(0, count - 1)
        return [first, second + (second >= first)]
    numbers = list(range(count))
    for step in range(k):
        chosen = random.integer(step, count)
        numbers[step], numbers[chosen] = numbers[chosen], numbers[step]
    return numbers[:k]


def prime_powers(number: int) -> list[tuple[int, int]]:
    """(prime, exponent) pairs of a positive integer, in rising order of the primes."""
    powers: list[tuple[int, int]] = []
    prime = 2
    while prime * prime <= number:
        exponent = 0
        while number % prime == 0:
            number //= prime
            exponent += 1
        if exponent:
            powers.append((prime, exponent))
        prime += 1
    if number > 1:
        powers.append((number, 1))
    return powers
