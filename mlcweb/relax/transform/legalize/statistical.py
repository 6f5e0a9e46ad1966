"""Lowering of reductions and running sums."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import by, enter, known


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


def _collapse(builder: BlockBuilder, call: E.Call) -> Any:
    shape, there = (known(builder, value).values for value in (call, call.args[0]))
    if len(shape) == len(there) and all(map(dims.equal, shape, there)):
        return call.args[0]
    return builder.call_te(
        topi.collapse_sum, call.args[0], list(shape), primfunc_name_hint="collapse_sum"
    )


enter({"collapse_sum_to": _collapse, "collapse_sum_like": _collapse})
