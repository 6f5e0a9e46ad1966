"""Pooling: the greatest element or the mean of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.tir.stmt import IterVar
from mlcweb.topi import shapes, tags
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.nn.window import SPATIAL, count_inside, layout_letters, numbers, paddings
from mlcweb.topi.shapes import Numbers, Padding


def pool(
    data: Tensor,
    kernel: Numbers,
    stride: Numbers,
    dilation: Numbers,
    padding: Padding,
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
    places = spatial_axes(f"pool {pool_type}", data, pool_type, layout)
    operator = f"pool{len(places)}d {pool_type}"
    windows = Windows(operator, data, places, kernel, stride, dilation, padding)
    strides, low, high = windows.strides, windows.low, windows.high
    outputs, behind = [], []
    for d, place in enumerate(places):
        width = (windows.size[d] - 1) * windows.dilation[d] + 1
        # A partial last window needs that much more padding behind.
        extra = strides[d] - 1 if ceil_mode else 0
        behind.append(high[d] + extra)
        room = data.shape[place] + (low[d] + behind[d]) - width
        count = room // strides[d] + 1
        if ceil_mode and high[d] + strides[d] > width:  # no window begins behind the data
            last = (data.shape[place] + (low[d] - 1)) // strides[d]
            count = arithmetic.minimum(count, last + 1)
        outputs.append(count)
    before, after = [0] * data.ndim, [0] * data.ndim
    for d, place in enumerate(places):
        before[place], after[place] = low[d], behind[d]
    border = intrinsics.min_value(data.dtype) if pool_type == "max" else 0
    padded = data
    if any(before) or any(after):
        padded = pad(data, before, after, border, name="pad_temp")
    axes = windows.axes()
    shape = list(data.shape)
    for place, extent in zip(places, outputs, strict=True):
        shape[place] = extent

    def window(*index: PrimExpr) -> PrimExpr:
        inside = list(index)
        for d, place in enumerate(places):
            inside[place] = index[place] * strides[d] + axes[d].var * windows.dilation[d]
        return padded(*inside)

    def counted(index: Sequence[PrimExpr]) -> PrimExpr:
        return windows.count(index, count_include_pad)

    return _pooled("pool", pool_type, shape, data.dtype, window, axes, counted)


class Windows:
    """The windows of a pooling along the axes `places` of its data: a number for each of these."""

    def __init__(
        self, operator: str, data: Tensor, places: list[int], kernel: Numbers, stride: Numbers,
        dilation: Numbers, padding: Padding,
    ) -> None:  # fmt: skip
        rank = len(places)
        self.data = data
        self.places = places
        self.size = numbers(operator, "kernel", kernel, rank)
        self.strides = numbers(operator, "stride", stride, rank)
        self.dilation = numbers(operator, "dilation", dilation, rank)
        self.low, self.high = paddings(operator, padding, shapes.as_shape(self.size))

    def axes(self) -> list[IterVar]:
        """The axes of a window."""
        index_type = self.data.shape[0].dtype
        return [
            reduce_axis((0, arithmetic.const(extent, index_type)), f"rv{d}")
            for d, extent in enumerate(self.size)
        ]

    def count(self, index: Sequence[PrimExpr], with_padding: bool) -> PrimExpr:
        """How many elements of a window count: never those that a ceiling mode added behind."""
        counts: list[PrimExpr] = []
        for d, place in enumerate(self.places):
            start = index[place] * self.strides[d] - self.low[d]
            begin = None if with_padding else 0
            end = self.data.shape[place] + (self.high[d] if with_padding else 0)
            counts.append(count_inside(start, begin, end, self.size[d], self.dilation[d]))
        number = shapes.size(counts)
        return number if with_padding else arithmetic.maximum(number, 1)


def _pooled(
    name: str, pool_type: str, shape: list[PrimExpr], dtype: str, window: Callable[..., PrimExpr],
    axes: list[IterVar], count: Callable[[Sequence[PrimExpr]], PrimExpr],
) -> Tensor:  # fmt: skip
    """The greatest element of the window at each index, or the sum of the window by its `count`: of
    integers towards zero, in the wider of their types."""
    names = shapes.axis_names(len(shape))
    rule = {"schedule_rule": f"meta_schedule.{name}_{pool_type}"}
    is_max = pool_type == "max"
    reduce, reduced = (reducers.max, f"{name}_max") if is_max else (reducers.sum, f"{name}_sum")
    pooled = compute(
        shape, lambda *index: reduce(window(*index), axes), reduced, tag=reduced,
        attrs=rule if is_max else None, varargs_names=names,
    )  # fmt: skip
    if is_max:
        return pooled

    def mean(*index: PrimExpr) -> PrimExpr:
        total, number = pooled(*index), count(index)
        if dtypes.is_float(dtype):
            return total / arithmetic.cast(dtype, number)
        return arithmetic.truncdiv(*arithmetic.match_types(total, number))

    return compute(
        shape, mean, f"{name}_avg", tag=tags.ELEMWISE, attrs=rule, varargs_names=names
    )  # fmt: skip


def _pool_called(name: str) -> Callable[..., Tensor]:
    """`pool`, by TVM's name for images of a rank."""

    @wraps(pool)
    def apply(*args: Any, **options: Any) -> Tensor:
        return pool(*args, **options)

    apply.__name__ = apply.__qualname__ = name
    return apply


