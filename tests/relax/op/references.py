"""Convolutions and pooling in NumPy, straight from their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def windows(
    x: np.ndarray, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    """(n, c, places…, inside…): all windows of the spatial axes of (n, c, …)."""
    rank = len(size)
    spread = [(s - 1) * d + 1 for s, d in zip(size, dilation, strict=True)]
    found = sliding_window_view(x, spread, axis=tuple(range(2, 2 + rank)))
    steps = [slice(None, None, s) for s in stride]
    inside = [slice(None, None, d) for d in dilation]
    return found[(slice(None), slice(None), *steps, *inside)]


def padded(x: np.ndarray, padding: Sequence[int], value: float = 0.0) -> np.ndarray:
    """The spatial axes with so much before, then behind."""
    rank = len(padding) // 2
    widths = [(0, 0), (0, 0), *((padding[d], padding[rank + d]) for d in range(rank))]
    return np.pad(x, widths, constant_values=value)


def convolution(
    x: np.ndarray,
    w: np.ndarray,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """(n, c, …) by (filters, c / groups, …), channels first."""
    rank = x.ndim - 2
    found = windows(padded(x, padding), w.shape[2:], stride, dilation)
    spatial = "xyz"[:rank], "ijk"[:rank]
    rule = f"nc{spatial[0]}{spatial[1]},oc{spatial[1]}->no{spatial[0]}"
    parts = zip(np.split(found, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum(rule, a, b) for a, b in parts], 1).astype(x.dtype)


def convolution_transpose(
    x: np.ndarray,
    w: np.ndarray,
    stride: Sequence[int],
    padding: Sequence[int],
    extra: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """Every element of (n, c, …) puts its filter of (c, filters / groups, …)."""
    rank = x.ndim - 2
    spread = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    full = [
        (n - 1) * s + k + e for n, s, k, e in zip(x.shape[2:], stride, spread, extra, strict=True)
    ]
    per = w.shape[1]
    out = np.zeros((x.shape[0], per * groups, *full))
    each = x.shape[1] // groups
    for c in range(x.shape[1]):
        group = c // each
        for place in itertools.product(*map(range, x.shape[2:])):
            where = tuple(
                slice(p * s, p * s + k, d)
                for p, s, k, d in zip(place, stride, spread, dilation, strict=True)
            )
            value = x[(slice(None), c, *place)][(slice(None), *[None] * (1 + rank))]
            out[(slice(None), slice(group * per, (group + 1) * per), *where)] += value * w[c]
    cut = tuple(slice(padding[d], full[d] - padding[rank + d]) for d in range(rank))
    return out[(slice(None), slice(None), *cut)].astype(x.dtype)


def pool(
    x: np.ndarray,
    kind: str,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    counts_padding: bool = False,
) -> np.ndarray:
    """The greatest elements or means of windows of (n, c, …)."""
    rank = len(size)
    inside = tuple(range(-rank, 0))
    ones = [1] * rank
    if kind == "max":
        return windows(padded(x, padding, -np.inf), size, stride, ones).max(inside)
    total = windows(padded(x, padding), size, stride, ones).sum(inside)
    weight = padded(np.ones_like(x), padding, 1.0 if counts_padding else 0.0)
    return (total / windows(weight, size, stride, ones).sum(inside)).astype(x.dtype)


def normalized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) over axes."""
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + epsilon)
