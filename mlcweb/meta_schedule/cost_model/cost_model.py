"""The interface of cost models: which of many programs will be fast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
    from mlcweb.meta_schedule.tune_context import TuneContext


class CostModel(ABC):
    """Learns from measured programs, and gives others scores: the higher, the faster."""

    @abstractmethod
    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Learn what candidates of a task took."""

    @abstractmethod
    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        """Scores of candidates of a task, float64; comparable within the task."""

    def save(self, path: str) -> None:
        """Write what was learnt to a file."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved")

    def load(self, path: str) -> None:
        """Read what `save` wrote."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded")

    @staticmethod
    def create(kind: str = "numpy", **options: Any) -> CostModel:
        """A model by name: "numpy" (also by the name "mlp"), "xgb" or "random"."""
        from mlcweb.meta_schedule.cost_model import KINDS

        if kind not in KINDS:
            raise ValueError(f'Unknown cost model "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](**options)


PyCostModel = CostModel
"""What models of a program's own are subclasses of, in TVM."""
