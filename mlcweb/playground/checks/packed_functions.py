"""Chapter 3: a library function that models call by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import expect
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.runtime import nd
from mlcweb.runtime.registry import get_global_func

NAME = "env.leaky_relu"


def check(variables: Mapping[str, Any]) -> str:
    function = get_global_func(NAME, allow_missing=True)
    if function is None:
        raise Wrong(
            f'No function is registered as "{NAME}": put @tvm.register_func("{NAME}", '
            "override=True) above yours."
        )
    rng = np.random.default_rng(0)
    for shape in ((1, 10), (1, 128), (3, 5)):
        x = rng.uniform(-2, 2, shape).astype("float32")
        x_array, out = nd.array(x), nd.array(np.full(shape, np.nan, "float32"))
        function(x_array, out)
        result, expected = out.numpy(), np.where(x > 0, x, np.float32(0.1) * x)
        if np.isnan(result).all():
            raise Wrong(
                "out is still as it was. A function in destination passing style writes its result "
                "into its last argument; what it returns is not used: out.copyfrom(…)."
            )
        cut = "Negative elements become 0; a leaky ReLU keeps a tenth of them."
        expect("out", result, expected, (np.maximum(x, 0), cut))
    return f"{NAME} is right for three shapes. Any model that names it may call it now."
