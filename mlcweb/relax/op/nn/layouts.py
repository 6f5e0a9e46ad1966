"""Layouts: the order of axes that letters name, and windows that slide over the spatial ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mlcweb.relax import dims
from mlcweb.relax.expr import Call, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.registry import several, whole
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.struct_info import extent as prim_extent
from mlcweb.tir.arithmetic import minimum
from mlcweb.tir.data_layout import Layout, LayoutError
from mlcweb.tir.expr import PrimExpr

Extents: TypeAlias = int | Sequence[int]
"""A number for all spatial axes, or one for each."""

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""The letters of the spatial axes, by how many there are."""


def check_layout(call: Call, name: str, letters: str) -> Layout:
    """The layout that an attribute gives: the letters in any order, and inner parts of them."""
    text = infer.attribute(call, name)
    try:
        layout = Layout(text, "int64")
    except LayoutError as error:
        raise infer.shape_error(call, f"{name}: {error}") from None
    if sorted(layout.letters) != sorted(letters):
        raise infer.shape_error(
            call, f'{name} is an order of the letters "{letters}", not "{text}"'
        )
    return layout


def extents_of(info: TensorStructInfo, layout: Layout, letters: str) -> list[PrimExpr]:
    """The extents of a tensor of known shape on the axes that `letters` name."""
    assert info.values is not None
    extents = layout.gathered(info.values)
    return [dims.simplify(extents[letter]) for letter in letters]


def arranged(values: Sequence[PrimExpr], letters: str, layout: Layout) -> list[PrimExpr]:
    """The extents of the axes `letters`, in the order of `layout`."""
    extents = layout.spread(dict(zip(letters, values, strict=True)))
    return [dims.simplify(extent) for extent in extents]


def without_blocks(layout: str) -> str:
    """A layout without the inner parts of axes, in which operators compute."""
    return "".join(Layout(layout).letters)


def check_rank(call: Call, index: int, info: TensorStructInfo, layout: Layout) -> None:
    """Refuses a tensor known to have another number of dimensions than a layout."""
    infer.need_rank(call, index, info, len(layout), layout.name)


def paddings(padding: Extents, rank: int) -> list[int]:
    """Widths before and behind: one for all, one per axis, or all those before, then behind."""
    widths = [whole(width) for width in several(padding, rank)]
    return widths * 2 if len(widths) == rank else widths


def numbers(value: Extents, rank: int) -> list[int]:
    """A number for each spatial axis."""
    return [whole(number) for number in several(value, rank)]


def pool_attrs(
    rank: int, pool_size: Extents, strides: Extents, padding: Extents, dilation: Extents,
    ceil_mode: bool, count_include_pad: bool, layout: str, out_layout: str | None,
) -> dict[str, object]:  # fmt: skip
    """The attributes of a pool, and of its gradient, in the order in which they are printed."""
    return {
        "pool_size": numbers(pool_size, rank), "strides": numbers(strides, rank),
        "dilation": numbers(dilation, rank), "padding": paddings(padding, rank),
        "ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "layout": layout,
        "out_layout": out_layout or layout,
    }  # fmt: skip


def check_counts(call: Call, rank: int, **expected: int) -> None:
    """Refuses attributes that do not have the expected count of numbers."""
    for name, count in expected.items():
        numbers = infer.attribute(call, name)
        if len(numbers) != count:
            raise infer.shape_error(
                call, f"{name} needs {count} number(s) for {rank} spatial axes, not {list(numbers)}"
            )


def window_extent(
    call: Call,
    extent: PrimExpr,
    window: PrimExpr | int,
    stride: int,
    padding: int,
    dilation: int,
    *,
    ceil: bool = False,
    behind: int = 0,
) -> PrimExpr:
    """How many windows fit along an axis with `padding` elements more, `behind` of them at its end.
    With `ceil` a last one counts that is only partly inside, but not one that begins behind."""
    width = (window - 1) * dilation + 1
    room = dims.simplify(extent + padding - width)
    number = constant_int(room)
    if number is not None and number < 0:
        wide = dims.simplify(width) if isinstance(width, PrimExpr) else prim_extent(width)
        raise infer.shape_error(
            call,
            f"a window of {infer.text(wide)} does not fit into {infer.text(extent)} elements "
            f"padded by {padding}",
        )
    if not ceil:
        return dims.simplify(room // stride + 1)
    count = (room + (stride - 1)) // stride + 1
    if not isinstance(width, int) or behind + stride > width:
        count = minimum(count, (extent + (padding - behind - 1)) // stride + 1)
    return dims.simplify(count)
