"""The iterators of a block: reorder_block_iter_var."""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.schedule.arguments import Integers
from mlcweb.schedule.errors import BindingError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir.stmt import BlockIdentity


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
