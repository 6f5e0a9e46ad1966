"""Sampling primitives: the random choices that make a schedule a space of programs.

Each takes the choice to make (a `decision`) or draws one, and returns the decision made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, prod

from mlcweb.schedule.errors import FactorError
from mlcweb.schedule.random_state import RandomState
from mlcweb.schedule.state import LoopPlace
from mlcweb.tir.expr import IntImm


def perfect_tile(
    random: RandomState,
    place: LoopPlace,
    n: int,
    max_innermost_factor: int,
    decision: Sequence[int] | None,
) -> list[int]:
    """`n` factors whose product is the extent of a loop, the last at most `max_innermost_factor`.

    A decision that no longer divides the extent is mended: from the first factor that does not
    divide what is left, the rest of the extent goes into that factor. An extent that is no constant
    has the tiling -1 (whatever is needed), 1, …, 1.
    """
    loop = place.loop
    if n < 1:
        raise FactorError(f"A tiling needs at least one factor, not {n}", [loop], "n >= 1")
    if not isinstance(loop.extent, IntImm):
        return [-1] + [1] * (n - 1)
    extent = loop.extent.value
    if decision is None:
        return draw_perfect_tile(random, extent, n, max_innermost_factor)
    factors = [int(factor) for factor in decision]
    if len(factors) != n or any(factor < 1 for factor in factors):
        raise FactorError(
            f'The decision {factors} for loop "{loop.loop_var.name}" is not a list of {n} positive '
            "integers",
            [loop],
            "one positive factor per loop, with the extent as their product",
        )
    rest = extent
    for position in range(n - 1, 0, -1):
        if rest % factors[position]:
            factors[position] = rest
        rest //= factors[position]
    factors[0] = rest
    return factors


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


def partitioned_tile(
    random: RandomState,
    place: LoopPlace,
    n: int,
    partition_pos: int,
    innerpart_factor: int,
    decision: Sequence[int] | None,
) -> list[int]:
    """`n` factors whose product is the extent of a loop; the product of those from `partition_pos`
    on is a multiple of `innerpart_factor`.

    Where the extent is no such multiple, or no constant, the tiling is -1 (whatever is needed), 1,
    …, 1. A decision that no longer fits is mended as in `perfect_tile`; one whose inner part is no
    multiple is dropped for a tiling whose inner part is `innerpart_factor` alone.
    """
    loop = place.loop
    if n < 1 or innerpart_factor < 1 or (innerpart_factor > 1 and not 0 <= partition_pos < n):
        raise FactorError(
            f"There is no tiling into {n} factors of which those from {partition_pos} on have a "
            f"product that is a multiple of {innerpart_factor}",
            [loop],
            "0 <= partition_pos < n, innerpart_factor >= 1",
        )
    if n == 1 and partition_pos > 0:
        raise FactorError("A partitioned tiling needs at least two factors", [loop], "n >= 2")
    if not isinstance(loop.extent, IntImm) or loop.extent.value % innerpart_factor:
        return [-1] + [1] * (n - 1)
    if decision is not None:
        if prod(int(factor) for factor in decision[partition_pos:]) % innerpart_factor:
            decision = [loop.extent.value // innerpart_factor] + [1] * (n - 1)
            decision[partition_pos] *= innerpart_factor
        return perfect_tile(random, place, n, -1, decision)
    while True:
        factors = draw_perfect_tile(random, loop.extent.value, n)
        if prod(factors[partition_pos:]) % innerpart_factor == 0:
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


def categorical(
    random: RandomState,
    candidates: Sequence[int],
    probabilities: Sequence[float],
    decision: int | None,
) -> int:
    """The index of one of the candidates, drawn with their probabilities."""
    if len(candidates) != len(probabilities) or not candidates:
        raise FactorError(
            f"There are {len(candidates)} candidates but {len(probabilities)} probabilities",
            advice="one probability per candidate",
        )
    valid = all(0 <= probability < inf for probability in probabilities)  # NaN is not
    if not valid or not sum(probabilities):
        raise FactorError(
            f"{list(probabilities)} are no probabilities",
            advice="finite numbers that are not negative, with a sum above 0",
        )
    if decision is None:
        return random.index(probabilities)
    if not 0 <= decision < len(candidates):
        raise FactorError(
            f"The decision {decision} is not an index into the {len(candidates)} candidates",
            advice="an index from 0 on, or None to draw one",
        )
    return int(decision)
