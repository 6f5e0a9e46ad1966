"""The cost models that learn: of boosted trees in NumPy, and of XGBoost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.cost_model.learned_model import LearnedModel
from mlcweb.meta_schedule.cost_model.regression import fit_linear, fit_trees
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor

if TYPE_CHECKING:
    import numpy as np

    from mlcweb.meta_schedule.search_strategy.search_strategy import MeasureCandidate
    from mlcweb.meta_schedule.tune_context import TuneContext


BELOW = 0.15
"""How much a program counts that was slower than predicted, as a share of one that was faster: the
former may have been disturbed."""


class NumPyModel(LearnedModel):
    """A linear model, which a dozen programs are enough for, and boosted trees for what it cannot
    say, which take over as more is measured. Both are made anew after each batch.

    `benchmarks/tuning/ranking.py` shows what each part brings. Of 234 layer normalizations for LLVM
    a model of 32 ranks 93 % of the pairs that differ by a tenth right, 90 % without trees, 82 % by
    TVM's features; where a quarter of the 32 was disturbed, 82 %, and 74 % where those that were
    slower than predicted count as much as others. Of 210 products of 128 x 128: 97 %, 96 %, 94 %;
    97 % and 91 %.

    Args:
        extractor: see `LearnedModel`.
    """

    def __init__(self, *, extractor: FeatureExtractor | str | None = None) -> None:
        super().__init__(extractor)

    def fit(self, rows: np.ndarray, targets: np.ndarray) -> Any:
        linear = fit_linear(rows, targets, below=BELOW)
        left = targets - linear.predict(rows)
        return linear, fit_trees(rows, left, trees=30, rate=0.25, below=BELOW)

    def evaluate(self, model: Any, rows: np.ndarray) -> np.ndarray:
        linear, trees = model
        return linear.predict(rows) + trees.predict(rows)


class XGBModel(LearnedModel):
    """Boosted trees of xgboost, on top of the linear model that `NumPyModel` begins with, too.

    Args:
        extractor: see `LearnedModel`.
        num_warmup_samples: programs that are measured before it tells them apart.
        early_stopping_rounds, verbose_eval, average_peak_n, adaptive_training: TVM's, which change
            nothing: a few small trees are learnt anew after each batch.
        num_tuning_cores: threads that learn.
        trees: how many.
        tree_method: how xgboost looks for splits.

    Raises:
        ImportError: xgboost is not installed.
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | str | None = None,
        num_warmup_samples: int = 0,
        early_stopping_rounds: int = 50,
        verbose_eval: int = 25,
        average_peak_n: int = 32,
        adaptive_training: bool = True,
        num_tuning_cores: int | None = None,
        trees: int = 60,
        tree_method: str | None = None,
    ) -> None:
        super().__init__(extractor)
        self._xgboost = _xgboost()
        self.num_warmup_samples = num_warmup_samples
        self._trees = trees
        self._options = {
            "max_depth": 3,
            "eta": 0.1,
            "lambda": 2.0,
            "min_child_weight": 1,
            "base_score": 0.0,
            "tree_method": tree_method or "auto",
            "nthread": num_tuning_cores or 1,
            "seed": 43,
            "verbosity": 0,
        }

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        import numpy as np

        if self.data_size < self.num_warmup_samples:
            return np.zeros(len(candidates))
        return super().predict(context, candidates)

    def fit(self, rows: np.ndarray, targets: np.ndarray) -> Any:
        first = fit_linear(rows, targets, below=BELOW)
        data = self._xgboost.DMatrix(rows, label=targets - first.predict(rows))
        trees = self._xgboost.train(
            self._options, data, num_boost_round=self._trees, obj=self._objective
        )
        return first, trees

    def evaluate(self, model: Any, rows: np.ndarray) -> np.ndarray:
        first, trees = model
        return first.predict(rows) + trees.predict(self._xgboost.DMatrix(rows))

    def _objective(self, predictions: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and curvature of the squared error, in which rows below the prediction count
        less."""
        import numpy as np

        apart = predictions - data.get_label()
        counts = np.where(apart > 0, BELOW, 1.0)
        return counts * apart, counts


def _xgboost() -> Any:
    try:
        import xgboost  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            'cost_model="xgb" needs xgboost: pip install "mlcweb[xgboost]"; '
            'the model "numpy" needs nothing'
        ) from None
    return xgboost
