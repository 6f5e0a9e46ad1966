"""Whether the iterations of loops may run in another order, or at the same time.

Blocks say so by the types of their iterators. Statements outside of blocks say nothing: what they
access tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.arith import BIJECTIVE, detect_iter_map, same_expression
from mlcweb.arith.iter_predicate import uses_any
from mlcweb.schedule.errors import BindingError, DataflowError
from mlcweb.schedule.regions import bindings
from mlcweb.schedule.scopes import (
    Scope,
    check_affine,
    hidden_accesses,
    loop_ranges,
    scope_below,
    why_not_complete,
    why_not_reduction,
)
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, loops_above
from mlcweb.schedule.units import RawPlace, bound_reads, let_variables, units_below
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import BlockRealize
from mlcweb.tir.substitute import substitute, uses


def check_compact_dataflow(state: ScheduleState, loop: LoopPlace) -> None:
    """Raise DataflowError unless the blocks below a loop form a compact dataflow: each has an
    affine binding and is complete or a reduction block among the blocks below the loop."""
    below = scope_below(state, loop)
    _check_own_elements(below, loop, [loop.loop.loop_var])
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


def check_order_free(state: ScheduleState, place: LoopPlace, loops: Sequence[Var]) -> None:
    """Raise DataflowError where a statement outside of blocks, or a block that uses loops without
    an iterator, ties the iterations of `loops`, below the loop at `place`, together: they could
    then not run in another order.

    Of a buffer that such a statement uses, and that is written below the loop, each iteration has
    to have an element of its own.
    """
    if any(_is_opaque(unit, loops) for unit in units_below(state, place)):
        _check_own_elements(scope_below(state, place), place, loops)


def _check_own_elements(below: Scope, place: LoopPlace, loops: Sequence[Var]) -> None:
    for raw in below.units:
        if not _is_opaque(raw, loops):
            continue
        for buffer in {region.buffer: None for region in (*raw.block.reads, *raw.block.writes)}:
            users = (*below.writers.get(buffer, ()), *below.readers.get(buffer, ()))
            below.check_declared(buffer)
            if buffer in below.writers and not _has_own_element(users, buffer, loops):
                names = ", ".join(f'"{loop.name}"' for loop in loops)
                raise DataflowError(
                    f'The {raw.title} uses "{buffer.name}", of which iterations of the loop '
                    f"{names} are not known to use and write elements of their own, so that their "
                    "order matters",
                    [raw.statement, place.loop],
                    "the statement in a loop of its own, or in a block with spatial iterators",
                )


def _is_opaque(unit: BlockPlace, loops: Sequence[Var]) -> bool:
    """Whether a unit uses loops by no iterator that would say what they mean to it."""
    if isinstance(unit, RawPlace):
        return True
    return not unit.block.iter_vars and any(uses(unit.block, loop) for loop in loops)


def _has_own_element(users: Iterable[BlockPlace], buffer: Buffer, loops: Sequence[Var]) -> bool:
    """Whether all accesses of a buffer are of one element, another one for each iteration."""
    first: tuple[PrimExpr, ...] | None = None
    for user in users:
        values = bindings(user.realize)
        ranges = loop_ranges(loops_above(user))
        moving = {var: domain for var, domain in ranges.items() if var in loops}
        for region in (*user.block.reads, *user.block.writes):
            if region.buffer is not buffer:
                continue
            at = [substitute(side.min, values) for side in region.region]
            if not all(is_const_int(side.extent, 1) for side in region.region):
                return False
            if first is None:
                first = tuple(at)
                if any(uses_any(index, let_variables(user, None)) for index in at):
                    return False
                if detect_iter_map(at, _inside(ranges, loops), True, BIJECTIVE).indices is None:
                    return False
            if not all(same_expression(a, b) for a, b in zip(at, first, strict=True)):
                return False
            if len(moving) < len(loops):
                return False
    return True


def _inside(ranges: dict[Var, Range], loops: Sequence[Var]) -> dict[Var, Range]:
    """The domains from the outermost of some loops on."""
    names = list(ranges)
    first = min((names.index(loop) for loop in loops if loop in ranges), default=0)
    return {var: ranges[var] for var in names[first:]}


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
