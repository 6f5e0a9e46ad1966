"""Lesson 1: B = 2 A + 1 on 128 elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import expect, prim_func, run


def check(variables: Mapping[str, Any]) -> str:
    shape = (128,)
    function = prim_func(variables, "MyModule", "main", [(shape, "float32")] * 2)
    for data in (np.arange(128), np.linspace(-3, 3, 128)):
        a = data.astype("float32")
        b = run(function, [a], np.full(shape, np.nan, "float32"))
        expect(
            "B",
            b,
            2 * a + 1,
            (a + 1, "B is still A + 1. Multiply A[vi] by T.float32(2) first."),
            (2 * (a + 1), "B is 2 * (A + 1): the 1 should be added after the multiplication."),
        )
    return "B is 2 A + 1 for every input tried. The Machine code view shows what became of it."
