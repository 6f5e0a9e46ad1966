"""Other iterators for the same iterations of a block: transform_block_layout,
reorder_block_iter_var."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.arith.index_map import IndexMap, IndexMapError
from mlcweb.ir.node import replace
from mlcweb.schedule.analysis.scopes import check_affine, check_binds_loops
from mlcweb.schedule.arguments import Integers
from mlcweb.schedule.errors import ArgumentError, BindingError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import AccessSimplifier
from mlcweb.schedule.rewriting.nests import loop_nest, only_block_in
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, For, IterType, IterVar
from mlcweb.tir.substitute import substitute, variables_in


@primitive("TransformBlockLayout", title="transform_block_layout")
def transform_block_layout(
    state: ScheduleState, block: BlockIdentity, index_map: IndexMap
) -> ScheduleState:
    """Replace the iterators of a block, and the loops around it, by those that a map gives.

    Checked: the loops hold the block alone and are bound to its iterators one by one, in order; the
    map takes as many indices as the block has iterators and is bijective on their domains; no new
    iterator mixes spatial and reduction iterators.

    rewrite, by lambda i, j: [i * 24 + j]:
        for i, j in T.grid(16, 24):                   for ax0 in range(384):
            (block "B") B[vi, vj] = A[vi, vj]   -->       (block "B") B[v0 // 24, v0 % 24] = …
    """
    place = state.block(block)
    loops = place.loops
    nest = only_block_in(place, loops, "transform_block_layout")
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
    made = tuple(
        IterVar(Range(const(0, var.dtype), extent), var, iter_type)
        for var, extent, iter_type in zip(new_vars, extents, types, strict=True)
    )
    inside = _inverted(inverse, loops, [iter_var.var for iter_var in iter_vars], new_vars)
    outside = _inverted(inverse, loops, [loop.loop_var for loop in loops], loop_vars)
    changed = replace(substitute(replace(place.block, iter_vars=()), inside), iter_vars=made)
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


def _iter_types(place: BlockPlace, index_map: IndexMap) -> list[IterType]:
    kinds = {
        index: iter_var.iter_type
        for index, iter_var in zip(index_map.initial_indices, place.block.iter_vars, strict=True)
    }
    types: list[IterType] = []
    for index in index_map.final_indices:
        found = {kinds[var] for var in variables_in(index) if var in kinds}
        if len(found) > 1:
            raise ArgumentError(
                f"The new iterator {index!r} of {place.title} mixes spatial and reduction "
                "iterators",
                [place.realize],
                "a map that keeps spatial and reduction iterators apart",
            )
        types.append(found.pop() if found else IterType.DATA_PARALLEL)
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
