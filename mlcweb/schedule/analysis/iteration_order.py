"""Whether the iterations of loops may run in another order, or at the same time.

Blocks say so by the types of their iterators. Statements outside of blocks say nothing: what they
access tells. `old_order` and `new_order` are the loops of one chain, from the outermost to the
innermost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from mlcweb.arith.iter_map import SURJECTIVE, detect_iter_map
from mlcweb.schedule.analysis.dependences import check_carries_nothing
from mlcweb.schedule.analysis.scopes import (
    check_affine,
    driven_iterators,
    is_affine,
    iterators_by_variable,
    loop_ranges,
    runs_one_to_one,
    scope_below,
    why_not_complete,
    why_not_reduction,
)
from mlcweb.schedule.analysis.units import bound_reads, hidden_accesses
from mlcweb.schedule.errors import BindingError, DataflowError, LoopError
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, block_realizes_below
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import BlockRealize, For, IterType
from mlcweb.tir.substitute import variables_in


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
        check_affine(state, place, even_without_predicate=True)
    check_carries_nothing(state, below, loop.loop)


def check_declares_all(place: BlockPlace) -> None:
    """Raise DataflowError where a block stands for others whose accesses it does not declare."""
    stored, _ = hidden_accesses(place.block)
    if stored:
        raise DataflowError(
            f'The {place.title} does not declare what it writes (for one, "{stored[0].name}"), so '
            "that it is not known whether its iterations depend on each other",
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


def check_driven_affine(state: ScheduleState, place: BlockPlace, loops: Sequence[Var]) -> None:
    """Raise BindingError unless the iterators of a block that some loops drive are bound one to
    one. How others are bound does not matter: they are the same in any order of the loops."""
    if is_affine(state, place):
        return
    driven = [value for value in place.realize.iter_values if variables_in(value) & set(loops)]
    ranges = loop_ranges(place.loops)
    found = detect_iter_map(driven, ranges, place.realize.predicate, SURJECTIVE)
    if place.block.init is not None or found.indices is None:
        check_affine(state, place, even_without_predicate=True)


def check_init_stays_first(
    realize: BlockRealize, old_order: Sequence[Var], new_order: Sequence[For]
) -> None:
    """The init of a reduction runs where all its reduction iterators start, which must stay before
    all updates of the same element.

    A loop that drives both spatial and reduction iterators (a fused one) keeps its place among the
    loops that drive the same iterators; a loop that drives none, and so repeats the reduction,
    keeps its place among the reduction loops.
    """
    if realize.block.init is None:
        return
    driven = iterators_by_variable(realize)
    drives = {loop: driven.get(loop, {}) for loop in old_order}
    after = {loop.loop_var: place for place, loop in enumerate(new_order)}
    repeats_parts = not runs_one_to_one(realize, new_order)
    repeating = {
        loop.loop_var
        for loop in new_order
        if (repeats_parts or not drives[loop.loop_var]) and not is_const_int(loop.extent, 1)
    }
    for outer, inner in combinations(old_order, 2):
        if after[outer] < after[inner]:
            continue
        pair = (outer, inner)
        mixed = any(len(set(drives[loop].values())) > 1 for loop in pair)
        shared = drives[outer].keys() & drives[inner].keys()
        repeats = bool(repeating & set(pair))
        reduces = any(IterType.COMM_REDUCE in drives[loop].values() for loop in pair)
        if (mixed and shared) or (repeats and reduces):
            raise LoopError(
                f'If the loops "{outer.name}" and "{inner.name}" change places, the init of block '
                f'"{realize.block.name_hint}" runs after some of its updates',
                [loop for loop in new_order if loop.loop_var in pair],
                "decompose_reduction first, or fuse spatial and reduction loops separately",
            )


def check_iterators_reorderable(realize: BlockRealize) -> None:
    for iter_var in realize.block.iter_vars:
        if iter_var.iter_type not in (IterType.DATA_PARALLEL, IterType.COMM_REDUCE):
            raise BindingError(
                f'The iterator "{iter_var.var.name}" of block "{realize.block.name_hint}" is '
                "neither spatial nor a reduction, so its loops keep their order",
                [realize],
                "iterators of T.axis.spatial or T.axis.reduce",
            )
