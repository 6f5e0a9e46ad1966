"""What stands where: blocks, loops, and who makes and uses what."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.schedule.analysis.scopes import is_output_block, scope_around
from mlcweb.schedule.analysis.units import blocks_among
from mlcweb.schedule.arguments import FunctionName
from mlcweb.schedule.errors import NotFoundError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import BlockPlace, Place, ScheduleState
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import BlockIdentity


@primitive("GetBlock", aliases=("GetSBlock",), pure=True)
def get_block(state: ScheduleState, name: str, func_name: FunctionName = None) -> BlockIdentity:
    """The block of a name in a function ("root" is the function's root block)."""
    assert func_name is not None
    places = state.blocks_named(name, func_name)
    if len(places) != 1:
        raise _block_not_found(state, name, func_name, places)
    return places[0].block.identity


@primitive("GetLoops", pure=True)
def get_loops(state: ScheduleState, block: BlockIdentity) -> list[Var]:
    """The loops around a block up to the next block outside, outermost first."""
    return [loop.loop_var for loop in state.block(block).loops]


@primitive("GetChildBlocks", pure=True, prints_positional=True)
def get_child_blocks(state: ScheduleState, block_or_loop: Place) -> list[BlockIdentity]:
    """The outermost blocks below a block or loop."""
    return _identities(state.child_blocks(block_or_loop))


@primitive("GetProducers", pure=True)
def get_producers(state: ScheduleState, block: BlockIdentity) -> list[BlockIdentity]:
    """The blocks of the same scope that write what a block reads."""
    place = state.block(block)
    return _identities(scope_around(state, place).producers(place))


@primitive("GetConsumers", pure=True)
def get_consumers(state: ScheduleState, block: BlockIdentity) -> list[BlockIdentity]:
    """The blocks of the same scope that read what a block writes."""
    place = state.block(block)
    return _identities(scope_around(state, place).consumers(place))


@primitive("GetOutputBlocks", pure=True)
def get_output_blocks(state: ScheduleState, block: BlockIdentity) -> list[BlockIdentity]:
    """The blocks inside a block, however deep, that write buffers which live on outside of the
    block around them."""
    around = state.block(block).block
    inside = (place for place in state.index.blocks.values() if around in place.parents)
    return [place.block.identity for place in inside if is_output_block(state, place)]


def _identities(places: Sequence[BlockPlace]) -> list[BlockIdentity]:
    return [place.block.identity for place in blocks_among(places)]


def _block_not_found(
    state: ScheduleState, name: str, function: str, places: Sequence[BlockPlace]
) -> NotFoundError:
    if places:
        return NotFoundError(
            f'There are {len(places)} blocks named "{name}" in function "{function}"',
            [place.realize for place in places],
            "give the blocks names of their own",
        )
    names = [p.block.name_hint for p in state.index.blocks.values() if p.function == function]
    return NotFoundError(
        f"Cannot find a block with the name: {name}, in function {function}",
        advice="the blocks there: " + ", ".join(f'"{n}"' for n in names),
        short="Cannot find a block with the specified name",
    )
