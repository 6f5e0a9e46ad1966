"""Pooling: the greatest element or the mean of windows."""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.layout import Lettered
from mlcweb.relax.op.legalize import attribute, reordered, te, topi
from mlcweb.relax.op.nn.layouts import (
    SPATIAL,
    Extents,
    arranged,
    check_counts,
    check_layout,
    check_rank,
    extents_of,
    numbers,
    pool_attrs,
    window_extent,
    without_blocks,
)  # fmt: skip
from mlcweb.relax.op.registry import FOLLOW, Infer, Legalize, call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, extent

_LAYOUTS = Lettered(("layout", "out_layout"), may_be_wanted=False)


def _infer_pool(rank: int) -> Infer:
    letters = f"NC{SPATIAL[rank]}"

    def deduce(call: Call, context: Context) -> StructInfo:
        info = infer.tensor(call, 0, context)
        layout, out = (check_layout(call, name, letters) for name in ("layout", "out_layout"))
        _check_attributes(call, rank)
        check_rank(call, 0, info, layout)
        if info.values is None:
            return TensorStructInfo(None, info.dtype, ndim=len(out))
        batch, channels, *image = extents_of(info, layout, letters)
        size, strides, dilation, padding = (
            infer.attribute(call, name) for name in ("pool_size", "strides", "dilation", "padding")
        )
        ceil = infer.attribute(call, "ceil_mode")
        outputs = [
            window_extent(
                call,
                image[d],
                size[d],
                strides[d],
                padding[d] + padding[rank + d],
                dilation[d],
                ceil=ceil,
                behind=padding[rank + d],
            )
            for d in range(rank)
        ]
        return TensorStructInfo(arranged([batch, channels, *outputs], letters, out), info.dtype)

    return deduce


def _check_attributes(call: Call, rank: int) -> Call:
    """Gives a call whose numbers are as many as there are axes, and refuses others."""
    check_counts(call, rank, pool_size=rank, strides=rank, dilation=rank, padding=2 * rank)
    return call


def _legalize_pool(name: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        layout = attribute(call, "layout")
        images = without_blocks(layout)

        def pool(data: te.Tensor) -> te.Tensor:
            result = topi.nn.pool(
                reordered(data, layout, images),
                attribute(call, "pool_size"),
                attribute(call, "strides"),
                attribute(call, "dilation"),
                attribute(call, "padding"),
                name[:3],
                attribute(call, "ceil_mode"),
                images,
                attribute(call, "count_include_pad"),
            )
            return reordered(result, images, attribute(call, "out_layout"))

        return builder.call_te(pool, *call.args, primfunc_name_hint=name)

    return legalize


def _pool(name: str, rank: int, counts_padding: bool):
    @operator(
        f"relax.nn.{name}", "data", infer=_infer_pool(rank), legalize=_legalize_pool(name),
        layout=_LAYOUTS, precision=FOLLOW,
    )  # fmt: skip
    def build(
        data: ExprLike, pool_size: Extents = 1, strides: Extents = 1, padding: Extents = 0,
        dilation: Extents = 1, ceil_mode: bool = False, count_include_pad: bool = counts_padding,
        layout: str = f"NC{SPATIAL[rank]}", out_layout: str | None = None,
    ) -> Call:  # fmt: skip
        return _check_attributes(call(build, data, **pool_attrs(
            rank, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout,
            out_layout,
        )), rank)  # fmt: skip

    what = "greatest elements" if name.startswith("max") else "means"
    build.__doc__ = f"""The {what} of windows along {rank} spatial axes.

    Args:
        padding: one width for all sides, one per axis, or all widths before, then all behind.
        ceil_mode: counts a last window that is only partly inside.
        count_include_pad: a mean counts the padding as elements.
    """
    return build


max_pool1d = _pool("max_pool1d", 1, False)
max_pool2d = _pool("max_pool2d", 2, False)
avg_pool1d = _pool("avg_pool1d", 1, True)
avg_pool2d = _pool("avg_pool2d", 2, False)
max_pool3d = _pool("max_pool3d", 3, False)
avg_pool3d = _pool("avg_pool3d", 3, True)


def _infer_adaptive(rank: int) -> Infer:
    letters = f"NC{SPATIAL[rank]}"

    def deduce(call: Call, context: Context) -> StructInfo:
        info = infer.tensor(call, 0, context)
        layout, out = (check_layout(call, name, letters) for name in ("layout", "out_layout"))
        check_rank(call, 0, info, layout)
        size = infer.attribute(call, "output_size")
        if size is not None:
            check_counts(call, rank, output_size=rank)
        elif str(layout) == str(out):
            return info if info.ndim != -1 else replace(info, ndim=len(out))
        if info.values is None:
            return TensorStructInfo(None, info.dtype, ndim=len(out))
        batch, channels, *image = extents_of(info, layout, letters)
        outputs = image if size is None else [extent(number) for number in size]
        return TensorStructInfo(arranged([batch, channels, *outputs], letters, out), info.dtype)

    return deduce


def _legalize_adaptive(name: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        layout, size = attribute(call, "layout"), attribute(call, "output_size")
        images = without_blocks(layout)

        def pool(data: te.Tensor) -> te.Tensor:
            data = reordered(data, layout, images)
            output = size
            if output is None:
                output = [n for n, c in zip(data.shape, images, strict=True) if c not in "NC"]
            result = topi.nn.adaptive_pool(data, output, "avg", images)
            return reordered(result, images, attribute(call, "out_layout"))

        return builder.call_te(pool, *call.args, primfunc_name_hint=name)

    return legalize


def _adaptive(name: str, rank: int):
    @operator(
        f"relax.nn.{name}", "data", infer=_infer_adaptive(rank), legalize=_legalize_adaptive(name),
        layout=_LAYOUTS, precision=FOLLOW,
    )  # fmt: skip
    def build(
        data: ExprLike,
        output_size: Extents | None = None,
        layout: str = f"NC{SPATIAL[rank]}",
        out_layout: str | None = None,
    ) -> Call:
        size = None if output_size is None else numbers(output_size, rank)
        return call(build, data, output_size=size, layout=layout, out_layout=out_layout or layout)

    build.__doc__ = (
        f"""Means of windows that divide {rank} spatial axes into `output_size` parts."""
    )
    return build


adaptive_avg_pool1d = _adaptive("adaptive_avg_pool1d", 1)
adaptive_avg_pool2d = _adaptive("adaptive_avg_pool2d", 2)
adaptive_avg_pool3d = _adaptive("adaptive_avg_pool3d", 3)
