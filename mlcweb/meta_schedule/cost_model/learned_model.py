"""What cost models that learn have in common, and how well they rank programs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

from mlcweb.ir import structural_hash
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor, PerProgramFeature
from mlcweb.runtime.ndarray import NDArray

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate, RunnerResult
    from mlcweb.meta_schedule.tune_context import TuneContext


TIE = 0.02
"""Two times that differ by less than this share are the same."""

CLEAR = 0.1
"""Two times that differ by more than this share differ by more than noise."""


class Ranking(NamedTuple):
    """The pairwise accuracy of predictions: the share of pairs of programs in which the faster had
    the higher score. 0.5 is chance; NaN where there is no such pair.

    Attributes:
        clear: of the pairs whose times differ by more than noise.
        all: of all pairs whose times differ.
        clear_pairs: how many the first are.
        pairs: how many the second are.
    """

    clear: float
    all: float
    clear_pairs: int
    pairs: int


def together(rankings: Iterable[Ranking]) -> Ranking:
    """Several rankings as one, each pair counted once: scores of different models, or of one model
    at different times, are not compared with each other."""
    every_ranking = list(rankings)
    clear_pairs = sum(each.clear_pairs for each in every_ranking)
    pairs = sum(each.pairs for each in every_ranking)
    clear = sum(each.clear * each.clear_pairs for each in every_ranking if each.clear_pairs)
    every = sum(each.all * each.pairs for each in every_ranking if each.pairs)
    return Ranking(_share(clear, clear_pairs), _share(every, pairs), clear_pairs, pairs)


def rank(scores: Sequence[float], seconds: Sequence[float]) -> Ranking:
    """How well scores, the higher the faster, tell which of two programs takes longer; equal scores
    count a half."""
    import numpy as np

    one, other = np.triu_indices(len(seconds), 1)
    times, marks = np.array(seconds), np.array(scores)
    gaps = times[one] - times[other]
    shares = np.abs(gaps) / np.maximum(times[one], times[other])
    right = (1 - np.sign(gaps) * np.sign(marks[one] - marks[other])) / 2
    clear, apart = right[shares > CLEAR], right[shares > TIE]
    return Ranking(
        _share(float(clear.sum()), len(clear)), _share(float(apart.sum()), len(apart)),
        len(clear), len(apart),
    )  # fmt: skip


def _share(right: float, pairs: int) -> float:
    return right / pairs if pairs else float("nan")


MAX_SAMPLES = 1024
"""Samples of each task, at most: half are the fastest, half the latest."""

SLOWEST = -4.0
"""A score no lower than this is learnt: how much slower the slow are does not matter."""


@dataclass(slots=True)
class _Samples:
    """What is known of a task: features and seconds of what was measured, and how it had been
    ranked before."""

    rows: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ranking: Ranking = field(default_factory=lambda: together(()))
    model: Any = None

    def prune(self) -> None:
        if len(self.rows) <= MAX_SAMPLES:
            return
        half = MAX_SAMPLES // 2
        fastest = sorted(range(len(self.rows) - half), key=self.seconds.__getitem__)[:half]
        row_numbers = [*sorted(fastest), *range(len(self.rows) - half, len(self.rows))]
        self.rows = [self.rows[n] for n in row_numbers]
        self.seconds = [self.seconds[n] for n in row_numbers]


class FeatureGroup(NamedTuple):
    """The samples of one task.

    Attributes:
        group_hash: the structural hash of its program.
        features: a row for each.
        costs: their seconds, float64.
        min_cost: the least of those.
    """

    group_hash: str
    features: list[np.ndarray]
    costs: np.ndarray
    min_cost: float


def speeds(seconds: Sequence[float]) -> list[float]:
    """What is learnt of times: the logarithm to base 2 of the speed relative to the fastest."""
    best = min(seconds)
    return [max(SLOWEST, log2(best / time)) for time in seconds]


class LearnedModel(CostModel):
    """Learns, for each task, a function of the features; its target is the logarithm to base 2 of
    the speed relative to the fastest of the task. A task that nothing was measured of yet is judged
    by what was learnt of all others for targets of its kind.

    A program's time is its shortest batch: what else the machine does makes batches longer, never
    shorter.

    Args:
        extractor: describes candidates, or its name; by default a `PerProgramFeature`.
    """

    def __init__(self, extractor: FeatureExtractor | str | None = None) -> None:
        if isinstance(extractor, str):
            extractor = FeatureExtractor.create(extractor)
        self.extractor = PerProgramFeature() if extractor is None else extractor
        self._samples: dict[int, _Samples] = {}
        self._of_all: dict[int, Any] = {}

    @property
    def data(self) -> dict[str, FeatureGroup]:
        """What is learnt from, by the hashes of the tasks' programs."""
        import numpy as np

        groups = {}
        for task, samples in self._samples.items():
            key, costs = f"{task:#018x}", np.array(samples.seconds)
            groups[key] = FeatureGroup(key, list(samples.rows), costs, float(costs.min()))
        return groups

    @property
    def data_size(self) -> int:
        """How many samples there are."""
        return sum(len(samples.rows) for samples in self._samples.values())

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
            (candidate, min(result.run_secs))
            for candidate, result in zip(candidates, results, strict=True)
            if result.run_secs and min(result.run_secs) > 0  # no time at all says nothing
        ]
        if not pairs:
            return
        rows = self._rows(context, [candidate for candidate, _ in pairs])
        seconds = [time for _, time in pairs]
        samples = self._samples.setdefault(_task(context), _Samples())
        if samples.model is not None:
            ranking = rank(self._scores(samples.model, rows), seconds)
            samples.ranking = together((samples.ranking, ranking))
        samples.rows += rows
        samples.seconds += seconds
        samples.prune()
        samples.model = self._fitted([samples])
        self._of_all.clear()

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        import numpy as np

        if not self._samples or not candidates:
            return np.zeros(len(candidates))
        rows = self._rows(context, candidates)
        model = self._model_of(context, len(rows[0]))
        return np.zeros(len(rows)) if model is None else np.asarray(self._scores(model, rows))

    def _rows(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[np.ndarray]:
        """One row for each candidate. Where the extractor gives several, as those of TVM do for the
        stores of a program, it is their sum."""
        import numpy as np

        features = self.extractor.extract_from(context, candidates)
        arrays = [np.asarray(f.numpy() if isinstance(f, NDArray) else f) for f in features]
        return [each.sum(axis=0) if each.ndim > 1 else each for each in arrays]

    def ranking(self, context: TuneContext) -> Ranking:
        """How well the programs of a task were ranked before they were measured, batch by batch."""
        return self._samples.get(_task(context), _Samples()).ranking

    def save(self, path: str) -> None:
        """Write all samples to a file of NumPy arrays."""
        import numpy as np

        arrays: dict[str, Any] = {}
        for task, samples in self._samples.items():
            arrays[f"rows {task}"] = np.array(samples.rows)
            arrays[f"seconds {task}"] = np.array(samples.seconds)
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    def load(self, path: str) -> None:
        """Learn the samples that `save` wrote."""
        import numpy as np

        with np.load(path) as arrays:
            for name in arrays.files:
                kind, task = name.split()
                if kind == "rows":
                    seconds = [float(time) for time in arrays[f"seconds {task}"]]
                    samples = _Samples(list(arrays[name]), seconds)
                    samples.model = self._fitted([samples])
                    self._samples[int(task)] = samples
        self._of_all.clear()

    def _model_of(self, context: TuneContext, width: int) -> Any:
        """The model of a task; of one that nothing was measured of, that of all tasks whose rows
        are as wide: GPUs have other rows than processors."""
        own = self._samples.get(_task(context))
        if own is not None:
            return own.model
        if width not in self._of_all:
            alike = [each for each in self._samples.values() if len(each.rows[0]) == width]
            self._of_all[width] = self._fitted(alike) if alike else None
        return self._of_all[width]

    def _scores(self, model: Any, rows: Sequence[np.ndarray]) -> list[float]:
        import numpy as np

        return [float(score) for score in self.evaluate(model, np.array(rows))]

    def _fitted(self, tasks: Sequence[_Samples]) -> Any:
        import numpy as np

        rows = [row for samples in tasks for row in samples.rows]
        targets = [target for samples in tasks for target in speeds(samples.seconds)]
        return self.fit(np.array(rows), np.array(targets))


def _task(context: TuneContext) -> int:
    return 0 if context.mod is None else structural_hash(context.mod)
