"""A copy in another memory for a block that updates a buffer in place: cache_inplace."""

from __future__ import annotations

from mlcweb.arith import Analyzer
from mlcweb.schedule.arguments import ReadBuffer, accessed_buffer
from mlcweb.schedule.errors import BlockKindError, DataflowError
from mlcweb.schedule.nests import with_allocated
from mlcweb.schedule.redirect import Redirection
from mlcweb.schedule.regions import bound_ranges, domains_around, regions_of
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.stage_pipeline import contains
from mlcweb.schedule.stages import copy_of, copy_stage
from mlcweb.schedule.state import BlockPlace, ScheduleState, block_realizes_below, loops_above
from mlcweb.schedule.storage_scopes import check_storage_scope
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, Range, full_region
from mlcweb.tir.stmt import BlockIdentity, ForKind, sequence


@primitive("CacheInplace")
def cache_inplace(
    state: ScheduleState, block: BlockIdentity, read_buffer_index: ReadBuffer, storage_scope: str
) -> tuple[ScheduleState, list[BlockIdentity]]:
    """Let a block update a copy in `storage_scope` of the box of a buffer that it reads and writes.

    One new block copies the box right before the block, another one copies it back right after.
    The copy keeps the buffer's shape.

    Checked: the block reads such a buffer and writes it too, within the box that it reads; the
    storage scope exists; the box lies in the buffer; the block runs in order (the loops around it
    are not parallel, vectorized or bound) and its predicate is always true.

    rewrite:
        for i in range(4):                              for i in range(4):
            (block "A") D[i, :] = f(D[i, :])       -->      (block "D_local") D_local[…] = D[…]
                                                            (block "A") D_local[…] = f(D_local[…])
                                                            (block "D_local") D[…] = D_local[…]
    """
    check_storage_scope(storage_scope)
    place = state.block(block)
    buffer = accessed_buffer(place, read_buffer_index, "read")
    _check_in_order(place)
    box = _box(place, buffer)
    copy = copy_of(buffer, storage_scope, buffer.shape)
    scope = state.scope_of(place)
    origin = [const(0, side.min.dtype) for side in box]
    stages = [
        copy_stage(buffer, copy, box, origin, Analyzer(domains_around(place)), reads=reads)
        for reads in (True, False)
    ]
    changed = Redirection(buffer, copy, None).of(place.realize)
    state = state.replaced(place.function, {place.realize: sequence(stages[0], changed, stages[1])})
    state = with_allocated(state, scope, copy)
    made = [realize for stage in stages for realize in block_realizes_below(stage)]
    return state, [realize.block.identity for realize in made]


def _check_in_order(place: BlockPlace) -> None:
    name = place.block.name_hint
    for loop in loops_above(place):
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise DataflowError(
                f'The iterations of the loop "{loop.loop_var.name}" around block "{name}" run at '
                "once, and all of them would use the same copy",
                [loop, place.realize],
                "cache_inplace first, then parallel, vectorize or bind",
            )


def _box(place: BlockPlace, buffer: Buffer) -> list[Range]:
    """What the block reads of the buffer, where it also writes, in terms of the loops around."""
    name = place.block.name_hint
    reads, writes = regions_of(place.block.reads, buffer), regions_of(place.block.writes, buffer)
    if not writes:
        raise BlockKindError(
            f'The block "{name}" reads "{buffer.name}" but does not write it, so that nothing is '
            "updated in place",
            [place.realize],
            "cache_read",
        )
    box = bound_ranges(place.realize, reads[0])
    analyzer = Analyzer(domains_around(place))
    for write in writes:
        if not contains(box, bound_ranges(place.realize, write), analyzer):
            raise DataflowError(
                f'The block "{name}" writes other elements of "{buffer.name}" than it reads; the '
                "copy would not hold what else is around them",
                [place.realize],
                "T.reads of all that the block writes, or cache_write",
            )
    if not contains(full_region(buffer).region, box, analyzer):
        raise DataflowError(
            f'What the block "{name}" reads of "{buffer.name}" is not known to lie in the buffer, '
            "and the copy reads all of it",
            [place.realize],
            "cache before a split that does not divide the extent",
        )
    return [Range(analyzer.simplify(side.min), analyzer.simplify(side.extent)) for side in box]
