"""Elementwise operators of three tensors."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Call
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import call, register

_EWISE_FMA = register("relax.ewise_fma", ("x1", "x2", "x3"), infer.elementwise)


def ewise_fma(x1: Any, x2: Any, x3: Any) -> Call:
    """x1 * x2 + x3."""
    return call(_EWISE_FMA, x1, x2, x3)
