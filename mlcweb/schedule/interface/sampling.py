"""Random choices, kept in the trace as decisions."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.schedule import sampling
from mlcweb.schedule.compute_locations import sample_location
from mlcweb.schedule.instruction import (
    BlockRV,
    ExprRV,
    InstructionKind,
    LoopRV,
    register_kind,
)  # fmt: skip
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.tir.arithmetic import constant_value

for _kind in (
    InstructionKind(
        "SampleCategorical", "sample_categorical", (), ("candidates", "probs"), sampling=True
    ),
    InstructionKind(
        "SamplePerfectTile",
        "sample_perfect_tile",
        ("loop",),
        ("n", "max_innermost_factor"),
        sampling=True,
    ),
    InstructionKind(
        "SamplePartitionedTile",
        "sample_partitioned_tile",
        ("loop",),
        ("n", "partition_pos", "innerpart_factor"),
        sampling=True,
    ),
    InstructionKind("SampleComputeLocation", "sample_compute_location", ("block",), sampling=True),
):
    register_kind(_kind)


class SamplingMethods(QueryMethods):
    """Random choices, kept in the trace as decisions."""

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates, drawn with the given probabilities."""
        candidates = [int(constant_value(c) or 0) for c in candidates]
        probs = [float(constant_value(p) or 0.0) for p in probs]
        chosen = self._guard("sample-categorical", lambda: sampling.categorical(
            self._random, candidates, probs, decision
        ))  # fmt: skip
        rv = self._new_integer(candidates[chosen])
        self._record("SampleCategorical", (), (candidates, probs), (rv,), chosen)
        return rv

    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` random factors whose product is the extent of the loop."""
        factors = self._guard("sample-perfect-tile", lambda: sampling.perfect_tile(
            self._random, self._loop_place(loop), n, max_innermost_factor, decision
        ))  # fmt: skip
        rvs = [self._new_integer(factor) for factor in factors]
        self._record("SamplePerfectTile", (loop,), (n, max_innermost_factor), rvs, factors)
        return list(rvs)

    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` random factors whose product is the extent of the loop; those from `partition_pos`
        on multiply to a multiple of `innerpart_factor`."""
        factors = self._guard("sample-partitioned-tile", lambda: sampling.partitioned_tile(
            self._random, self._loop_place(loop), n, partition_pos, innerpart_factor, decision
        ))  # fmt: skip
        rvs = [self._new_integer(factor) for factor in factors]
        attrs = (n, partition_pos, innerpart_factor)
        self._record("SamplePartitionedTile", (loop,), attrs, rvs, factors)
        return list(rvs)

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A random loop to compute a block at, for `compute_at`; its decision counts the loops of
        the consumers from the outermost. Decision -1 leaves the block where it is, -2 inlines it.
        """
        block = self._as_block(block)
        location, chosen = self._guard("sample-compute-location", lambda: sample_location(
            self._random, self._state, self._block(block), decision
        ))  # fmt: skip
        rv = LoopRV()
        self._table[rv] = location
        self._record("SampleComputeLocation", (block,), (), (rv,), chosen)
        return rv
