"""Makes rows of numbers of scheduled programs, for cost models that learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.cost_model import loop_features, thread_features
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.runtime.vector_unit import VectorUnit, vector_unit

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate
    from mlcweb.meta_schedule.task import Task

MAX_ROWS = 1024
"""So many rows are kept for programs that are asked about again."""


class FeatureExtractor:
    """Makes one row of numbers of each candidate: for a GPU those of `thread_features`, for
    processors those of `loop_features`. A search asks about the same programs again and again as it
    learns; their rows are kept."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, VectorUnit | None], np.ndarray] = {}

    def extract_from(
        self, context: Task, candidates: Sequence[MeasureCandidate]
    ) -> list[np.ndarray]:
        """A float64 array of shape (len(NAMES),) for each candidate, by the names of its kind."""
        unit = None if _has_threads(context.target) else vector_unit(context.target)
        features: Callable[[IRModule], np.ndarray] = thread_features.features
        if unit is not None:
            features = partial(loop_features.features, unit=unit)
        return [self._row(candidate, unit, features) for candidate in candidates]

    def _row(
        self,
        candidate: MeasureCandidate,
        unit: VectorUnit | None,
        features: Callable[[IRModule], np.ndarray],
    ) -> np.ndarray:
        key = candidate.shash, unit
        row = self._rows.get(key)
        if row is None:
            while len(self._rows) >= MAX_ROWS:
                del self._rows[next(iter(self._rows))]
            row = self._rows[key] = features(candidate.sch.mod)
        return row


PyFeatureExtractor = FeatureExtractor
"""What extractors of a program's own are subclasses of, in TVM."""


def _has_threads(target: Target | None) -> bool:
    return target is not None and target.kind.name in DEVICE_KINDS
