"""Functions that combine the elements along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.torch.functions.arithmetic import as_type
from mlcweb.relax.frontend.torch.translator import (
    Axes,
    TorchError,
    Translator,
    dtype_name,
    function,
)
from mlcweb.tir import dtype as dtypes

Reduction: TypeAlias = Callable[..., Expr]


def _typed(t: Translator, input: Expr, dtype: object) -> Expr:
    return input if dtype is None else as_type(t, input, dtype_name(dtype))


@function("sum")
def sum(
    t: Translator, input: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: object = None
) -> Expr:
    if dtype is None and not dtypes.is_float(t.dtype(input)):
        dtype = "int64"
    return op.sum(_typed(t, input, dtype), _axes(dim), keepdim)


@function("mean")
def mean(
    t: Translator, input: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: object = None
) -> Expr:
    return op.mean(_typed(t, input, dtype), _axes(dim), keepdim)


def _axes(dim: Axes) -> int | list[int] | None:
    return dim if dim is None or isinstance(dim, int) else list(dim) or None


def _of_truth(name: str, reduce: Reduction) -> None:
    @function(name)
    def convert(t: Translator, input: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
        """Of what is not 0; the result of uint8 stays uint8, any other is bool."""
        dtype = "uint8" if t.dtype(input) == "uint8" else "bool"
        truth = op.astype(as_type(t, input, "bool"), "int8")
        return op.astype(reduce(truth, _axes(dim), keepdim), dtype)


_of_truth("any", op.max)
_of_truth("all", op.min)


def _extremum(name: str, reduce: Reduction, find: Reduction, elementwise: Reduction) -> None:
    @function(f"a{name}")
    def along_axes(t: Translator, input: Expr, dim: Axes = (), keepdim: bool = False) -> Expr:
        return reduce(input, _axes(dim), keepdim)

    @function(f"arg{name}")
    def place(t: Translator, input: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
        return as_type(t, find(input, dim, keepdim), "int64")

    @function(name)
    def convert(
        t: Translator, input: Expr, dim: Expr | int | None = None, keepdim: bool = False
    ) -> Expr | tuple[Expr, Expr]:
        """Of all elements; of two tensors; or along an axis, with the positions."""
        if dim is None:
            return reduce(input)
        if not isinstance(dim, int):
            return elementwise(input, dim)
        return reduce(input, dim, keepdim), place(t, input, dim, keepdim)


_extremum("max", op.max, op.argmax, op.maximum)
_extremum("min", op.min, op.argmin, op.minimum)


@function("prod")
def prod(t: Translator, input: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return op.prod(input, dim, keepdim)


@function("var")
def var(
    t: Translator, input: Expr, dim: Axes = None, unbiased: bool = True, keepdim: bool = False,
    *, correction: float | None = None,
) -> Expr:  # fmt: skip
    """With Bessel's correction unless told otherwise, which Relax's `variance` does not have."""
    taken = (1 if unbiased else 0) if correction is None else correction
    result = op.variance(input, _axes(dim), keepdim)
    if not taken:
        return result
    axes = range(len(t.shape(input))) if dim is None else [dim] if isinstance(dim, int) else dim
    count = math.prod(t.extent(input, axis) for axis in axes)
    return result * t.const(count / (count - taken), t.dtype(input))


@function("std")
def std(t: Translator, input: Expr, *args: Any, **kwargs: Any) -> Expr:
    return op.sqrt(var(t, input, *args, **kwargs))


def _running(name: str, scan: Reduction) -> None:
    @function(name)
    def convert(t: Translator, input: Expr, dim: int, *, dtype: object = None) -> Expr:
        element = t.dtype(input)
        if dtype is None and not dtypes.is_float(element) and element != "int64":
            dtype = "int64"
        if not t.ndim(input):
            return _typed(t, input, dtype)
        return scan(input, dim, None if dtype is None else dtype_name(dtype))


_running("cumsum", op.cumsum)
_running("cumprod", op.cumprod)


@function("norm", "linalg_vector_norm", "vector_norm")
def norm(
    t: Translator, input: Expr, p: float | str | None = 2, dim: Axes = None, keepdim: bool = False,
    out: None = None, dtype: object = None,
) -> Expr:  # fmt: skip
    """The p-th root of the sum of the p-th powers of absolute values."""
    input = t.bound(_typed(t, input, dtype))
    axes, element = _axes(dim), t.dtype(input)
    if p in (None, "fro", 2):
        return op.sqrt(op.sum(input * input, axes, keepdim))
    if p == 0:
        return op.sum(op.astype(op.not_equal(input, t.const(0, element)), element), axes, keepdim)
    size = t.bound(op.abs(input))
    if p in (math.inf, -math.inf):
        return (op.max if p == math.inf else op.min)(size, axes, keepdim)
    if p == 1:
        return op.sum(size, axes, keepdim)
    if isinstance(p, str):
        raise TorchError(f'norm with p="{p}" cannot be imported')
    powers = size ** t.const(p, element)
    return op.sum(powers, axes, keepdim) ** t.const(1 / p, element)


def _softmax(name: str, build: Reduction) -> None:
    @function(name, f"_{name}")
    def convert(
        t: Translator, input: Expr, dim: int = -1, *args: object, dtype: object = None,
        **ignored: object,
    ) -> Expr:  # fmt: skip
        return build(_typed(t, input, dtype), dim)


_softmax("softmax", op.nn.softmax)
_softmax("log_softmax", op.nn.log_softmax)
