"""Transformations of reductions: decompose_reduction."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.arith import Analyzer, conjuncts
from mlcweb.ir.node import replace
from mlcweb.schedule.errors import BindingError, DataflowError, LoopError
from mlcweb.schedule.nests import in_fresh_loops, loops_from
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.scopes import (
    check_affine,
    check_binds_loops,
    check_reduction,
    iterators_by_variable,
    runs_one_to_one,
    scope_at,
)  # fmt: skip
from mlcweb.schedule.stage_pipeline import is_uncovered
from mlcweb.schedule.stages import part_of_block
from mlcweb.schedule.state import BlockPlace, ScheduleState, loops_above
from mlcweb.schedule.units import bound_reads, check_unguarded, stands_in
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.buffer import BufferRegion
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, For, IterType, sequence
from mlcweb.tir.substitute import substitute, uses, variables_in


@primitive("DecomposeReduction")
def decompose_reduction(
    state: ScheduleState, block: BlockIdentity, loop: Var
) -> tuple[ScheduleState, BlockIdentity]:
    """Move the init of a reduction block into a block of its own, right before `loop`.

    Checked: the block is a reduction block with an affine binding; `loop` is around it and not
    inside of one of its reduction loops; no loop from there on repeats the whole reduction; what
    the init reads is written before `loop`, and what it writes is read after the reduction alone.

    rewrite:
        for i, j, k in T.grid(…):                 for i in range(…):
            with T.block("C"): (init, update)         for j_init in range(…): (block "C_init")
                                           -->        for k, j in T.grid(…): (block "C_update")
    """
    place = state.block(block)
    loop_place = state.loop(loop)
    check_reduction(state, place)
    check_affine(state, place)
    inner = loops_from(place, loop_place.loop)
    _check_above_reduction(place, loop_place.loop)
    _check_not_repeated(place, inner)
    check_unguarded(place, loop_place.loop, "the init would run whatever it says")
    init_realize = _init_realize(place, inner)
    check_binds_loops(BlockPlace(place.function, init_realize, place.parents), inner)
    _check_init_moves(state, place, loop_place.loop, init_realize)
    driving = [old for old in inner if any(uses(v, old.loop_var) for v in init_realize.iter_values)]
    body = in_fresh_loops(init_realize, driving, "_init")

    realize = place.realize
    updated = replace(
        realize.block,
        name_hint=realize.block.name_hint + "_update",
        reads=_merge_regions(realize.block.writes, realize.block.reads),
        init=None,
    )
    nest = state.replaced(place.function, {realize: replace(realize, block=updated)}).loop(loop)
    state = state.replaced(place.function, {loop_place.loop: sequence(body, nest.loop)})
    return state, init_realize.block.identity


def _check_not_repeated(place: BlockPlace, inner: tuple[For, ...]) -> None:
    driven = iterators_by_variable(place.realize)
    for loop in inner:
        if loop.loop_var not in driven and not is_const_int(loop.extent, 1):
            raise LoopError(
                f'The loop "{loop.loop_var.name}" repeats the whole reduction of block '
                f'"{place.block.name_hint}", which a single init before it would not do',
                [loop, place.realize],
                "decompose at a loop inside of it",
            )
    if not runs_one_to_one(place.realize, inner):
        raise BindingError(
            f'The loops from "{inner[0].loop_var.name}" on repeat parts of the reduction of block '
            f'"{place.block.name_hint}", which a single init before them would not do',
            [inner[0], place.realize],
            "decompose at a loop inside of them",
        )


def _check_above_reduction(place: BlockPlace, loop: For) -> None:
    name = loop.loop_var.name
    for outer in loops_above(place):
        if outer is loop:
            return
        for iter_var, value in zip(place.block.iter_vars, place.realize.iter_values, strict=True):
            if iter_var.iter_type == IterType.COMM_REDUCE and uses(value, outer.loop_var):
                raise LoopError(
                    f'The loop "{name}" is inside of the reduction loop "{outer.loop_var.name}", '
                    "so the initial value would be set again in the middle of the reduction",
                    [loop, outer],
                    f'decompose at "{outer.loop_var.name}" or at a loop around it',
                )


def _check_init_moves(
    state: ScheduleState, place: BlockPlace, loop: For, init: BlockRealize
) -> None:
    """The init may run before all that the loop holds: nothing there changes what it reads, nor
    reads what it writes, unless the reduction has written it by then."""
    blocks = scope_at(state, state.scope_of(place))
    here = blocks.position(place.block)
    read = {region.buffer for region in init.block.reads} | set(bound_reads(init))
    written = {region.buffer for region in init.block.writes}
    for number, unit in enumerate(blocks.units):
        if number == here or not stands_in(unit, loop):
            continue
        for region in unit.block.writes:
            if region.buffer in read:
                raise DataflowError(
                    f'The init of block "{place.block.name_hint}" reads "{region.buffer.name}", '
                    f'which the {unit.title} writes in the loop "{loop.loop_var.name}"',
                    [unit.statement, loop, place.realize],
                    "decompose at a loop that does not hold it",
                )
        for buffer in (*(r.buffer for r in unit.block.reads), *bound_reads(unit.realize)):
            if buffer in written and (number < here or is_uncovered(buffer, [place], unit)):
                raise DataflowError(
                    f'The {unit.title} reads "{buffer.name}" in the loop "{loop.loop_var.name}" '
                    f'before the block "{place.block.name_hint}" has written it, and would find '
                    "the initial values of the reduction there",
                    [unit.statement, loop, place.realize],
                    "decompose at a loop that does not hold it",
                )


def _init_realize(place: BlockPlace, inner: tuple[For, ...]) -> BlockRealize:
    old = place.block
    assert old.init is not None
    bound = [
        (iter_var, value)
        for iter_var, value in zip(old.iter_vars, place.realize.iter_values, strict=True)
        if iter_var.iter_type == IterType.DATA_PARALLEL
    ]
    values = [value for _, value in bound]
    block = part_of_block(old, [i for i, _ in bound], old.name_hint + "_init", old.init)
    block = replace(block, annotations=old.annotations)
    predicate = init_predicate(
        place.realize, place.realize.predicate, loops_above(place), inner, values
    )
    return BlockRealize(tuple(values), predicate, block, span=place.realize.span)


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
        elif used & kept:
            raise BindingError(
                f'The predicate {condition!r} of block "{realize.block.name_hint}" ties spatial '
                "and reduction loops together, so the init alone could not keep it",
                [realize],
                "decompose before spatial and reduction loops are fused or split unevenly",
            )
    return limits


def _merge_regions(
    first: tuple[BufferRegion, ...], second: tuple[BufferRegion, ...]
) -> tuple[BufferRegion, ...]:
    written = {region.buffer for region in first}
    return (*first, *(region for region in second if region.buffer not in written))
