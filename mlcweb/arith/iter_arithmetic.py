"""Arithmetic of extents, scales and bases: where constants leave their type, an index is no
iterator map."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import folding


class NotAffine(Exception):
    """An index that is no iterator map; the message says why."""


def _exact(
    compute: Callable[[int, int], int], build: folding.Builder
) -> Callable[[Any, Any], E.PrimExpr]:
    """`build`, refusing constants whose result wraps around."""

    def exact(a: Any, b: Any) -> E.PrimExpr:
        if type(a) is E.IntImm and type(b) is E.IntImm:
            value = compute(a.value, b.value)
            if value != dtypes.wrap_integer(value, a.dtype):
                raise NotAffine(f"{value}, which an iterator steps by or covers, exceeds {a.dtype}")
        return build(a, b)

    return exact


add = _exact(operator.add, folding.add)
subtract = _exact(operator.sub, folding.subtract)
multiply = _exact(operator.mul, folding.multiply)
