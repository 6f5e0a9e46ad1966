"""Sampling primitives: the random choices that make a schedule a space of programs.

Each takes the choice to make (a `decision`) or draws one, and returns it with what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.scopes import scope_around
from mlcweb.schedule.arguments import Integers
from mlcweb.schedule.errors import FactorError, is_accepted
from mlcweb.schedule.instruction import Location, SpecialLocation
from mlcweb.schedule.primitives.compute_location import LAST, compute_at
from mlcweb.schedule.primitives.inline import compute_inline
from mlcweb.schedule.registry import Sampled, primitive
from mlcweb.schedule.sampling import RandomState, draw_perfect_tile
from mlcweb.schedule.state import BlockPlace, ScheduleState, shared_prefix
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.expr import IntImm, Var
from mlcweb.tir.stmt import Block, BlockIdentity, For, IterType


@primitive("SampleCategorical")
def sample_categorical(
    state: ScheduleState,
    candidates: Integers,
    probs: Sequence[float],
    decision: int | None = None,
    *,
    random: RandomState,
) -> Sampled[int]:
    """One of the candidates, drawn with the given probabilities. The decision is its index."""
    if len(candidates) != len(probs) or not candidates:
        raise FactorError(
            f"There are {len(candidates)} candidates but {len(probs)} probabilities",
            advice="one probability per candidate",
        )
    valid = all(0 <= probability < inf for probability in probs)  # NaN is not
    if not valid or not sum(probs):
        raise FactorError(
            f"{list(probs)} are no probabilities",
            advice="finite numbers that are not negative, with a sum above 0",
        )
    if decision is None:
        decision = random.index(probs)
    if not 0 <= decision < len(candidates):
        raise FactorError(
            f"The decision {decision} is not an index into the {len(candidates)} candidates",
            advice="an index from 0 on, or None to draw one",
        )
    return candidates[int(decision)], int(decision)


@primitive("SamplePerfectTile")
def sample_perfect_tile(
    state: ScheduleState,
    loop: Var,
    n: int,
    max_innermost_factor: int = 16,
    decision: Sequence[int] | None = None,
    *,
    random: RandomState,
) -> Sampled[list[int | None]]:
    """`n` random factors whose product is the extent of a loop, the last at most
    `max_innermost_factor`.

    A decision that no longer divides the extent is mended: from the first factor that does not
    divide what is left, the rest of the extent goes into that factor. An extent that is no constant
    has the tiling None (whatever is needed, -1 in decisions), 1, …, 1.
    """
    statement = state.loop(loop).loop
    if n < 1:
        raise FactorError(f"A tiling needs at least one factor, not {n}", [statement], "n >= 1")
    if not isinstance(statement.extent, IntImm):
        factors = [-1] + [1] * (n - 1)
    elif decision is None:
        factors = draw_perfect_tile(random, statement.extent.value, n, max_innermost_factor)
    else:
        factors = _mended(statement, statement.extent.value, n, decision)
    return [None if factor == -1 else factor for factor in factors], factors


@primitive("SamplePartitionedTile")
def sample_partitioned_tile(
    state: ScheduleState,
    loop: Var,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: Sequence[int] | None = None,
    *,
    random: RandomState,
) -> Sampled[list[int]]:
    """`n` random factors whose product is the extent of a loop; the product of those from
    `partition_pos` on is a multiple of `innerpart_factor`.

    Where the extent is no such multiple, or no constant, the tiling is -1 (whatever is needed), 1,
    …, 1. A decision that no longer fits is mended as in `sample_perfect_tile`; one whose inner part
    is no multiple is dropped for a tiling whose inner part is `innerpart_factor` alone.
    """
    statement = state.loop(loop).loop
    if n < 1 or innerpart_factor < 1 or (innerpart_factor > 1 and not 0 <= partition_pos < n):
        raise FactorError(
            f"There is no tiling into {n} factors of which those from {partition_pos} on have a "
            f"product that is a multiple of {innerpart_factor}",
            [statement],
            "0 <= partition_pos < n, innerpart_factor >= 1",
        )
    if n == 1 and partition_pos > 0:
        raise FactorError("A partitioned tiling needs at least two factors", [statement], "n >= 2")
    if not isinstance(statement.extent, IntImm) or statement.extent.value % innerpart_factor:
        factors = [-1] + [1] * (n - 1)
    elif decision is not None:
        if len(decision) == n and prod(decision[partition_pos:]) % innerpart_factor:
            decision = [statement.extent.value // innerpart_factor] + [1] * (n - 1)
            decision[partition_pos] *= innerpart_factor
        factors = _mended(statement, statement.extent.value, n, decision)
    else:
        factors = draw_perfect_tile(random, statement.extent.value, n)
        while prod(factors[partition_pos:]) % innerpart_factor:
            factors = draw_perfect_tile(random, statement.extent.value, n)
    return factors, factors


@primitive("SampleComputeLocation")
def sample_compute_location(
    state: ScheduleState, block: BlockIdentity, decision: int | None = None, *, random: RandomState
) -> Sampled[Location]:
    """A random loop to compute a block at, for `compute_at`; its decision counts the loops of the
    consumers from the outermost. Decision -1 leaves the block where it is, -2 inlines it.

    A decision that is no longer possible is mended: the next location further outside is taken.
    """
    possible = locations(state, block)
    if decision is None:
        chosen = random.integer(0, len(possible))
    else:
        below = [n for n, (number, _) in enumerate(possible) if number <= decision]
        if not below:
            return SpecialLocation.ROOT, int(SpecialLocation.ROOT)
        chosen = below[-1]
    number, location = possible[chosen]
    return location, number


def _mended(loop: For, extent: int, n: int, decision: Sequence[int]) -> list[int]:
    """The factors of a decision, or, where they no longer divide the extent, others."""
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


def locations(state: ScheduleState, block: BlockIdentity) -> list[tuple[int, Location]]:
    """Where a block may be computed, by decision in rising order: inline where that is possible,
    where it is, and under loops of its consumers, each counted from the outermost loop.

    Left out are loops of one iteration, spatial loops inside of reduction loops and the innermost
    reduction loops, where computing a block does not pay.
    """
    place = state.block(block)
    possible: list[tuple[int, Location]] = [(-1, SpecialLocation.ROOT)]
    if is_accepted(lambda: compute_inline(state, block)):
        possible.insert(0, (-2, SpecialLocation.INLINE))
    consumers = scope_around(state, place).consumers(place)
    candidates = _shared_loops(consumers)
    kinds = [loop_type(loop) for loop in candidates]
    spatial = [n for n, kind in enumerate(kinds) if kind == IterType.DATA_PARALLEL]
    seen_reduction = False
    for number, (loop, kind) in enumerate(zip(candidates, kinds, strict=True)):
        if is_const_int(loop.extent, 1):
            continue
        if kind == IterType.DATA_PARALLEL:
            if seen_reduction:
                break
        else:
            seen_reduction = True
            if number > max(spatial, default=-1):
                break
        var = loop.loop_var
        if is_accepted(lambda var=var: compute_at(state, block, var, True, LAST)):
            possible.append((number, var))
    return possible


def _shared_loops(consumers: Sequence[BlockPlace]) -> tuple[For, ...]:
    """The loops around all consumers, if the innermost statement around them all is a loop."""
    if not consumers:
        return ()
    shared = shared_prefix([consumer.parents for consumer in consumers])
    around = [parent for parent in shared if isinstance(parent, (For, Block))]
    inside = isinstance(around[-1], For)
    return tuple(loop for loop in consumers[0].loops if inside and loop in around)
