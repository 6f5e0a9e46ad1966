"""Where a block may be computed: the candidates that `sample_compute_location` chooses from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.primitives.compute_location import LAST, Location, SpecialLocation, compute_at
from mlcweb.schedule.primitives.inline import compute_inline
from mlcweb.schedule.scopes import driven_iterators, scope_at
from mlcweb.schedule.state import BlockPlace, ScheduleState, block_realizes_below, shared_prefix
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.stmt import Block, BlockIdentity, For, IterType


def locations(state: ScheduleState, block: BlockIdentity) -> list[tuple[int, Location]]:
    """Where a block may be computed, by decision in rising order: inline where that is possible,
    where it is, and under loops of its consumers, each counted from the outermost loop.

    Left out are loops of one iteration, spatial loops inside of reduction loops and the innermost
    reduction loops, where computing a block does not pay.
    """
    place = state.block(block)
    found: list[tuple[int, Location]] = [(-1, SpecialLocation.ROOT)]
    if _is_possible(lambda: compute_inline(state, block)):
        found.insert(0, (-2, SpecialLocation.INLINE))
    consumers = scope_at(state, state.scope_of(place)).consumers(place)
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
        if _is_possible(lambda var=var: compute_at(state, block, var, True, LAST)):
            found.append((number, var))
    return found


def _shared_loops(consumers: Sequence[BlockPlace]) -> tuple[For, ...]:
    """The loops around all consumers, if the innermost statement around them all is a loop."""
    if not consumers:
        return ()
    chains = [
        [parent for parent in consumer.parents if isinstance(parent, (For, Block))]
        for consumer in consumers
    ]
    shared = shared_prefix(chains)
    if not isinstance(shared[-1], For):
        return ()
    return tuple(loop for loop in consumers[0].loops if loop in shared)


def loop_type(loop: For) -> IterType:
    """What a loop means to the blocks below it; a loop that means different things is opaque."""
    kinds = {
        kind
        for realize in block_realizes_below(loop)
        for kind in driven_iterators(realize, loop.loop_var).values()
    }
    if len(kinds) > 1:
        return IterType.OPAQUE
    return kinds.pop() if kinds else IterType.DATA_PARALLEL


def _is_possible(action: Callable[[], object]) -> bool:
    try:
        action()
    except ScheduleError:
        return False
    return True
