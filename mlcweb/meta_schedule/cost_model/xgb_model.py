"""A cost model by xgboost, where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.meta_schedule.cost_model.learned_model import LearnedModel
from mlcweb.meta_schedule.feature_extractor import FeatureExtractor

if TYPE_CHECKING:
    import numpy as np


class XGBModel(LearnedModel):
    """Boosted trees of xgboost, fitted to the rates by squared error.

    Args:
        num_tuning_cores: threads that learn.

    Raises:
        ImportError: xgboost is not installed.
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | None = None,
        num_tuning_cores: int | None = None,
        trees: int = 60,
        tree_method: str = "auto",
    ) -> None:
        super().__init__(extractor)
        self._xgboost = _xgboost()
        self._trees = trees
        self._options = {
            "objective": "reg:squarederror",
            "max_depth": 5,
            "eta": 0.2,
            "min_child_weight": 1,
            "tree_method": tree_method,
            "nthread": num_tuning_cores or 1,
            "seed": 43,
            "verbosity": 0,
        }

    def fit(self, rows: np.ndarray, targets: np.ndarray) -> Any:
        data = self._xgboost.DMatrix(rows, label=targets)
        return self._xgboost.train(self._options, data, num_boost_round=self._trees)

    def evaluate(self, model: Any, rows: np.ndarray) -> np.ndarray:
        return model.predict(self._xgboost.DMatrix(rows))


def _xgboost() -> Any:
    try:
        import xgboost  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            'cost_model="xgb" needs xgboost: pip install "mlcweb[xgboost]"; '
            'the model "numpy" needs nothing'
        ) from None
    return xgboost
