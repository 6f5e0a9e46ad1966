"""Chapter 2, exercise 2: a convolution in two dimensions, NCHW, stride 1, no padding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import blocks_of, expect, prim_func, reduced_axes, run
from mlcweb.playground.checks.verdict import Wrong

DATA, WEIGHT, OUT = (1, 1, 8, 8), (2, 1, 3, 3), (1, 2, 6, 6)


def check(variables: Mapping[str, Any]) -> str:
    signature = [(DATA, "int64"), (WEIGHT, "int64"), (OUT, "int64")]
    function = prim_func(variables, "MyConv", "conv", signature)
    blocks = [block for block, _ in blocks_of(function)]
    if not any(reduced_axes(block) for block in blocks):
        raise Wrong(
            "No block has a reduction axis. The output sums over di, dj and q, so these three axes "
            'are "R" in T.axis.remap, and the other four are "S".'
        )
    rng = np.random.default_rng(0)
    cases = [
        (np.arange(64).reshape(DATA), np.arange(18).reshape(WEIGHT)),
        (rng.integers(-9, 9, DATA), rng.integers(-9, 9, WEIGHT)),
        (np.ones(DATA), np.eye(3) * np.ones(WEIGHT)),
    ]
    for case in cases:
        # In a browser NumPy's integers have 32 bits unless told otherwise.
        data, weight = (array.astype("int64") for array in case)
        expected = _convolution(data, weight)
        poison = np.full(OUT, 10**6, "int64")
        out = run(function, [data, weight], poison)
        expect(
            "The output",
            out,
            expected,
            (
                expected + poison,
                "The sums are right, but they are added to what the output held before. Set it to "
                "zero in a `with T.init():` at the head of the block.",
            ),
            (
                _convolution(data, weight[:, :, ::-1, ::-1]),
                "The kernel is flipped: element (di, dj) of it meets A at (vi+di, vj+dj).",
            ),
            (
                _convolution(data, weight.swapaxes(2, 3)),
                "di and dj are exchanged: di goes with rows (vi), dj with columns (vj).",
            ),
        )
    return "The output equals the convolution that NumPy computes for three pairs of inputs."


def _convolution(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(data, weight.shape[2:], axis=(2, 3))
    return np.einsum("bqijde,kqde->bkij", windows, weight)
