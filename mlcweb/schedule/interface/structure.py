"""The structure of a program: its loops side by side, block iterators, element types."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import (
    block_iterators,
    element_type,
    loop_structure,
)

for _kind in (
    InstructionKind("ReorderBlockIterVar", "reorder_block_iter_var", ("block", "new_order")),
    InstructionKind("AddUnitLoop", "add_unit_loop", ("block_or_loop",)),
    InstructionKind("Merge", "merge", ("*loops",), positional=True),
    InstructionKind("UnsafeSetDType", "unsafe_set_dtype", ("block",), ("buffer_index", "dtype")),
):
    register_kind(_kind)


class StructureMethods(QueryMethods):
    """The structure of a program: its loops side by side, block iterators, element types."""

    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """List a block's iterators in a new order. See `primitives.block_iterators`."""
        block = self._as_block(block)
        order = [self._integer(position) for position in new_order]
        self._change(
            "reorder_block_iter_var",
            lambda state: block_iterators.reorder_block_iter_var(state, self._block(block), order),
        )
        self._record("ReorderBlockIterVar", (block, order))

    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV | str) -> LoopRV:
        """Put a loop of one iteration around a block or loop. See `primitives.loop_structure`."""
        target = self._as_block_or_loop(block_or_loop)
        variable = self._apply("add-unit-loop", lambda state: loop_structure.add_unit_loop(
            state, self._place(target)
        ))  # fmt: skip
        rv = self._new_loop(variable)
        self._record("AddUnitLoop", (target,), (), (rv,))
        return rv

    def merge(self, *loops: LoopRV) -> LoopRV:
        """Run the bodies of loops of one shape in one loop. See `primitives.loop_structure`."""
        variable = self._apply("merge", lambda state: loop_structure.merge(
            state, [self._loop(loop) for loop in loops]
        ))  # fmt: skip
        rv = self._new_loop(variable)
        self._record("Merge", loops, (), (rv,))
        return rv

    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int, dtype: str) -> None:
        """Change the element type of a buffer that a block writes, casting at each access. See
        `primitives.element_type`."""
        block = self._as_block(block)
        self._change("set-dtype", lambda state: element_type.unsafe_set_dtype(
            state, self._block(block), buffer_index, dtype
        ))  # fmt: skip
        self._record("UnsafeSetDType", (block,), (buffer_index, dtype))
