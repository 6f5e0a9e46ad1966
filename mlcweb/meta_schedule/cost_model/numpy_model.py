"""The default cost model: boosted trees of our own, which need NumPy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.cost_model.boosted_trees import fit
from mlcweb.meta_schedule.cost_model.learned_model import LearnedModel
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor

if TYPE_CHECKING:
    import numpy as np


class NumPyModel(LearnedModel):
    """Boosted trees, grown anew after each batch.

    Args:
        trees: how many.
        depth: splits from a tree's root to a leaf.
        rate: the share of what is left that a tree corrects.
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | None = None,
        trees: int = 60,
        depth: int = 3,
        rate: float = 0.15,
    ) -> None:
        super().__init__(extractor)
        self.options: dict[str, Any] = {"trees": trees, "depth": depth, "rate": rate}

    def fit(self, rows: np.ndarray, targets: np.ndarray) -> Any:
        return fit(rows, targets, **self.options)

    def evaluate(self, model: Any, rows: np.ndarray) -> np.ndarray:
        return model.predict(rows)
