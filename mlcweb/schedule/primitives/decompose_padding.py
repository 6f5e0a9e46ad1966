"""decompose_padding: filling a buffer first, then copying what is inside of the padding."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mlcweb.analysis.access_regions import with_access_regions
from mlcweb.arith import Analyzer, conjunction, conjuncts, eval_set
from mlcweb.arith.linear_system import Form, LinearSystem, constant_ends
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.schedule.analysis.scopes import check_affine, check_complete
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.errors import BlockKindError, LoopError, StaleReferenceError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import AccessSimplifier
from mlcweb.schedule.rewriting.nests import in_fresh_loops, in_loops, loops_from, part_of_block
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import add, const, constant_value, is_const_int, subtract
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import Call, FloatImm, IntImm, PrimExpr, Var
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt import (
    BlockIdentity,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IterVar,
    SeqStmt,
    Stmt,
    sequence,
)
from mlcweb.tir.substitute import substitute, uses, uses_any, variables_in


@primitive("DecomposePadding")
def decompose_padding(
    state: ScheduleState, block: BlockIdentity, loop: Var
) -> tuple[ScheduleState, BlockIdentity]:
    """Split a block that stores a value where a condition holds, and a constant elsewhere, into one
    that fills everything with the constant, right before `loop`, and one that stores the value.

    Checked: the block is complete and has an affine binding; its body is one store of an
    if_then_else whose condition bounds iterators, and does not always hold, and whose other value
    is a constant; `loop` is around the block; where it holds other statements, none of them is a
    condition around the block, and the scope is a stage pipeline.

    rewrite:
                                                  for i in range(140): (block "B_pad_const")
                                                      B[vi] = 0
        for i in range(140): (block "B")    -->   for i in range(128): (block "B")
            B[vi] = T.if_then_else(                   B[vi + 6] = A[vi]
                6 <= vi and vi < 134, A[vi - 6], 0)
    """
    place = state.block(block)
    loop_place = state.loop(loop)
    check_complete(state, place)
    check_affine(state, place)
    inner = loops_from(place, loop_place.loop)
    own = place.own_loops[-len(inner) :]
    if len(own) < len(inner):
        _check_alone_in(state, place, inner)
    store, condition, value, constant = _padding_pattern(place)
    inside = _inside(place, condition)
    filling = _filling(place, inner, store, constant)
    serial = [For(old.loop_var, old.min, old.extent, ForKind.SERIAL, old.body) for old in inner]
    fill = in_fresh_loops(filling, serial)
    kept = _inside_nest(place, own, replace(store, value=value), condition, inside)
    state = state.replaced(place.function, {own[0] if own else place.realize: kept})
    outermost = state.loop(loop).loop
    state = state.replaced(place.function, {outermost: sequence(fill, outermost)})
    return state, filling.block.identity


def can_decompose_padding(state: ScheduleState, block: BlockIdentity, loop: Var) -> bool:
    """Whether `decompose_padding` would accept this."""
    try:
        decompose_padding(state, block, loop)
    except StaleReferenceError:
        raise
    except TVMError:
        return False
    return True


def _check_alone_in(state: ScheduleState, place: BlockPlace, loops: Sequence[For]) -> None:
    """Raise an error unless other statements in the loops may run after all of the constants are
    stored: they read what the block has stored by then, which has the same values."""
    check_stage_pipeline(state, state.scope_of(place))
    start = next(n for n, parent in enumerate(place.parents) if parent is loops[0])
    if not all(isinstance(parent, (For, SeqStmt)) for parent in place.parents[start:]):
        raise LoopError(
            f'Conditions in the loop "{loops[0].loop_var.name}" decide whether {place.title} runs, '
            "but the constants are stored before it in any case",
            [loops[0], place.realize],
            "a loop inside of the conditions",
        )


Pattern = tuple[BufferStore, PrimExpr, PrimExpr, PrimExpr]


def _padding_pattern(place: BlockPlace) -> Pattern:
    """(store, condition, value, constant) of a block that pads."""
    store = place.block.body
    reason = ""
    if not isinstance(store, BufferStore) or place.block.init is not None:
        reason = "its body is not one store"
    else:
        value = store.value
        if not isinstance(value, Call) or operator_name(value) != "if_then_else":
            reason = "the value stored is not T.if_then_else(condition, value, constant)"
        elif not isinstance(value.args[2], (IntImm, FloatImm)):
            reason = f"the value outside, {value.args[2]!r}, is not a constant"
        else:
            return store, value.args[0], value.args[1], value.args[2]
    raise BlockKindError(
        f"The {place.title} does not match the padding pattern: {reason}",
        [place.realize],
        "a body of the form B[…] = T.if_then_else(lo <= i and i < hi, A[…], constant)",
    )


Bounds = dict[Var, tuple[int, int]]
"""The first value of an iterator, and the value after the last."""


def _inside(place: BlockPlace, condition: PrimExpr) -> Bounds:
    """The values of the iterators that run and for which the condition holds."""
    loops = place.inner_loops(None)
    analyzer = Analyzer({**place.domains_around, **loops})
    system = LinearSystem()
    values: dict[Var, Form] = {}
    for iter_var, value in place.realize.iterators:
        first, last = constant_ends(iter_var.domain)
        if first == -inf or last == inf:
            raise BlockKindError(
                f'The domain of iterator "{iter_var.var.name}" is not constant',
                [place.realize],
                "a block whose iterators have constant extents",
            )
        low, high = map(constant_value, eval_set(value, loops, analyzer))
        first = first if low is None else max(first, low)
        last = last if high is None else min(last, high)
        values[iter_var.var] = system.variable(first, last)
    for part in conjuncts(condition):
        system.require_condition(part, values)
    if not system.propagate(system.bounds):
        raise BlockKindError(
            f"The condition of {place.title} never holds, so that it stores the constant alone",
            [place.realize],
            "a condition that holds for the elements that are copied",
        )
    bounds = {v: (int(a), int(b) + 1) for v, (a, b) in zip(values, system.bounds, strict=False)}
    box = {v: Range(const(a, v.dtype), const(b - a, v.dtype)) for v, (a, b) in bounds.items()}
    everywhere = Analyzer({**place.domains_around, **place.block.domains})
    if everywhere.can_prove(condition):
        raise BlockKindError(
            f"The condition of {place.title} always holds, so that nothing is padded",
            [place.realize],
            "a condition that does not hold for the elements of the padding",
        )
    inside = Analyzer(box)
    for part in conjuncts(condition):
        if not inside.can_prove(part):
            raise BlockKindError(
                f"The {place.title} does not match the padding pattern: the condition {part!r} is "
                "not a bound of one iterator",
                [place.realize],
                "a condition of the form lo <= i and i < hi and …",
            )
    return bounds


def _filling(
    place: BlockPlace, inner: Sequence[For], store: BufferStore, constant: PrimExpr
) -> BlockRealize:
    """A block that stores the constant in all iterations of the loops `inner`."""
    block = place.block
    own = {loop.loop_var for loop in inner}
    around = {v: domain for v, domain in place.inner_loops(None).items() if v not in own}
    analyzer = Analyzer(around)
    values = tuple(map(analyzer.simplify, place.realize.iter_values))
    body = replace(store, value=constant)
    filling = part_of_block(block, block.iter_vars, f"{block.name_hint}_pad_const", body)
    filling = replace(filling, annotations=block.annotations)
    return BlockRealize(values, place.realize.predicate, filling)


def _inside_nest(
    place: BlockPlace, inner: Sequence[For], store: BufferStore, condition: PrimExpr, inside: Bounds
) -> Stmt:
    """The loops `inner` around a block with `store`, where the condition holds: loops that drive an
    iterator alone become shorter, for the others there is a predicate."""
    block, realize = place.block, place.realize
    shorter: dict[Var, PrimExpr] = {}
    shifts: dict[Var, PrimExpr] = {}
    values: list[PrimExpr] = []
    iter_vars: list[IterVar] = []
    guarded: dict[Var, PrimExpr] = {}
    analyzer = Analyzer({**place.domains_around, **place.inner_loops(None)})
    used_once = _used_once(place, inner)
    for iter_var, bound in realize.iterators:
        low, high = inside[iter_var.var]
        dtype = iter_var.var.dtype
        extent = const(high - low, dtype)
        iter_vars.append(replace(iter_var, dom=Range(const(0, dtype), extent)))
        shifts[iter_var.var] = add(iter_var.var, const(low, dtype))
        if isinstance(bound, Var) and bound in used_once:
            shorter[bound] = extent
            values.append(bound)
            continue
        values.append(analyzer.simplify(subtract(bound, const(low, dtype))))
        guarded[iter_var.var] = bound
    inside_only = conjunction(
        analyzer.simplify(substitute(part, guarded))
        for part in conjuncts(condition)
        if uses_any(part, guarded)
    )
    predicate = conjunction([*conjuncts(inside_only), *conjuncts(realize.predicate)])
    changed = replace(block, iter_vars=tuple(iter_vars), body=substitute(store, shifts))
    changed = AccessSimplifier().rewrite(changed)
    changed = with_access_regions(changed)
    realize = replace(realize, iter_values=tuple(values), predicate=predicate, block=changed)
    loops = [replace(old, extent=shorter.get(old.loop_var, old.extent)) for old in inner]
    return in_loops(realize, loops)


def _used_once(place: BlockPlace, loops: Sequence[For]) -> set[Var]:
    """The loops that start at 0 and do nothing but drive one iterator."""
    realize = place.realize
    others = [realize.predicate, *(loop.extent for loop in loops)]
    return {
        loop.loop_var
        for loop in loops
        if is_const_int(loop.min, 0)
        and sum(uses(value, loop.loop_var) for value in realize.iter_values) == 1
        and not any(loop.loop_var in variables_in(other) for other in others)
    }
