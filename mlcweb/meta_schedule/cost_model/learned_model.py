"""What models that learn from features have in common: the samples of each task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.cost_model.metric import pairwise_accuracy
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy import MeasureCandidate, RunnerResult
    from mlcweb.meta_schedule.tune_context import TuneContext

MOST_SAMPLES = 2048
"""Of each task, so many samples are kept: the fastest half, and the latest."""

SLOWEST = -6.0
"""A score no lower than this is learnt: how much slower the slow are does not matter."""


@dataclass(slots=True)
class _Samples:
    rows: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def prune(self) -> None:
        if len(self.rows) <= MOST_SAMPLES:
            return
        half = MOST_SAMPLES // 2
        fastest = sorted(range(len(self.rows) - half), key=self.seconds.__getitem__)[:half]
        kept = [*sorted(fastest), *range(len(self.rows) - half, len(self.rows))]
        self.rows = [self.rows[n] for n in kept]
        self.seconds = [self.seconds[n] for n in kept]


class LearnedModel(CostModel):
    """Learns one function of the features for all tasks; its target is the logarithm of the speed
    relative to the fastest of the task.

    Attributes:
        accuracy: the pairwise accuracy of its predictions for each batch, made before the batch
            was learnt: NaN where it knew nothing yet.
    """

    def __init__(self, extractor: FeatureExtractor | None = None) -> None:
        self.extractor = extractor or FeatureExtractor()
        self.accuracy: list[float] = []
        self._samples: dict[int, _Samples] = {}
        self._model: Any = None

    @abstractmethod
    def fit(self, rows: np.ndarray, targets: np.ndarray) -> Any:
        """A model of targets (float64 of shape (rows,)) by features (rows, features)."""

    @abstractmethod
    def evaluate(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """What a model of `fit` gives rows."""

    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        pairs = [
            (candidate, sum(result.run_secs) / len(result.run_secs))
            for candidate, result in zip(candidates, results, strict=True)
            if result.run_secs
        ]
        if not pairs:
            return
        rows = self.extractor.extract_from(context, [candidate for candidate, _ in pairs])
        seconds = [time for _, time in pairs]
        if len(pairs) > 1:
            scores = self._scores(rows) if self._model is not None else [0.0] * len(rows)
            accuracy = pairwise_accuracy(scores, seconds)
            self.accuracy.append(accuracy if self._model is not None else float("nan"))
        samples = self._samples.setdefault(_task(context), _Samples())
        samples.rows += rows
        samples.seconds += seconds
        samples.prune()
        self._learn()

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        import numpy as np

        if self._model is None or not candidates:
            return np.zeros(len(candidates))
        return np.asarray(self._scores(self.extractor.extract_from(context, candidates)))

    def _scores(self, rows: Sequence[np.ndarray]) -> list[float]:
        import numpy as np

        return [float(score) for score in self.evaluate(self._model, np.array(rows))]

    def _learn(self) -> None:
        import numpy as np

        rows, targets = [], []
        for samples in self._samples.values():
            best = min(samples.seconds)
            rows += samples.rows
            targets += [max(SLOWEST, np.log2(best / seconds)) for seconds in samples.seconds]
        self._model = self.fit(np.array(rows), np.array(targets))


def _task(context: TuneContext) -> int:
    return structural_hash(context.mod)
