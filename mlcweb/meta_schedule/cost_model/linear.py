"""Linear regression that little data cannot lead astray: ridge regression (Hoerl and Kennard,
Technometrics 12(1), 1970) with a loss that counts rows above and below the prediction differently
(Newey and Powell, "Asymmetric Least Squares Estimation and Testing", Econometrica 55(4), 1987)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

FARTHEST = 4.0
"""Standard deviations from the mean at which features are clipped."""

REGULARISATION = 50.0
"""By default, the weight of the prior that features do not matter, in rows."""

_STEPS = 8


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum of features, each by its mean and deviation, and a constant."""

    features: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    weights: np.ndarray

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """The values of rows: float64 of shape (rows,) from float64 of shape (rows, features)."""
        return self._standardised(rows) @ self.weights

    def _standardised(self, rows: np.ndarray) -> np.ndarray:
        import numpy as np

        apart = (rows[:, self.features] - self.means) / self.deviations
        return np.c_[np.clip(apart, -FARTHEST, FARTHEST), np.ones(len(rows))]


def fit(
    rows: np.ndarray,
    targets: np.ndarray,
    *,
    regularisation: float = REGULARISATION,
    below: float = 1.0,
) -> Linear:
    """The weights that give the targets of rows best.

    Args:
        rows: float64 of shape (rows, features), without NaN.
        targets: float64 of shape (rows,).
        regularisation: pulls weights to zero.
        below: how much a target below its prediction counts, as a share of one above.
    """
    import numpy as np

    deviations = rows.std(axis=0)
    used = np.flatnonzero(deviations > 1e-9)
    model = Linear(used, rows[:, used].mean(axis=0), deviations[used], np.zeros(len(used) + 1))
    columns = model._standardised(rows)
    penalty = regularisation * np.eye(columns.shape[1])
    penalty[-1, -1] = 1e-9
    counts = np.ones(len(targets))
    weights = model.weights
    for _ in range(_STEPS):
        weighted = columns * counts[:, None]
        weights = np.linalg.solve(
            weighted.T @ columns + counts.mean() * penalty, weighted.T @ targets
        )
        before, counts = counts, np.where(targets < columns @ weights, below, 1.0)
        if (before == counts).all():
            break
    return Linear(used, model.means, model.deviations, weights)
