"""Other iterators for the same iterations of a block: transform_block_layout,
reorder_block_iter_var."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlcweb.arith.index_map import IndexMap, IndexMapError
from mlcweb.arith.iter_map import sum_of_digits
from mlcweb.ir.node import replace
from mlcweb.schedule.analysis.dependences import check_any_order, check_keeps_order
from mlcweb.schedule.analysis.iteration_order import check_own_predicate
from mlcweb.schedule.analysis.scopes import check_affine, check_binds_loops, effects_below
from mlcweb.schedule.analysis.units import completed
from mlcweb.schedule.arguments import Integers
from mlcweb.schedule.errors import ArgumentError, BindingError, DataflowError, LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import AccessSimplifier
from mlcweb.schedule.rewriting.nests import loop_nest, only_block_in_loops
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, For, IterType, IterVar, Stmt
from mlcweb.tir.substitute import substitute, uses_any, variables_in


@primitive("TransformBlockLayout", title="transform_block_layout")
def transform_block_layout(
    state: ScheduleState, block: BlockIdentity, index_map: IndexMap
) -> ScheduleState:
    """Replace the iterators of a block, and the loops around it, by those that a map gives.

    Checked: the loops hold the block alone and are bound to its iterators one by one, in order; no
    domain of a loop depends on another of them; the map takes as many indices as the block has
    iterators and is bijective on their domains; no new iterator mixes spatial and reduction
    iterators of several iterations; iterations that depend on each other stay in order.

    rewrite, by lambda i, j: [i * 24 + j]:
        for i, j in T.grid(16, 24):                   for ax0 in range(384):
            (block "B") B[vi, vj] = A[vi, vj]   -->       (block "B") B[v0 // 24, v0 % 24] = …
    """
    place = state.block(block)
    loops = place.loops
    nest = only_block_in_loops(place, "transform_block_layout")
    check_affine(state, place)
    check_binds_loops(place, loops)
    values = list(place.realize.iter_values)
    if values != [loop.loop_var for loop in loops]:
        raise BindingError(
            f"The iterators of {place.title} are not bound to the variables of its loops, one by "
            "one and in order",
            [place.realize],
            "transform the block before its loops are split, fused or reordered",
        )
    own = {loop.loop_var for loop in loops}
    for loop in loops:
        if uses_any(loop.min, own) or uses_any(loop.extent, own):
            raise LoopError(
                f'The domain of loop "{loop.loop_var.name}" depends on another loop around '
                f"{place.title}, so the iterations are no box that a map could rearrange",
                [loop],
                "loops with extents of their own, and T.where for what depends on others",
            )
    iter_vars = place.block.iter_vars
    index_map = index_map.with_index_dtype(iter_vars[0].var.dtype if iter_vars else "int32")
    # The map is of the iterations counted from zero, wherever the loops begin.
    try:
        inverse = index_map.inverse([Range(loop.min - loop.min, loop.extent) for loop in loops])
        extents = index_map.map_shape([loop.extent for loop in loops])
    except IndexMapError as error:
        raise ArgumentError(
            f"The index map {index_map!r} is not bijective affine: {error.message}",
            [place.realize],
            "factors that divide the domains; pad_einsum rounds domains up",
        ) from None
    new_vars = [Var(f"v{n}", extent.dtype) for n, extent in enumerate(extents)]
    loop_vars = [Var(f"ax{n}", extent.dtype) for n, extent in enumerate(extents)]
    types = _iter_types(place, index_map)
    new_iter_vars = tuple(
        IterVar(Range(const(0, var.dtype), extent), var, iter_type)
        for var, extent, iter_type in zip(new_vars, extents, types, strict=True)
    )
    inside = _inverted(inverse, loops, [iter_var.var for iter_var in iter_vars], new_vars)
    outside = _inverted(inverse, loops, [loop.loop_var for loop in loops], loop_vars)
    domains = {
        var: Range(const(0, var.dtype), extent)
        for var, extent in zip(loop_vars, extents, strict=True)
    }
    _check_order(state, place, nest, outside, domains)
    changed = replace(
        substitute(replace(place.block, iter_vars=()), inside), iter_vars=new_iter_vars
    )
    realize = replace(
        place.realize,
        iter_values=tuple(loop_vars),
        predicate=substitute(place.realize.predicate, outside),
        block=AccessSimplifier().rewrite(changed),
    )
    return state.replaced(place.function, {nest: loop_nest(loop_vars, extents, realize)})


def _inverted(
    inverse: IndexMap, loops: Sequence[For], old: Sequence[Var], new: Sequence[Var]
) -> dict[Var, PrimExpr]:
    """The value of each old variable, in terms of the new ones."""
    at = dict(zip(inverse.initial_indices, new, strict=True))
    parts = zip(old, inverse.final_indices, loops, strict=True)
    return {var: substitute(index, at) + loop.min for var, index, loop in parts}


def _check_order(
    state: ScheduleState,
    place: BlockPlace,
    nest: Stmt,
    values: Mapping[Var, PrimExpr],
    domains: Mapping[Var, Range],
) -> None:
    """Raise a ScheduleError where iterations of a block that depend on each other would change
    places in new loops over `domains`, in terms of which the loops around it now have `values`.

    Where these are sums of digits of the new loops, a loop over each digit is written instead of
    the nest, so that the new order is one of loops. Where they are not, it may be any.
    """
    digits = _digits(values, domains)
    if digits is not None and digits.new_order == [*digits.extents]:
        return
    check_own_predicate(completed(state, place))
    if digits is not None:
        iter_values = tuple(substitute(v, digits.sums) for v in place.realize.iter_values)
        predicate = substitute(place.realize.predicate, digits.sums)
        realize = replace(place.realize, iter_values=iter_values, predicate=predicate)
        loops = loop_nest([*digits.extents], [*digits.extents.values()], realize)
        state = state.replaced(place.function, {nest: loops})
    chain = state.block(place.block.identity).loops
    below = effects_below(state, state.loop(chain[0].loop_var))
    try:
        if digits is not None:
            new_order = [state.loop(var).loop for var in digits.new_order]
            check_keeps_order(state, below, chain, new_order)
        else:
            check_any_order(state, below, chain)
    except DataflowError as error:
        raise DataflowError(error.reason, [place.realize], error.advice) from None


@dataclass(frozen=True, slots=True)
class _Digits:
    """Loops over digits of some loops, those that count most first: their extents, in the order of
    these loops; the order of others that run through the same digits; the value of each of these
    loops."""

    extents: dict[Var, PrimExpr]
    new_order: list[Var]
    sums: dict[Var, PrimExpr]


def _digits(values: Mapping[Var, PrimExpr], domains: Mapping[Var, Range]) -> _Digits | None:
    """The digits that loops with some values and the loops over `domains`, in terms of which these
    are, have in common; None where a value is no sum of digits, or not known to count up."""
    numbers = {var: n for n, var in enumerate(domains)}
    extents: dict[Var, PrimExpr] = {}
    places: dict[Var, tuple[int, int]] = {}
    sums: dict[Var, PrimExpr] = {}
    for var, value in values.items():
        total = sum_of_digits(value, domains)
        if uses_any(total.constant, domains):
            return None
        sums[var] = total.constant
        terms: list[tuple[int, tuple[int, int], PrimExpr]] = []
        for split, scale in total.items():
            loop_var, unit = split.source.source, split.lower_factor
            if not (isinstance(loop_var, Var) and isinstance(unit, IntImm)):
                return None
            if not (isinstance(scale, IntImm) and scale.value > 0):
                return None
            terms.append((scale.value, (numbers[loop_var], -unit.value), split.extent))
        for n, (scale, place, extent) in enumerate(sorted(terms, key=lambda term: -term[0])):
            digit = Var(f"{var.name}_{n}" if len(terms) > 1 else var.name, var.dtype)
            extents[digit], places[digit] = extent, place
            sums[var] += digit * scale
    return _Digits(extents, sorted(places, key=lambda digit: places[digit]), sums)


def _iter_types(place: BlockPlace, index_map: IndexMap) -> list[IterType]:
    """The types of the new iterators. Old ones of one iteration have no say in them."""
    kinds = {
        index: iter_var.iter_type
        for index, iter_var in zip(index_map.initial_indices, place.block.iter_vars, strict=True)
        if not is_const_int(iter_var.domain.extent, 1)
    }
    types: list[IterType] = []
    for index in index_map.final_indices:
        index_kinds = {kinds[var] for var in variables_in(index) if var in kinds}
        if len(index_kinds) > 1:
            raise ArgumentError(
                f"The new iterator {index!r} of {place.title} mixes spatial and reduction "
                "iterators",
                [place.realize],
                "a map that keeps spatial and reduction iterators apart",
            )
        types.append(index_kinds.pop() if index_kinds else IterType.DATA_PARALLEL)
    return types


@primitive("ReorderBlockIterVar", inputs=("new_order",), title="reorder_block_iter_var")
def reorder_block_iter_var(
    state: ScheduleState, block: BlockIdentity, new_order: Integers
) -> ScheduleState:
    """List the iterators of a block in a new order: first the one at `new_order[0]`, and so on.

    The loops stay as they are. Checked: `new_order` has every position once.

    rewrite:
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])     with [2, 0, 1]
                                                 -->    vk, vi, vj = T.axis.remap("RSS", [k, i, j])
    """
    place = state.block(block)
    count = len(place.block.iter_vars)
    if sorted(new_order) != list(range(count)):
        raise BindingError(
            f"The new order {list(new_order)} is not an order of the {count} iterators of block "
            f'"{place.block.name_hint}"',
            [place.realize],
            f"each of the positions {list(range(count))} once" if count else "",
        )
    new = replace(
        place.realize,
        iter_values=tuple(place.realize.iter_values[n] for n in new_order),
        block=replace(place.block, iter_vars=tuple(place.block.iter_vars[n] for n in new_order)),
    )
    return state.replaced(place.function, {place.realize: new})
