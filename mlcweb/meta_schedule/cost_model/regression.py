"""Regression for a few thousand rows, in NumPy, that counts rows above and below the prediction
differently (Newey and Powell, "Asymmetric Least Squares Estimation and Testing", Econometrica
55(4), 1987).

A linear model is ridge regression (Hoerl and Kennard, Technometrics 12(1), 1970), which little data
cannot lead astray. Gradient-boosted trees (Friedman, "Greedy Function Approximation: A Gradient
Boosting Machine", Annals of Statistics 29(5), 2001) say what it cannot; features are put into bins
first, so that a split costs a histogram and no sorting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

FARTHEST = 4.0
"""Standard deviations from the mean at which features of the linear model are clipped."""

PRIOR_ROWS = 50.0
"""By default, the weight of the prior that features do not matter to the linear model, in rows."""

_STEPS = 8

BINS = 32
"""Bins of a feature; it is split between two of them."""

REGULARISATION = 2.0
"""Pulls leaves to zero, as this many rows with nothing left would."""

LEAST = 2
"""Rows on either side of a split."""


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


def fit_linear(
    rows: np.ndarray,
    targets: np.ndarray,
    *,
    regularisation: float = PRIOR_ROWS,
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


@dataclass(frozen=True, slots=True)
class _Tree:
    """A complete binary tree: node n has the children 2n+1 and 2n+2. A row goes to the second where
    its feature is above the threshold."""

    features: np.ndarray
    thresholds: np.ndarray
    leaves: np.ndarray


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A sum of trees, over a constant."""

    mean: float
    trees: tuple[_Tree, ...]
    depth: int

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """The values of rows: float64 of shape (rows,) from float64 of shape (rows, features)."""
        import numpy as np

        total = np.full(len(rows), self.mean)
        numbers = np.arange(len(rows))
        for tree in self.trees:
            place = np.zeros(len(rows), dtype=np.intp)
            for _ in range(self.depth):
                above = rows[numbers, tree.features[place]] > tree.thresholds[place]
                place = 2 * place + 1 + above
            total += tree.leaves[place - (2**self.depth - 1)]
        return total


def fit_trees(
    rows: np.ndarray,
    targets: np.ndarray,
    *,
    trees: int = 60,
    depth: int = 2,
    rate: float = 0.1,
    below: float = 1.0,
) -> BoostedTrees:
    """Trees that together give the targets of rows, by least squares.

    Args:
        rows, targets, below: as of `fit_linear`.
        rate: the share of what is left that a tree corrects.
    """
    import numpy as np

    mean = float(targets.mean())
    bins = _Bins.of(rows)
    if not len(bins.features):
        return BoostedTrees(mean, (), depth)
    left = targets - mean
    grown = []
    for _ in range(trees):
        tree, values = _grow(bins, np.where(left < 0, below * left, left), depth)
        left = left - rate * values
        grown.append(_Tree(tree.features, tree.thresholds, rate * tree.leaves))
        if float(left @ left) < 1e-12:
            break
    return BoostedTrees(mean, tuple(grown), depth)


@dataclass(frozen=True, slots=True)
class _Bins:
    """The features that vary, in bins: `codes` (rows, features) tells each value's bin, counted on
    from feature to feature, and `edges` (features, BINS - 1) where a bin ends."""

    features: np.ndarray
    codes: np.ndarray
    edges: np.ndarray

    @staticmethod
    def of(rows: np.ndarray) -> _Bins:
        """The bins of rows: a feature's values, or as many quantiles of them as there are bins."""
        import numpy as np

        varying = np.flatnonzero(rows.max(axis=0) > rows.min(axis=0))
        codes = np.empty((len(rows), len(varying)), dtype=np.intp)
        edges = np.full((len(varying), BINS - 1), np.inf)
        for number, feature in enumerate(varying):
            values = np.unique(rows[:, feature])
            middles = (values[1:] + values[:-1]) / 2
            if len(middles) >= BINS:
                chosen = np.linspace(0, len(middles) - 1, BINS - 1).astype(np.intp)
                middles = middles[chosen]
            edges[number, : len(middles)] = middles
            codes[:, number] = np.searchsorted(middles, rows[:, feature]) + number * BINS
        return _Bins(varying, codes, edges)


def _grow(bins: _Bins, left: np.ndarray, depth: int) -> tuple[_Tree, np.ndarray]:
    """One tree, and its value for each row."""
    import numpy as np

    inner = 2**depth - 1
    features = np.zeros(inner, dtype=np.intp)
    thresholds = np.full(inner, np.inf)
    groups = [np.arange(len(left))]
    for node in range(inner):
        group = groups[node]
        split = _best_split(bins.codes[group], left[group])
        if split is None:
            groups += [group, group[:0]]
            continue
        number, edge = split
        features[node], thresholds[node] = bins.features[number], bins.edges[number, edge]
        above = bins.codes[group, number] > number * BINS + edge
        groups += [group[~above], group[above]]
    leaves = np.zeros(2**depth)
    values = np.zeros(len(left))
    for leaf, group in enumerate(groups[inner:]):
        if len(group):
            leaves[leaf] = left[group].sum() / (len(group) + REGULARISATION)
            values[group] = leaves[leaf]
    return _Tree(features, thresholds, leaves), values


def _best_split(codes: np.ndarray, left: np.ndarray) -> tuple[int, int] | None:
    """The feature and the edge that explain most; None where nothing does."""
    import numpy as np

    count, width = codes.shape
    if count < 2 * LEAST:
        return None
    weights = np.repeat(left, width)
    sums = np.bincount(codes.ravel(), weights, width * BINS).reshape(width, BINS)
    counts = np.bincount(codes.ravel(), None, width * BINS).reshape(width, BINS)
    below = np.cumsum(sums, axis=1)[:, :-1]
    number = np.cumsum(counts, axis=1)[:, :-1]
    total = left.sum()
    gain = below**2 / (number + REGULARISATION)
    gain += (total - below) ** 2 / (count - number + REGULARISATION)
    gain = np.where((number >= LEAST) & (count - number >= LEAST), gain, -1.0)
    best = int(np.argmax(gain))
    feature, edge = divmod(best, BINS - 1)
    if gain[feature, edge] <= total**2 / (count + REGULARISATION) + 1e-12:
        return None
    return feature, edge
