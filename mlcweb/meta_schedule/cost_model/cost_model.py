"""The interface of cost models, and the one that guesses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult
    from mlcweb.meta_schedule.tune_context import TuneContext


KINDS: dict[str, type[CostModel]] = {}
"""The models by the names that `CostModel.create` takes."""


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
        if kind not in KINDS:
            raise ValueError(f'Unknown cost model "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](**options)


PyCostModel = CostModel
"""What models of a program's own are subclasses of, in TVM."""


class RandomModel(CostModel):
    """Scores by chance, from 0 to `max_range`; the same for the same seed."""

    def __init__(
        self, *, seed: int | None = None, path: str | None = None, max_range: float = 1.0
    ) -> None:
        import numpy as np

        self.max_range = max_range
        self._random = np.random.default_rng(seed)
        if path is not None:
            self.load(path)

    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Nothing is learnt."""

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        return self._random.random(len(candidates)) * self.max_range

    def save(self, path: str) -> None:
        """Write the state of the generator of random numbers, as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._random.bit_generator.state, file)

    def load(self, path: str) -> None:
        """Read what `save` wrote."""
        with open(path, encoding="utf-8") as file:
            self._random.bit_generator.state = json.load(file)
