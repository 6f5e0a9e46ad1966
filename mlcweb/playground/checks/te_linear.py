"""Chapter 5: a linear layer as a tensor expression."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from mlcweb import te
from mlcweb.playground.checks.common import expect, run, variable
from mlcweb.playground.checks.verdict import Wrong


def check(variables: Mapping[str, Any]) -> str:
    function = variable(variables, "te_linear", FunctionType, "a function")
    rng = np.random.default_rng(0)
    for n, inputs, outputs in ((1, 8, 8), (1, 16, 10), (4, 3, 5)):
        shapes = (n, inputs), (outputs, inputs), (outputs,)
        parameters = [
            te.placeholder(shape, "float32", name)
            for shape, name in zip(shapes, "XWB", strict=True)
        ]
        result = function(*parameters)
        if not isinstance(result, te.Tensor):
            raise Wrong(f"te_linear should return a te.Tensor; it returned {result!r}.")
        shape = tuple(int(str(extent)) for extent in result.shape)
        if shape != (n, outputs):
            raise Wrong(
                f"For X of shape {shapes[0]} and W of shape {shapes[1]} the result should have "
                f"shape {(n, outputs)}; it has {shape}. W holds one row per output."
            )
        x, w, b = (rng.uniform(-1, 1, s).astype("float32") for s in shapes)
        program = te.create_prim_func([*parameters, result])
        out = run(program, [x, w, b], np.full(shape, np.nan, "float32"))
        mistakes = [(x @ w.T, "The product is right, but B is not added yet.")]
        if inputs == outputs:
            transposed = "You sum X[i, k] * W[k, j]. A layer's weights are transposed: W[j, k]."
            mistakes.append((x @ w + b, transposed))
        expect("The result", out, x @ w.T + b, *mistakes)
    return "te_linear gives X W^T + B for three shapes."
