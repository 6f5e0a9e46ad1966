"""Random factorisations: what the sampling primitives draw from."""

from __future__ import annotations

from itertools import pairwise

from mlcweb.schedule.random_state import RandomState


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
    found: list[tuple[int, int]] = []
    prime = 2
    while prime * prime <= number:
        exponent = 0
        while number % prime == 0:
            number //= prime
            exponent += 1
        if exponent:
            found.append((prime, exponent))
        prime += 1
    if number > 1:
        found.append((number, 1))
    return found
