"""Lowering of reductions and running sums."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax.transform.legalize.common import by, enter


def _std(x: te.Tensor, axis: Any, keepdims: bool) -> te.Tensor:
    return topi.sqrt(topi.variance(x, axis, keepdims))


enter({
    name: by(getattr(topi, name), "axis", "keepdims")
    for name in ("sum", "mean", "max", "min", "prod", "variance", "argmax", "argmin")
})  # fmt: skip
enter({
    "std": by(_std, "axis", "keepdims", hint="std"),
    "cumsum": by(topi.cumsum, "axis", "dtype", "exclusive"),
    "cumprod": by(topi.cumprod, "axis", "dtype", "exclusive"),
})  # fmt: skip
