"""Blocks that compute tiles, and their replacement by tensor intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import blockize, tensorize
from mlcweb.tir.tensor_intrin import TensorIntrin, name_of

for _kind in (
    InstructionKind("Blockize", "blockize", ("target",), ("preserve_unit_iters",)),
    InstructionKind(
        "Tensorize", "tensorize", ("block_or_loop",), ("tensor_intrin", "preserve_unit_iters")
    ),
):
    register_kind(_kind)


class TensorizationMethods(QueryMethods):
    """Blocks that compute tiles, and their replacement by tensor intrinsics."""

    def blockize(
        self, target: LoopRV | Sequence[BlockRV | str], preserve_unit_iters: bool = True
    ) -> BlockRV:
        """Make a block of the nest at a loop, or of blocks side by side. See
        `primitives.blockize`."""
        keep = bool(preserve_unit_iters)
        if isinstance(target, LoopRV):
            loop = target
            made = self._apply("blockize", lambda state: blockize.blockize(
                state, self._loop(loop), keep
            ))  # fmt: skip
            recorded: LoopRV | list[BlockRV] = loop
        else:
            blocks = [self._as_block(block) for block in target]
            made = self._apply("blockize", lambda state: blockize.blockize_blocks(
                state, [self._block(block) for block in blocks], keep
            ))  # fmt: skip
            recorded = blocks
        rv = self._new_block(made)
        self._record("Blockize", (recorded,), (keep,), (rv,))
        return rv

    def tensorize(
        self,
        block_or_loop: BlockRV | LoopRV | str,
        tensor_intrin: str | TensorIntrin,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Compute a block, or the nest at a loop, by a registered tensor intrinsic. See
        `primitives.tensorize`."""
        target = self._as_block_or_loop(block_or_loop)
        name = name_of(tensor_intrin)
        keep = bool(preserve_unit_iters)
        if isinstance(target, LoopRV):
            self._change("tensorize", lambda state: tensorize.tensorize_loop(
                state, self._loop(target), name, keep
            ))  # fmt: skip
        else:
            self._change("tensorize", lambda state: tensorize.tensorize_block(
                state, self._block(target), name
            ))  # fmt: skip
        self._record("Tensorize", (target,), (name, keep))
