"""Running an operator of TOPI on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te


def run(operator: Callable[..., Any], *arrays: np.ndarray, target: str = "wasm") -> Any:
    """The result of `operator` on tensors with the contents of `arrays`; a list for several."""
    inputs = [
        te.placeholder(array.shape, str(array.dtype), name=f"X{i}")
        for i, array in enumerate(arrays)
    ]
    result = operator(*inputs)
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    func = te.create_prim_func([*inputs, *outputs])
    results = [
        tvm.nd.empty(tuple(int(extent) for extent in output.shape), output.dtype)
        for output in outputs
    ]
    tvm.build(func, target)["main"](*(tvm.nd.array(array) for array in arrays), *results)
    numbers = [result.numpy() for result in results]
    return numbers if isinstance(result, (list, tuple)) else numbers[0]


@pytest.fixture(name="run")
def run_fixture() -> Callable[..., Any]:
    return run


@pytest.fixture
def random() -> Callable[..., np.ndarray]:
    """Arrays of seeded random numbers of a shape and a dtype."""
    generator = np.random.default_rng(7)

    def array(*shape: int, dtype: str = "float32") -> np.ndarray:
        if dtype == "bool":
            return generator.random(shape) < 0.5
        if dtype.startswith("float"):
            return generator.standard_normal(shape).astype(dtype)
        return generator.integers(-9, 10, shape).astype(dtype)

    return array
