"""What must hold of the blocks in loops that are reordered.

`old_order` and `new_order` are the loops of one chain, from the outermost to the innermost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from mlcweb.arith import SURJECTIVE, detect_iter_map
from mlcweb.schedule.errors import BindingError, LoopError
from mlcweb.schedule.scopes import (
    check_affine,
    is_affine,
    iterators_by_variable,
    loop_ranges,
    runs_one_to_one,
)
from mlcweb.schedule.state import BlockPlace, ScheduleState, loops_above
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import BlockRealize, For, IterType
from mlcweb.tir.substitute import variables_in


def check_driven_affine(state: ScheduleState, place: BlockPlace, loops: Sequence[Var]) -> None:
    """Raise BindingError unless the iterators of a block that some loops drive are bound one to
    one. How others are bound does not matter: they are the same in any order of the loops."""
    if is_affine(state, place):
        return
    driven = [value for value in place.realize.iter_values if variables_in(value) & set(loops)]
    ranges = loop_ranges(loops_above(place))
    found = detect_iter_map(driven, ranges, place.realize.predicate, SURJECTIVE)
    if place.block.init is not None or found.indices is None:
        check_affine(state, place)


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
