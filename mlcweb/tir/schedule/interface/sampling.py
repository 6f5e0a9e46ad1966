"""Random choices, kept in the trace as decisions."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.schedule import sampling
from mlcweb.tir.schedule.instruction import ExprRV, InstructionKind, LoopRV, register_kind
from mlcweb.tir.schedule.interface.base import ScheduleBase

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
):
    register_kind(_kind)


class SamplingMethods(ScheduleBase):
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
