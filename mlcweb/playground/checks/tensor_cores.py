"""Chapter 6: a linear layer on tensor cores, whose second factor is transposed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import expect, run, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule

SIDE = 64
CALLS = {
    "init": "tvm_fill_fragment",
    "load_a, load_b": "tvm_load_matrix_sync",
    "compute": "tvm_mma_sync",
    "store": "tvm_store_matrix_sync",
}
LOADS = 2


def check(variables: Mapping[str, Any]) -> str:
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    text = schedule.mod.script()
    missing = [parts for parts, call in CALLS.items() if call not in text]
    if not missing and text.count("tvm_load_matrix_sync") < LOADS:
        missing = ["one of load_a, load_b"]
    if missing:
        raise Wrong(f"Still loops: {'; '.join(missing)}. Tensorize each by its instruction.")
    a, b = np.random.default_rng(5).integers(-4, 5, (2, SIDE, SIDE)).astype("float16")
    c = run(schedule.mod, [a, b], np.zeros((SIDE, SIDE), "float32"), "simulated")
    expected = a.astype("float32") @ b.astype("float32").T
    expect("C", c, expected)
    return "Five loops are instructions of tensor cores now, and the layer is right."
