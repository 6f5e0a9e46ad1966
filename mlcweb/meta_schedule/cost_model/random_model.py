"""A model that knows nothing: what others must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlcweb.meta_schedule.cost_model.cost_model import CostModel

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
    from mlcweb.meta_schedule.tune_context import TuneContext


class RandomModel(CostModel):
    """Scores by chance, from 0 to 1; the same for the same seed."""

    def __init__(self, *, seed: int | None = None) -> None:
        import numpy as np

        self._random = np.random.default_rng(seed)

    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Nothing is learnt."""

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        return self._random.random(len(candidates))
