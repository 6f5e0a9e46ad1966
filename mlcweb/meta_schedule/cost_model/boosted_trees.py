"""Regression by gradient-boosted trees (Friedman, "Greedy Function Approximation: A Gradient
Boosting Machine", Annals of Statistics 29(5), 2001), for a few thousand rows, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class _Tree:
    """A complete binary tree: node n has the children 2n+1 and 2n+2. A row goes to the second where
    its feature is above the threshold."""

    features: np.ndarray
    thresholds: np.ndarray
    leaves: np.ndarray


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A sum of trees, over a mean."""

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


def fit(
    rows: np.ndarray,
    targets: np.ndarray,
    *,
    trees: int = 60,
    depth: int = 3,
    rate: float = 0.15,
    regularisation: float = 1.0,
    least: int = 2,
) -> BoostedTrees:
    """Trees that together give the targets of rows, by least squares.

    Args:
        rows: float64 of shape (rows, features), without NaN.
        targets: float64 of shape (rows,).
        rate: the share of what is left that a tree corrects.
        regularisation: pulls leaves to zero, as if so many rows with nothing left were in each.
        least: rows on either side of a split.
    """
    import numpy as np

    mean = float(targets.mean())
    left = targets - mean
    varying = np.flatnonzero(rows.max(axis=0) > rows.min(axis=0))
    if not len(varying):
        return BoostedTrees(mean, (), depth)
    columns = rows[:, varying]
    made = []
    for _ in range(trees):
        tree, values = _grow(columns, left, depth, regularisation, least)
        left = left - rate * values
        made.append(_Tree(varying[tree.features], tree.thresholds, rate * tree.leaves))
        if float(left @ left) < 1e-12:
            break
    return BoostedTrees(mean, tuple(made), depth)


def _grow(
    columns: np.ndarray, left: np.ndarray, depth: int, regularisation: float, least: int
) -> tuple[_Tree, np.ndarray]:
    """One tree, and its value for each row."""
    import numpy as np

    inner = 2**depth - 1
    features = np.zeros(inner, dtype=np.intp)
    thresholds = np.full(inner, np.inf)
    groups = [np.arange(len(left))]
    for node in range(inner):
        group = groups[node]
        split = _best_split(columns[group], left[group], regularisation, least)
        if split is None:
            groups += [group, group[:0]]
            continue
        features[node], thresholds[node] = split
        above = columns[group, split[0]] > split[1]
        groups += [group[~above], group[above]]
    leaves = np.zeros(2**depth)
    values = np.zeros(len(left))
    for leaf, group in enumerate(groups[inner:]):
        if len(group):
            leaves[leaf] = left[group].sum() / (len(group) + regularisation)
            values[group] = leaves[leaf]
    return _Tree(features, thresholds, leaves), values


def _best_split(
    columns: np.ndarray, left: np.ndarray, regularisation: float, least: int
) -> tuple[int, float] | None:
    """The feature and the threshold that explain most; None where nothing does."""
    import numpy as np

    count = len(left)
    if count < 2 * least:
        return None
    order = np.argsort(columns, axis=0, kind="stable")
    ordered = np.take_along_axis(columns, order, axis=0)
    below = np.cumsum(left[order], axis=0)[:-1]
    number = np.arange(1, count)[:, None]
    total = left.sum()
    gain = below**2 / (number + regularisation)
    gain += (total - below) ** 2 / (count - number + regularisation)
    possible = ordered[1:] > ordered[:-1]
    possible[: least - 1] = False
    possible[count - least :] = False
    gain = np.where(possible, gain, -1.0)
    best = int(np.argmax(gain))
    row, feature = divmod(best, gain.shape[1])
    if gain[row, feature] <= total**2 / (count + regularisation) + 1e-12:
        return None
    return feature, float((ordered[row, feature] + ordered[row + 1, feature]) / 2)