pool1d, pool2d, pool3d = map(_pool_called, ("pool1d", "pool2d", "pool3d"))


def max_pool2d(
    data: Tensor,
    pool_size: Numbers = 1,
    strides: Numbers | None = None,
    padding: Padding = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    """The greatest elements of windows; they move by their own size without `strides`."""
    step = pool_size if strides is None else strides
    return pool2d(data, pool_size, step, dilation, padding, "max", ceil_mode, layout)


def avg_pool2d(
    data: Tensor,
    pool_size: Numbers = 1,
    strides: Numbers | None = None,
    padding: Padding = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = False,
) -> Tensor:
    """The means of windows; they move by their own size without `strides`."""
    step = pool_size if strides is None else strides
    return pool2d(
        data, pool_size, step, dilation, padding, "avg", ceil_mode, layout, count_include_pad
    )


def adaptive_pool(
    data: Tensor, output_size: Numbers, pool_type: str, layout: str = "NCHW"
) -> Tensor:
    """Windows that divide the spatial axes into an output of the given size: window i covers
    [floor(i h / out), ceil((i + 1) h / out))."""
    operator = f"adaptive_pool {pool_type}"
    places = spatial_axes(operator, data, pool_type, layout)
    sizes = numbers(operator, "output size", output_size, len(places))
    shape, axes = list(data.shape), []
    even = True
    for d, (place, out) in enumerate(zip(places, sizes, strict=True)):
        extent = data.shape[place]
        number = shapes.constant(extent)
        even = even and number is not None and number % out == 0
        if number is None and out != 1:
            raise DiagnosticError(f"{operator}: a symbolic image needs the output size 1")
        widest = extent if out == 1 else -(-_whole(number) // out) + (_whole(number) % out > 0)
        shape[place] = arithmetic.const(out, extent.dtype)
        axes.append(reduce_axis((0, widest), f"rv{d}"))

    def bounds(i: PrimExpr, d: int) -> tuple[PrimExpr, PrimExpr]:
        extent, out = data.shape[places[d]], sizes[d]
        start = i * extent // out
        end = ((i + 1) * extent + (out - 1)) // out
        return start, end

    is_max = pool_type == "max"
    outside = intrinsics.min_value(data.dtype) if is_max else arithmetic.const(0, data.dtype)

    def window(*index: PrimExpr) -> PrimExpr:
        inside, conditions = list(index), []
        for d, place in enumerate(places):
            start, end = bounds(index[place], d)
            inside[place] = start + axes[d].var
            if not even and sizes[d] != 1:
                conditions.append(inside[place] < end)
        value = data(*inside)
        for condition in conditions:
            value = intrinsics.if_then_else(condition, value, outside)
        return value

    def count(index: Sequence[PrimExpr]) -> PrimExpr:
        if even:
            return shapes.size([axis.dom.extent for axis in axes if axis.dom])
        ends = (bounds(index[place], d) for d, place in enumerate(places))
        return shapes.size([end - start for start, end in ends])

    return _pooled("adaptive_pool", pool_type, shape, data.dtype, window, axes, count)


def adaptive_pool1d(
    data: Tensor, output_size: Numbers, pool_type: str, layout: str = "NCW"
) -> Tensor:  # fmt: skip
    """As `adaptive_pool`, of sequences."""
    return adaptive_pool(data, output_size, pool_type, layout)


def adaptive_pool3d(
    data: Tensor, output_size: Numbers, pool_type: str, layout: str = "NCDHW"
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
    letters, spatial = layout_letters(operator, layout)
    shapes.need_rank(operator, data, len(letters), f"an image of the layout {layout}")
    return [letters.index(letter) for letter in spatial]


def _whole(number: int | None) -> int:
    assert number is not None
    return number
