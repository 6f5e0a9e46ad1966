"""Transformations of reductions."""

from __future__ import annotations

from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import (
    reduction,
    reduction_epilogue,
    rfactor,
)

for _kind in (
    InstructionKind("DecomposeReduction", "decompose_reduction", ("block", "loop")),
    InstructionKind("RFactor", "rfactor", ("loop",), ("factor_axis",)),
    InstructionKind(
        "FuseReductionEpilogue", "fuse_reduction_epilogue", ("reduction_block", "epilogue_block")
    ),
):
    register_kind(_kind)


class ReductionMethods(QueryMethods):
    """Transformations of reductions."""

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Split the init off a reduction block. See `primitives.reduction`."""
        block = self._as_block(block)
        made = self._apply("decompose-reduction", lambda state: reduction.decompose_reduction(
            state, self._block(block), self._loop(loop)
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record("DecomposeReduction", (block, loop), (), (rv,))
        return rv

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Compute the parts of a reduction that the iterations of a loop make, in a block of their
        own before it. See `primitives.rfactor`."""
        made = self._apply("rfactor", lambda state: rfactor.rfactor(
            state, self._loop(loop), factor_axis
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record("RFactor", (loop,), (factor_axis,), (rv,))
        return rv

    def fuse_reduction_epilogue(
        self, reduction_block: BlockRV | str, epilogue_block: BlockRV | str
    ) -> None:
        """Start a sum from the term that another block would add to it. See
        `primitives.reduction_epilogue`."""
        first, second = self._as_block(reduction_block), self._as_block(epilogue_block)
        self._change(
            "fuse-reduction-epilogue",
            lambda state: reduction_epilogue.fuse_reduction_epilogue(
                state, self._block(first), self._block(second)
            ),
        )
        self._record("FuseReductionEpilogue", (first, second))
