"""Where and how buffers lie in memory."""

from __future__ import annotations

from mlcweb.schedule.instruction import BlockRV, InstructionKind, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import rolling_buffer, storage
from mlcweb.tir.buffer import Buffer

for _kind in (
    InstructionKind("SetScope", "set_scope", ("block",), ("buffer_index", "storage_scope")),
    InstructionKind(
        "StorageAlign", "storage_align", ("block",), ("buffer_index", "axis", "factor", "offset")
    ),
    InstructionKind("RollingBuffer", "rolling_buffer", ("block",), ("write_buffer_index",)),
):
    register_kind(_kind)


class StorageMethods(QueryMethods):
    """Where and how buffers lie in memory."""

    def set_scope(
        self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str
    ) -> None:
        """Move a buffer that a block writes to another storage scope. See `primitives.storage`."""
        block = self._as_block(block)
        index = self._region_index("set-scope", block, buffer_index, "write")
        self._change(
            "set-scope",
            lambda state: storage.set_scope(state, self._block(block), index, storage_scope),
        )
        self._record("SetScope", (block,), (index, storage_scope))

    def storage_align(
        self,
        block: BlockRV | str,
        buffer_index: int | str | Buffer,
        axis: int,
        factor: int,
        offset: int,
    ) -> None:
        """Ask for aligned rows of a buffer that a block writes. See `primitives.storage`."""
        block = self._as_block(block)
        index = self._region_index("storage-align", block, buffer_index, "write")
        self._change(
            "storage-align",
            lambda state: storage.storage_align(
                state, self._block(block), index, axis, factor, offset
            ),
        )
        self._record("StorageAlign", (block,), (index, axis, factor, offset))

    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int) -> None:
        """Keep what is still needed of a buffer, in a ring. See `primitives.rolling_buffer`."""
        block = self._as_block(block)
        index = self._region_index("rolling-buffer", block, write_buffer_index, "write")
        self._change("rolling-buffer", lambda state: rolling_buffer.rolling_buffer(
            state, self._block(block), index
        ))  # fmt: skip
        self._record("RollingBuffer", (block,), (index,))
