"""A matrix product faster than chapter 4's, measured side by side in the same tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from mlcweb.ir import IRModule
from mlcweb.playground.checks.common import expect, run, variable
from mlcweb.playground.checks.programs import matrix_product, tiled_product
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.runtime import nd
from mlcweb.runtime.build import build
from mlcweb.runtime.device import cpu
from mlcweb.schedule import Schedule

ENOUGH = 1.5
"""How many times as fast as the reference. A tile of the usual size gives three times and more, so
that noise does not decide."""
ROUNDS = 5


def check(variables: Mapping[str, Any]) -> str:
    function = variable(variables, "my_schedule", FunctionType, "a function that takes a schedule")
    schedule = Schedule(matrix_product())
    result = function(schedule)
    module = (result if isinstance(result, Schedule) else schedule).mod
    rng = np.random.default_rng(0)
    a, b = (rng.random((128, 128), dtype="float32") for _ in range(2))
    c = run(module, [a, b], np.full((128, 128), np.nan, "float32"))
    expect("C", c, a @ b)
    reference, yours = times(tiled_product(4), module)
    ratio = reference / yours
    numbers = f"{yours * 1e6:.0f} µs, the reference {reference * 1e6:.0f} µs"
    if ratio < ENOUGH:
        raise Wrong(
            f"Right, but not faster yet: {numbers}, which is {ratio:.2f} times as fast; "
            f"{ENOUGH} is asked. Compute a larger tile of C at once: several rows i_1 and a row of "
            "j_1, a multiple of 4, innermost."
        )
    rate = 2 * 128**3 / yours / 1e9
    return f"{numbers}: {ratio:.1f} times as fast, {rate:.1f} GFLOPS."


def times(*modules: IRModule) -> list[float]:
    """Seconds a call of each, measured in turns, so that what slows the machine slows both."""
    evaluators = [_evaluator(module) for module in modules]
    rounds = [[evaluate() for evaluate in evaluators] for _ in range(ROUNDS)]
    return [min(of_one) for of_one in zip(*rounds, strict=True)]


def _evaluator(module: IRModule) -> Callable[[], float]:
    arrays = [nd.array(np.ones((128, 128), "float32")) for _ in range(3)]
    evaluate = build(module, target="llvm").time_evaluator("main", cpu(), number=3, repeat=3)
    return lambda: min(evaluate(*arrays).results)
