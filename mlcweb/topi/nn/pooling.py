"""Pooling: the greatest element or the mean of windows."""

from __future__ import annotations

import math
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes, tags
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.nn.window import SPATIAL, check_layout, count_inside, numbers, paddings


def pool(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "",
    count_include_pad: bool = True,
) -> Tensor:
    """Windows along the spatial axes pooled to one element each.

    Args:
        layout: by default NCW, NCHW or NCDHW, by the number of dimensions.
        pool_type: "max" or "avg".
        padding: a number, one per axis, or all before and then all behind; of a maximum with the
            least value.
        ceil_mode: counts a last window that is only partly inside.
        count_include_pad: a mean divides by the window's size, else by its elements inside.
    """
    layout = layout or f"NC{SPATIAL.get(data.ndim - 2, '')}"
    operator = f"pool{len(layout) - 2}d {pool_type}"
    places = spatial_axes(operator, data, pool_type, layout)
    rank = len(places)
    size = numbers(operator, "kernel", kernel, rank)
    strides = numbers(operator, "stride", stride, rank)
    spread = numbers(operator, "dilation", dilation, rank)
    low, high = paddings(operator, padding, shapes.as_shape(size))
    outputs, behind = [], []
    for d, place in enumerate(places):
        width = (size[d] - 1) * spread[d] + 1
        # A partial last window needs that much more padding behind.
        extra = strides[d] - 1 if ceil_mode else 0
        behind.append(high[d] + extra)
        room = arithmetic.subtract(arithmetic.add(data.shape[place], low[d] + behind[d]), width)
        count = arithmetic.add(arithmetic.floordiv(room, strides[d]), 1)
        if ceil_mode and high[d] + strides[d] > width:  # no window begins behind the data
            last = arithmetic.floordiv(arithmetic.add(data.shape[place], low[d] - 1), strides[d])
            count = arithmetic.minimum(count, arithmetic.add(last, 1))
        outputs.append(count)
    before, after = [0] * data.ndim, [0] * data.ndim
    for d, place in enumerate(places):
        before[place], after[place] = low[d], behind[d]
    border = intrinsics.min_value(data.dtype) if pool_type == "max" else 0
    padded = data
    if any(before) or any(after):
        padded = pad(data, before, after, border, name="pad_temp")
    index_type = data.shape[0].dtype
    axes = [
        reduce_axis((0, arithmetic.const(extent, index_type)), f"rv{d}")
        for d, extent in enumerate(size)
    ]
    shape = list(data.shape)
    for place, extent in zip(places, outputs, strict=True):
        shape[place] = extent

    def window(*index: PrimExpr) -> PrimExpr:
        inside = list(index)
        for d, place in enumerate(places):
            inside[place] = index[place] * strides[d] + axes[d].var * spread[d]
        return padded(*inside)

    names = [f"ax{i}" for i in range(data.ndim)]
    if pool_type == "max":
        return compute(
            shape,
            lambda *index: reducers.max(window(*index), axes),
            "pool_max",
            tag="pool_max",
            attrs={"schedule_rule": "meta_schedule.pool_max"},
            varargs_names=names,
        )
    total = compute(
        shape,
        lambda *index: reducers.sum(window(*index), axes),
        "pool_sum",
        tag="pool_sum",
        varargs_names=names,
    )

    def counted(index: tuple[PrimExpr, ...]) -> PrimExpr:
        """How many elements of the window count: never those that `ceil_mode` added behind."""
        counts = []
        for d, place in enumerate(places):
            start = index[place] * strides[d] - low[d]
            begin = -low[d] if count_include_pad else 0
            end = arithmetic.add(data.shape[place], high[d] if count_include_pad else 0)
            counts.append(count_inside(start, begin, end, size[d], spread[d]))
        return arithmetic.maximum(shapes.size(counts), 1)

    def mean(*index: PrimExpr) -> Any:
        whole = count_include_pad and not ceil_mode
        count = arithmetic.const(math.prod(size)) if whole else counted(index)
        return arithmetic.divide(total(*index), arithmetic.cast(data.dtype, count))

    return compute(
        shape,
        mean,
        "pool_avg",
        tag=tags.ELEMWISE,
        attrs={"schedule_rule": "meta_schedule.pool_avg"},
        varargs_names=names,
    )


pool1d = pool2d = pool3d = pool
"""TVM's names for `pool` with a layout of three, four and five letters."""


