"""What generated array code calls, on top of what the interpreter's code calls."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from mlcweb.codegen.interpreter.support import namespace as scalar_namespace
from mlcweb.codegen.interpreter.support import numpy_dtype

Array = np.ndarray[Any, Any]


def contract(spec: str, x: Array, y: Array) -> Array:
    """The sum of products of two arrays, with `einsum`'s notation, as one matrix product.

    Every letter of the result is one of `x` or `y`; no letter occurs twice in a term.
    """
    plan = _contraction(spec)
    for axis in plan.lonely_x:
        x = x.sum(axis, dtype=x.dtype, keepdims=True)
    for axis in plan.lonely_y:
        y = y.sum(axis, dtype=y.dtype, keepdims=True)
    x, y = x.transpose(plan.order_x), y.transpose(plan.order_y)
    groups = plan.groups
    batch, rows = x.shape[: groups[0]], x.shape[groups[0] : groups[0] + groups[1]]
    columns = y.shape[len(y.shape) - groups[2] :]
    inner = math.prod(x.shape[groups[0] + groups[1] : groups[0] + groups[1] + groups[3]])
    product = np.matmul(
        x.reshape(*batch, math.prod(rows), inner), y.reshape(*batch, inner, math.prod(columns))
    )
    return product.reshape((*batch, *rows, *columns)).transpose(plan.order_out)


class _Contraction:
    """How the axes of a product are grouped: batch, rows, columns, summed."""

    def __init__(self, spec: str) -> None:
        terms, out = spec.split("->")
        x, y = terms.split(",")
        batch = [a for a in x if a in y and a in out]
        rows = [a for a in x if a not in y and a in out]
        columns = [a for a in y if a not in x and a in out]
        inner = [a for a in x if a in y and a not in out]
        alone_x = [a for a in x if a not in y and a not in out]
        alone_y = [a for a in y if a not in x and a not in out]
        self.lonely_x = [x.index(a) for a in alone_x]
        self.lonely_y = [y.index(a) for a in alone_y]
        self.order_x = [x.index(a) for a in (*batch, *rows, *inner, *alone_x)]
        self.order_y = [y.index(a) for a in (*batch, *alone_y, *inner, *columns)]
        order = [*batch, *rows, *columns]
        self.order_out = [order.index(a) for a in out]
        self.groups = len(batch), len(rows), len(columns), len(inner)


@cache
def _contraction(spec: str) -> _Contraction:
    return _Contraction(spec)


def uninitialised(shape: tuple[int, ...], dtype: str) -> Array:
    return np.empty(shape, numpy_dtype(dtype))


namespace: dict[str, Any] = {
    **scalar_namespace,
    "contract": contract,
    "uninitialised": uninitialised,
}
