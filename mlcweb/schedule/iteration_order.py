"""Whether the iterations of loops may run in another order, or at the same time.

Blocks say so by the types of their iterators. Statements outside of blocks say nothing: what they
access tells.
"""

from __future__ import annotations

from mlcweb.schedule.dependences import check_carries_nothing
from mlcweb.schedule.errors import BindingError, DataflowError
from mlcweb.schedule.scopes import (
    check_affine,
    scope_below,
    why_not_complete,
    why_not_reduction,
)
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState
from mlcweb.schedule.undeclared_accesses import hidden_accesses
from mlcweb.schedule.units import bound_reads
from mlcweb.tir.stmt import BlockRealize


def check_compact_dataflow(state: ScheduleState, loop: LoopPlace) -> None:
    """Raise DataflowError unless the blocks below a loop form a compact dataflow: each has an
    affine binding and is complete or a reduction block among the blocks below the loop."""
    below = scope_below(state, loop)
    for place in below.children:
        name = place.block.name_hint
        check_declares_all(place)
        complete = why_not_complete(below, place.block)
        reduction = why_not_reduction(below, place.block)
        if complete and reduction:
            raise DataflowError(
                f'The blocks below loop "{loop.loop.loop_var.name}" do not have compact dataflow: '
                f'the block "{name}" is neither complete ({complete}) nor a reduction block '
                f"({reduction})",
                [loop.loop, place.realize],
                "annotate loops (parallel, vectorize) before decompose_reduction",
            )
        check_affine(state, place)
    check_carries_nothing(state, below, loop.loop)


def check_declares_all(place: BlockPlace) -> None:
    """Raise DataflowError where a block stands for others whose accesses it does not declare."""
    stored, _ = hidden_accesses(place.block)
    if stored:
        raise DataflowError(
            f'The block "{place.block.name_hint}" does not declare what it writes (for one, '
            f'"{stored[0].name}"), so that it is not known whether its iterations depend on each '
            "other",
            [place.realize],
            "this step before loop_partition, or on the loops inside of the block",
        )


def check_own_predicate(realize: BlockRealize) -> None:
    """Which iterations run may not depend on what earlier ones have written."""
    written = {region.buffer for region in realize.block.writes}
    for buffer in bound_reads(realize):
        if buffer in written:
            raise BindingError(
                f'The predicate or a binding of block "{realize.block.name_hint}" reads '
                f'"{buffer.name}", which the block writes, so its loops keep their order',
                [realize],
                "a predicate of what the block does not write",
            )
