"""Reductions: sums, extrema and moments over axes, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.relax import dims
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.layout import (
    Decision,
    InBlocks,
    Layout,
    axes_of,
    axis_of,
    blocks_of,
    data_order,
    renumbered,
)
from mlcweb.relax.op.legalize import by, te, topi
from mlcweb.relax.op.registry import call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def infer_reduction(call: Call, context: Context, dtype: str | None = None) -> StructInfo:
    """The shape without the reduced axes, or with extent 1 on them."""
    info = infer.tensor(call, 0, context)
    axis, keepdims = infer.attribute(call, "axis"), infer.attribute(call, "keepdims")
    element = info.dtype if dtype is None else dtype
    if info.ndim == -1:
        if axis is None and not keepdims:
            return TensorStructInfo((), element)
        return TensorStructInfo(None, element)
    every = range(info.ndim)
    gone = set(every) if axis is None else set(infer.normalized_axes(call, axis, info.ndim))
    if len(gone) == info.ndim:
        return TensorStructInfo([1] * info.ndim if keepdims else (), element)
    if info.values is None:
        return TensorStructInfo(
            None, element, ndim=info.ndim if keepdims else info.ndim - len(gone)
        )
    if keepdims:
        return TensorStructInfo([1 if i in gone else info.values[i] for i in every], element)
    return TensorStructInfo([info.values[i] for i in every if i not in gone], element)


def _layout_reduction(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    order = data_order(layouts)
    every = [axis for axis in order if isinstance(axis, int)]
    axes = axes_of(call, "axis", len(every))
    gone = every if axes is None else axes
    keepdims = infer.attribute(call, "keepdims")
    if keepdims and any(block.axis in gone for block in blocks_of(order)):
        return None  # one element is no block
    places = [place for place, axis in enumerate(order) if axis_of(axis) in gone]
    kept = [axis for axis in every if axis not in gone]
    result = order if keepdims else renumbered(order, kept)
    return Decision([order], result, {"axis": places})


def _reduction(name: str, what: str, function: str | Callable[..., te.Tensor] | None = None):
    legalize = by(function or name, "axis", "keepdims", hint=name)

    @operator(
        f"relax.{name}",
        "x",
        infer=infer_reduction,
        legalize=legalize,
        layout=InBlocks(_layout_reduction),
    )
    def build(x: ExprLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Call:
        axes = [axis] if isinstance(axis, int) else axis
        return call(
            build, x, axis=None if axes is None else [whole(a) for a in axes], keepdims=keepdims
        )

    build.__doc__ = (
        f"The {what} over axes, all without `axis`; they stay as extents of 1 with `keepdims`."
    )
    return build


sum = _reduction("sum", "sum")
mean = _reduction("mean", "mean")
max = _reduction("max", "greatest element")
min = _reduction("min", "least element")
prod = _reduction("prod", "product")
variance = _reduction("variance", "variance, of the whole population,")


def _std(x: te.Tensor, axis: list[int] | None, keepdims: bool) -> te.Tensor:
    return topi.sqrt(topi.variance(x, axis, keepdims))


std = _reduction("std", "standard deviation, of the whole population,", _std)


def _infer_scan(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    axis, dtype = infer.attribute(call, "axis"), infer.dtype_or(call, info.dtype)
    if axis is not None:
        if info.ndim != -1:
            infer.normalized_axis(call, axis, info.ndim)
        return TensorStructInfo(info.shape, dtype, ndim=info.ndim)
    if info.values is None:
        return TensorStructInfo(None, dtype, ndim=1)
    return TensorStructInfo([dims.product(info.values)], dtype)


def _scan(name: str, what: str):
    legalize = by(name, "axis", "dtype", "exclusive")

    @operator(
        f"relax.{name}", "data",
        infer=_infer_scan, legalize=legalize, dispatched="DispatchSortScan",
    )  # fmt: skip
    def build(
        data: ExprLike, axis: int | None = None, dtype: str | None = None, exclusive: bool = False
    ) -> Call:
        return call(build, data, axis=axis, dtype=str(dtype or "void"), exclusive=bool(exclusive))

    build.__doc__ = (
        f"The running {what} along an axis, of the flat tensor without `axis`; each element counts "
        "itself, unless `exclusive`."
    )
    return build


cumsum = _scan("cumsum", "sum")
cumprod = _scan("cumprod", "product")