def max_pool2d(
    data: Tensor,
    pool_size: Any = 1,
    strides: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    """The greatest elements of windows; they move by their own size without `strides`."""
    step = pool_size if strides is None else strides
    return pool2d(data, pool_size, step, dilation, padding, "max", ceil_mode, layout)


def avg_pool2d(
    data: Tensor,
    pool_size: Any = 1,
    strides: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = False,
) -> Tensor:
    """The means of windows; they move by their own size without `strides`."""
    step = pool_size if strides is None else strides
    return pool2d(
        data, pool_size, step, dilation, padding, "avg", ceil_mode, layout, count_include_pad
    )


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Windows that divide the spatial axes into an output of the given size: window i covers
    [floor(i h / out), ceil((i + 1) h / out))."""
    operator = f"adaptive_pool {pool_type}"
    places = spatial_axes(operator, data, pool_type, layout)
    wanted = numbers(operator, "output size", output_size, len(places))
    shape, axes = list(data.shape), []
    even = True
    for d, (place, out) in enumerate(zip(places, wanted, strict=True)):
        extent = data.shape[place]
        number = shapes.constant(extent)
        even = even and number is not None and number % out == 0
        if number is None and out != 1:
            raise DiagnosticError(f"{operator}: a symbolic image needs the output size 1")
        widest = extent if out == 1 else -(-_whole(number) // out) + (_whole(number) % out > 0)
        shape[place] = arithmetic.const(out, extent.dtype)
        axes.append(reduce_axis((0, widest), f"rv{d}"))

    def bounds(i: PrimExpr, d: int) -> tuple[PrimExpr, PrimExpr]:
        extent, out = data.shape[places[d]], wanted[d]
        start = arithmetic.floordiv(i * extent, out)
        end = arithmetic.floordiv((i + 1) * extent + (out - 1), out)
        return start, end

    def window(index: tuple[PrimExpr, ...], outside: PrimExpr) -> PrimExpr:
        inside, conditions = list(index), []
        for d, place in enumerate(places):
            start, end = bounds(index[place], d)
            inside[place] = start + axes[d].var
            if not even and wanted[d] != 1:
                conditions.append(arithmetic.less(inside[place], end))
        value = data(*inside)
        for condition in conditions:
            value = intrinsics.if_then_else(condition, value, outside)
        return value

    names = [f"ax{i}" for i in range(data.ndim)]
    if pool_type == "max":
        least = intrinsics.min_value(data.dtype)
        return compute(
            shape,
            lambda *index: reducers.max(window(index, least), axes),
            "adaptive_pool_max",
            tag="adaptive_pool_max",
            attrs={"schedule_rule": "meta_schedule.adaptive_pool_max"},
            varargs_names=names,
        )
    zero = arithmetic.const(0, data.dtype)
    total = compute(
        shape,
        lambda *index: reducers.sum(window(index, zero), axes),
        "adaptive_pool_sum",
        tag="adaptive_pool_sum",
        varargs_names=names,
    )

    def mean(*index: PrimExpr) -> Any:
        sizes = [arithmetic.subtract(*reversed(bounds(index[p], d))) for d, p in enumerate(places)]
        if even:
            sizes = [axis.dom.extent for axis in axes if axis.dom]
        return arithmetic.divide(total(*index), arithmetic.cast(data.dtype, shapes.size(sizes)))

    return compute(
        shape,
        mean,
        "adaptive_pool_avg",
        tag=tags.ELEMWISE,
        attrs={"schedule_rule": "meta_schedule.adaptive_pool_avg"},
        varargs_names=names,
    )


def adaptive_pool1d(
    data: Tensor, output_size: Any, pool_type: str, layout: str = "NCW"
) -> Tensor:  # fmt: skip
    """As `adaptive_pool`, of sequences."""
    return adaptive_pool(data, output_size, pool_type, layout)


def adaptive_pool3d(
    data: Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW"
) -> Tensor:  # fmt: skip
    """As `adaptive_pool`, of volumes."""
    return adaptive_pool(data, output_size, pool_type, layout)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The whole image pooled to one element."""
    return adaptive_pool(data, 1, pool_type, layout)


def spatial_axes(operator: str, data: Tensor, pool_type: str, layout: str) -> list[int]:
    """The places of the spatial axes, after checks of the arguments."""
    if pool_type not in ("max", "avg"):
        raise DiagnosticError(f'{operator}: the kind of pooling is "max" or "avg"')
    letters = SPATIAL.get(len(layout) - 2, "HW")
    check_layout(operator, layout, f"NC{letters}")
    shapes.need_rank(operator, data, len(layout), f"an image of the layout {layout}")
    return [layout.index(letter) for letter in letters]


def _whole(number: int | None) -> int:
    assert number is not None
    return number
