"""The default cost model, of our own, which needs NumPy alone: a linear model, and boosted trees
for what that leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.cost_model import boosted_trees, linear
from mlcweb.meta_schedule.cost_model.learned_model import LearnedModel
from mlcweb.meta_schedule.cost_model.loop_features import FeatureExtractor

if TYPE_CHECKING:
    import numpy as np


BELOW = 0.15
"""How much a program counts that was slower than predicted, as a share of one that was faster."""


@dataclass(frozen=True, slots=True)
class _Sum:
    linear: linear.Linear
    trees: boosted_trees.BoostedTrees


class NumPyModel(LearnedModel):
    """A linear model, which a dozen programs are enough for, and boosted trees for what it cannot
    say, which take over as more is measured. Both are made anew after each batch.

    Args:
        trees: how many.
        depth: splits from a tree's root to a leaf.
        rate: the share of what is left that a tree corrects.
        regularisation: pulls the weights of the linear model to zero.
        below: how much a program that was slower than predicted counts, as a share of one that was
            faster: the former may have been disturbed.
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | None = None,
        trees: int = 30,
        depth: int = 2,
        rate: float = 0.25,
        regularisation: float = linear.REGULARISATION,
        below: float = BELOW,
    ) -> None:
        super().__init__(extractor)
        self.below = below
        self.regularisation = regularisation
        self.options: dict[str, Any] = {"trees": trees, "depth": depth, "rate": rate}

    def fit(self, rows: np.ndarray, targets: np.ndarray) -> Any:
        first = linear.fit(rows, targets, regularisation=self.regularisation, below=self.below)
        left = targets - first.predict(rows)
        return _Sum(first, boosted_trees.fit(rows, left, below=self.below, **self.options))

    def evaluate(self, model: Any, rows: np.ndarray) -> np.ndarray:
        return model.linear.predict(rows) + model.trees.predict(rows)
