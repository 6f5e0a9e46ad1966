"""What stands where: blocks, loops, and who makes and uses what."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.schedule.errors import NotFoundError
from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.base import ScheduleBase
from mlcweb.schedule.primitives.cache import accessed_buffer
from mlcweb.schedule.scopes import is_output_block, scope_at
from mlcweb.schedule.state import BlockPlace, ScheduleState, loops_above
from mlcweb.tir.buffer import Buffer

for _kind in (
    InstructionKind(
        "GetBlock", "get_block", (), ("name", "func_name"), pure=True, aliases=("GetSBlock",)
    ),
    InstructionKind("GetLoops", "get_loops", ("block",), pure=True),
    InstructionKind(
        "GetChildBlocks", "get_child_blocks", ("block_or_loop",), positional=True, pure=True
    ),
    InstructionKind("GetProducers", "get_producers", ("block",), pure=True),
    InstructionKind("GetConsumers", "get_consumers", ("block",), pure=True),
    InstructionKind("GetOutputBlocks", "get_output_blocks", ("block",), pure=True),
):
    register_kind(_kind)


class QueryMethods(ScheduleBase):
    """What stands where: blocks, loops, and who makes and uses what."""

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name in a function ("root" is the function's root block)."""
        function = self._function_name(func_name)
        places = self._state.blocks_named(name, function)
        if len(places) != 1:
            self._guard("get-block", lambda: _block_not_found(self._state, name, function, places))
        rv = self._new_block(places[0].block.identity)
        self._record("GetBlock", (), (name, function), (rv,))
        return rv

    get_sblock = get_block

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block up to the next block outside, outermost first."""
        block = self._as_block(block)
        found = loops_above(self._block_place(block))
        rvs = [self._new_loop(loop.loop_var) for loop in found]
        self._record("GetLoops", (block,), (), rvs)
        return rvs

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV | str) -> list[BlockRV]:
        """The outermost blocks below a block or loop."""
        target = self._as_block_or_loop(block_or_loop)
        return self._blocks("GetChildBlocks", target, self._state.child_blocks(self._place(target)))

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what a block reads."""
        block = self._as_block(block)
        place = self._block_place(block)
        scope = scope_at(self._state, self._state.scope_of(place))
        return self._blocks("GetProducers", block, scope.producers(place))

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what a block writes."""
        block = self._as_block(block)
        place = self._block_place(block)
        scope = scope_at(self._state, self._state.scope_of(place))
        return self._blocks("GetConsumers", block, scope.consumers(place))

    def get_output_blocks(
        self, scope_block: BlockRV | str | None = None, *, block: BlockRV | str | None = None
    ) -> list[BlockRV]:
        """The blocks directly inside a block that write buffers living on outside of it.

        `block` is the same argument under the name that printed traces give it.
        """
        block = self._as_block(block if scope_block is None else scope_block)
        scope = scope_at(self._state, self._block_place(block))
        found = [child for child in scope.children if is_output_block(self._state, child)]
        return self._blocks("GetOutputBlocks", block, found)

    def _as_block(self, block: BlockRV | str | None) -> BlockRV:
        if isinstance(block, str):
            return self.get_block(block)
        if isinstance(block, BlockRV):
            return block
        raise TypeError(
            f"A block is needed: what sch.get_block returns, or a name; not {_describe(block)}"
        )

    def _as_block_or_loop(self, target: BlockRV | LoopRV | str) -> BlockRV | LoopRV:
        return target if isinstance(target, LoopRV) else self._as_block(target)

    def _region_index(
        self, primitive: str, block: BlockRV, buffer: int | str | Buffer, access: str
    ) -> int:
        """Which read or write region of a block is the one of a buffer, given also by name."""
        if isinstance(buffer, int):
            return buffer
        place = self._block_place(block)
        found = self._guard(primitive, lambda: accessed_buffer(place, buffer, access))
        regions = place.block.reads if access == "read" else place.block.writes
        return next(n for n, region in enumerate(regions) if region.buffer is found)

    def _blocks(
        self, kind: str, target: BlockRV | LoopRV, places: Sequence[BlockPlace]
    ) -> list[BlockRV]:
        rvs = [self._new_block(place.block.identity) for place in places]
        self._record(kind, (target,), (), rvs)
        return rvs


def _describe(value: object) -> str:
    return "a loop" if isinstance(value, LoopRV) else repr(value)


def _block_not_found(
    state: ScheduleState, name: str, function: str, places: Sequence[BlockPlace]
) -> None:
    if places:
        raise NotFoundError(
            f'There are {len(places)} blocks named "{name}" in function "{function}"',
            [place.realize for place in places],
            "give the blocks names of their own",
        )
    names = [p.block.name_hint for p in state.index.blocks.values() if p.function == function]
    raise NotFoundError(
        f'Cannot find a block with the name "{name}" in function "{function}"',
        advice="the blocks there: " + ", ".join(f'"{n}"' for n in names),
    )
