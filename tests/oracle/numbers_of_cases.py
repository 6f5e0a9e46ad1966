"""The inputs and checksums of schedule cases.

Needs NumPy alone, since the interpreter of a real TVM uses it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def shape_of(extents: Sequence[Any], dims: Mapping[str, int]) -> list[int]:
    """The extents of a buffer as numbers; `dims` gives values to symbolic ones by name."""
    return [
        int(extent.value) if hasattr(extent, "value") else dims[str(extent)] for extent in extents
    ]


def draw_inputs(parameters: Sequence[tuple[str, Sequence[int]]], seed: int) -> list[np.ndarray]:
    """Arrays for parameters (dtype and shape), drawn in their order, outputs included."""
    rng = np.random.default_rng(seed)
    arrays = []
    for dtype, shape in parameters:
        drawn = rng.standard_normal(shape)
        if np.dtype(dtype).kind in "iu":
            drawn = np.rint(4 * drawn)
        arrays.append(drawn.astype(dtype))
    return arrays


def checksums(array: np.ndarray) -> dict[str, float]:
    """Checksums of the elements in C order, as float64."""
    flat = np.asarray(array, dtype="float64").ravel()
    return {
        "sum": float(flat.sum()),
        "abs_sum": float(np.abs(flat).sum()),
        "cos_dot": float((flat * np.cos(np.arange(flat.size))).sum()),
    }
