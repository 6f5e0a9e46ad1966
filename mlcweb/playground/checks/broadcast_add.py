"""Chapter 2, exercise 1: adding a row to every row of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import expect, prim_func, run
from mlcweb.playground.checks.verdict import Wrong


def check(variables: Mapping[str, Any]) -> str:
    signature = [((4, 4), "int64"), ((4,), "int64"), ((4, 4), "int64")]
    function = prim_func(variables, "MyAdd", "add", signature)
    rng = np.random.default_rng(0)
    cases = [
        (np.arange(16).reshape(4, 4), np.arange(4, 0, -1)),
        (rng.integers(-99, 99, (4, 4)), rng.integers(-99, 99, 4)),
        (np.zeros((4, 4)), np.array([1, 10, 100, 1000])),
    ]
    for case in cases:
        # In a browser NumPy's integers have 32 bits unless told otherwise.
        a, b = (array.astype("int64") for array in case)
        c = run(function, [a, b], np.full((4, 4), -(10**6), "int64"))
        if (c == -(10**6)).any():
            raise Wrong("Some elements of C are never written: the loops must reach all 4 x 4.")
        by_rows = (
            "You add B[vi], one number for each row. NumPy lines shapes up at the last axis, "
            "so the row B is added to every row: it is indexed by the column, B[vj]."
        )
        copied = "C is a copy of A so far. Add the element of B that belongs to it."
        expect("C", c, a + b, (a + b[:, None], by_rows), (a, copied))
    return "C equals NumPy's a + b for three pairs of inputs."
