"""Functions that put elements in order."""

from __future__ import annotations

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.torch.functions.arithmetic import promoted
from mlcweb.relax.frontend.torch.translator import Result, Translator, function


@function("argsort")
def argsort(
    t: Translator, input: Expr, dim: int = -1, descending: bool = False, stable: bool = False
) -> Expr:
    return op.argsort(input, dim, descending, "int64")


@function("sort")
def sort(
    t: Translator, input: Expr, dim: int = -1, descending: bool = False, stable: bool = False
) -> Result:
    """The elements, and where they were; the order of equal ones stays as it is."""
    order = t.bound(argsort(t, input, dim, descending))
    return op.gather_elements(input, order, dim % t.ndim(input)), order


@function("topk")
def topk(
    t: Translator, input: Expr, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Result:
    return op.topk(input, k, dim, "both", largest, "int64")


@function("median")
def median(t: Translator, input: Expr, dim: int | None = None, keepdim: bool = False) -> Result:
    """The lower one of two; along an axis with its position."""
    return op.median(input, dim, keepdim)


@function("bucketize")
def bucketize(
    t: Translator, input: Expr, boundaries: Expr, *, out_int32: bool = False, right: bool = False
) -> Expr:
    values, bounds = promoted(t, input, boundaries)
    return op.bucketize(values, bounds, out_int32, right)


@function("searchsorted")
def searchsorted(
    t: Translator, sorted_sequence: Expr, input: Expr, *, out_int32: bool = False,
    right: bool = False,
) -> Expr:  # fmt: skip
    return bucketize(t, input, sorted_sequence, out_int32=out_int32, right=right)
