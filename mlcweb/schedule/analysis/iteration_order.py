"""Whether the iterations of loops may run in another order, or at the same time.

Blocks say so by the types of their iterators. Statements outside of blocks say nothing: what they
access tells. `old_order` and `new_order` are the loops of one chain, from the outermost to the
innermost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from mlcweb.arith import Analyzer, conjuncts
from mlcweb.arith.analyzer import conjunction
from mlcweb.arith.iter_map import is_iter_map
from mlcweb.schedule.analysis.dependences import check_carries_nothing
from mlcweb.schedule.analysis.scopes import (
    check_affine,
    driven_iterators,
    effects_below,
    is_affine,
    iterators_by_variable,
    loop_ranges,
    runs_one_to_one,
    why_not_complete,
    why_not_reduction,
)
from mlcweb.schedule.analysis.units import bound_reads
from mlcweb.schedule.errors import BindingError, DataflowError, LoopError
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, block_realizes_below
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import BlockRealize, For, IterType
from mlcweb.tir.substitute import substitute, uses, uses_any, variables_in


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
    below = effects_below(state, loop)
    for place in below.children:
        name = place.block.name_hint
        complete = why_not_complete(below, place.block)
        reduction = why_not_reduction(below, place.block, may_go_on=True)
        if complete and reduction:
            raise DataflowError(
                f'The blocks below loop "{loop.loop.loop_var.name}" do not have compact dataflow: '
                f'the block "{name}" is neither complete ({complete}) nor a reduction block '
                f"({reduction})",
                [loop.loop, place.statement],
                "annotate loops (parallel, vectorize) before decompose_reduction",
            )
        check_affine(state, place, even_without_predicate=True)
    check_carries_nothing(state, below, loop.loop)


def check_own_predicate(place: BlockPlace) -> None:
    """Which iterations run may not depend on what earlier ones have written."""
    written = {region.buffer for region in place.block.writes}
    for buffer in bound_reads(place.realize):
        if buffer in written:
            raise BindingError(
                f'The predicate or a binding of block "{place.block.name_hint}" reads '
                f'"{buffer.name}", which the block writes, so its loops keep their order',
                [place.statement],
                "a predicate of what the block does not write",
            )


def check_driven_affine(state: ScheduleState, place: BlockPlace, loops: Sequence[Var]) -> None:
    """Raise BindingError unless the iterators of a block that some loops drive are bound one to
    one, at least for each iteration of the other loops. How others are bound does not matter: they
    are the same in any order of the loops."""
    if is_affine(state, place):
        return
    driven = [value for value in place.realize.iter_values if variables_in(value) & set(loops)]
    ranges = loop_ranges(place.loops)
    own = {var: domain for var, domain in ranges.items() if var in loops}
    predicate = place.realize.predicate
    if place.block.init is not None or not any(
        is_iter_map(driven, domains, predicate) for domains in (ranges, own)
    ):
        check_affine(state, place, even_without_predicate=True)


def check_init_stays_first(
    state: ScheduleState, place: BlockPlace, old_order: Sequence[Var], new_order: Sequence[For]
) -> None:
    """The init of a reduction runs where all its reduction iterators start, which must stay before
    all updates of the same element.

    A loop that drives both spatial and reduction iterators (a fused one) keeps its place among the
    loops that drive the same iterators; a loop that drives none, and so repeats the reduction,
    keeps its place among the reduction loops.
    """
    realize = place.realize
    if realize.block.init is None:
        return
    driven = iterators_by_variable(realize)
    drives = {loop: driven.get(loop, {}) for loop in old_order}
    after = {loop.loop_var: place for place, loop in enumerate(new_order)}
    repeats_parts = not runs_one_to_one(state, place, new_order)
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


def check_init_runs_first(place: BlockPlace, advice: str) -> dict[Var, PrimExpr]:
    """Where the loops that drive reduction iterators start: the iteration in which the init of a
    block is known to run, if it has one. A domain is taken to have values.

    Raises:
        BindingError: the reduction may start elsewhere, or not at all.
    """
    realize, title = place.realize, place.title
    reduced = {
        axis: value for axis, value in realize.iterators if axis.iter_type == IterType.COMM_REDUCE
    }
    if realize.block.init is None or not reduced:
        return {}
    analyzer = Analyzer(place.domains_around)
    others = (value for axis, value in realize.iterators if axis not in reduced)
    shared = variables_in(*others)
    if any(uses_any(value, shared) for value in reduced.values()):
        reduced = {axis: analyzer.simplify(value) for axis, value in reduced.items()}
    driving = variables_in(*reduced.values())
    start: dict[Var, PrimExpr] = {}
    for loop in place.loops:
        if loop.loop_var in driving:
            # Where another loop begins is not the same for all spatial iterations, nor known here.
            before = {var: first for var, first in start.items() if var not in shared}
            start[loop.loop_var] = substitute(loop.min, before)
    for axis, value in reduced.items():
        if not analyzer.can_prove_equal(substitute(value, start), axis.domain.min):
            raise BindingError(
                f'The reduction iterator "{axis.var.name}" of {title} does not run through its '
                "domain from the start, where the init runs",
                [realize],
                advice,
            )
    conditions = [c for c in conjuncts(realize.predicate) if uses_any(c, start)]
    if not conditions:
        return start
    with analyzer.constraint(conjunction(axis.domain.extent >= 1 for axis in reduced)):
        if not all(analyzer.can_prove(substitute(c, start)) for c in conditions):
            raise BindingError(
                f"The predicate {realize.predicate!r} of {title} may leave out the first "
                "iteration of the reduction, and its init with it",
                [realize],
                advice,
            )
    return start


def check_repeats_no_reduction(realize: BlockRealize, loop: For, advice: str) -> None:
    """Raise LoopError where a loop repeats a whole reduction, its init with it."""
    repeats = not driven_iterators(realize, loop.loop_var)
    if realize.block.init is not None and repeats and not is_const_int(loop.extent, 1):
        raise LoopError(
            f'The loop "{loop.loop_var.name}" repeats the whole reduction of block '
            f'"{realize.block.name_hint}", which a single init before it would not do',
            [loop, realize],
            advice,
        )


def init_predicate(
    realize: BlockRealize,
    predicate: PrimExpr,
    around: Sequence[For],
    inner: Sequence[For],
    values: Sequence[PrimExpr],
) -> PrimExpr:
    """The predicate of a block as far as it limits its init, whose iterators have `values`.

    Of the loops `around` the block, the init runs without those of `inner` that `values` do not
    use.
    """
    dropped = [loop for loop in inner if not any(uses(value, loop.loop_var) for value in values)]
    unit = {loop.loop_var: loop.min for loop in dropped if is_const_int(loop.extent, 1)}
    gone = {loop.loop_var for loop in dropped} - set(unit)
    kept = {loop.loop_var for loop in around} - gone
    limits: PrimExpr = const(True)
    for condition in conjuncts(predicate):
        used = variables_in(condition) - set(unit)
        if not used & gone:
            if used != variables_in(condition):
                condition = Analyzer().simplify(substitute(condition, unit))
            limits = logical_and(limits, condition)
        elif used & kept and not _holds_at_start(realize, condition, around, gone):
            raise BindingError(
                f'The predicate {condition!r} of block "{realize.block.name_hint}" ties spatial '
                "and reduction loops together, so the init alone could not keep it",
                [realize],
                "decompose before spatial and reduction loops are fused or split unevenly",
            )
    return limits


def _holds_at_start(
    realize: BlockRealize, condition: PrimExpr, around: Sequence[For], gone: set[Var]
) -> bool:
    """Whether a condition holds for every init: where the loops `gone` start, as the reduction
    iterators do."""
    analyzer = Analyzer(loop_ranges(around))
    start = {loop.loop_var: loop.min for loop in around if loop.loop_var in gone}
    return analyzer.can_prove(substitute(condition, start)) and all(
        analyzer.can_prove_equal(substitute(value, start), axis.domain.min)
        for axis, value in realize.iterators
        if axis.iter_type == IterType.COMM_REDUCE
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
