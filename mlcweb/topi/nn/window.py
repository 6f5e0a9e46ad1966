"""Windows that slide over the spatial axes of an image, in any layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.shapes import Numbers, Padding

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""The letters of the spatial axes in layouts, by how many there are."""


def numbers(operator: str, what: str, value: Any, count: int) -> list[int]:
    """A number for each of `count` axes; one stands for all."""
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    items = items * count if len(items) == 1 else items
    constants = [shapes.constant(item) for item in items]
    if None in constants or len(constants) != count:
        raise DiagnosticError(f"{operator}: {what} is a number or {count} of them, not {value!r}")
    return [int(number) for number in constants if number is not None]


def count_inside(
    start: PrimExpr, begin: PrimExpr | int | None, end: PrimExpr | int, size: int, dilation: int
) -> PrimExpr:
    """How many of the `size` positions start, start + dilation, … lie in [begin, end); `begin` is
    None where none lies before."""
    first = start
    if begin is not None:
        skipped = arithmetic.truncdiv(begin + (dilation - 1) - start, dilation)
        first = start + arithmetic.maximum(skipped, 0) * dilation
    last = arithmetic.minimum(start + (size - 1) * dilation, end - 1)
    return arithmetic.truncdiv(last - first, dilation) + 1


def paddings(
    operator: str, padding: Padding, window: Sequence[PrimExpr]
) -> tuple[list[int], list[int]]:
    """Widths before and behind each axis, of a padding as the operators take it: one number, one
    per axis, all widths before and then all behind, "VALID", or "SAME" (of constant windows)."""
    rank = len(window)
    if padding == "VALID":
        return [0] * rank, [0] * rank
    if padding == "SAME":
        missing = [int(shapes.constant(extent) or 1) - 1 for extent in window]
        return [m // 2 for m in missing], [m - m // 2 for m in missing]
    items = list(padding) if isinstance(padding, (tuple, list)) else [padding]
    if len(items) != 2 * rank:
        widths = numbers(operator, "padding", padding, rank)
        return widths, widths
    widths = numbers(operator, "padding", padding, 2 * rank)
    return widths[:rank], widths[rank:]


def check_layout(operator: str, layout: str, letters: str) -> None:
    """Refuses a layout that is no order of the letters."""
    if sorted(layout) != sorted(letters):
        raise DiagnosticError(
            f'{operator}: a layout is an order of the letters "{letters}", not {layout!r}'
        )


def layout_letters(operator: str, layout: str) -> tuple[str, str]:
    """One letter for each axis of a layout of images, and those of the spatial axes: "NCHWc" and
    "HW" for NCHW4c, whose last axis is the channel inside a block of 4."""
    match = re.fullmatch(r"([A-Z]*)(?:\d+(c))?", layout)
    axes, block = match.groups("") if match else (layout, "")
    spatial = SPATIAL.get(len(axes) - 2, "HW")
    check_layout(operator, axes, f"NC{spatial}")
    return axes + block, spatial


class Window:
    """A window of `kernel` extents that slides over the spatial axes of `data`.

    `padded` is the data with its padding, `output` how many windows there are along each axis.
    """

    def __init__(
        self,
        operator: str,
        data: Tensor,
        layout: str,
        kernel: Sequence[PrimExpr],
        strides: Numbers,
        padding: Padding,
        dilation: Numbers,
        pad_name: str,
    ) -> None:
        rank = len(kernel)
        self.layout, self.letters = layout, SPATIAL[rank]
        self.strides = numbers(operator, "stride", strides, rank)
        self.dilation = numbers(operator, "dilation", dilation, rank)
        spread = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilation, strict=True)]
        before, after = paddings(operator, padding, spread)
        image = [data.shape[layout.index(letter)] for letter in self.letters]
        self.output = [
            _count(extent, low + high, width, stride)
            for extent, low, high, width, stride in zip(
                image, before, after, spread, self.strides, strict=True
            )
        ]
        counts = [shapes.constant(extent) for extent in self.output]
        if any(count is not None and count < 1 for count in counts):
            raise DiagnosticError(
                f"{operator}: the window {shapes.show(spread)} is larger than the padded image "
                f"{shapes.show(image)}"
            )
        low, high = (
            [dict(zip(self.letters, widths, strict=True)).get(letter, 0) for letter in layout]
            for widths in (before, after)
        )
        self.padded = pad(data, low, high, name=pad_name)

    def pixel(self, place: dict[str, PrimExpr], inside: Sequence[PrimExpr]) -> PrimExpr:
        """The element at `inside` of the window at `place`; letters name the axes."""
        index = dict(place)
        for axis, letter in enumerate(self.letters):
            index[letter] = place[letter] * self.strides[axis] + inside[axis] * self.dilation[axis]
        return self.padded(*(index[letter] for letter in self.layout))


def _count(extent: PrimExpr, padding: int, width: PrimExpr, stride: int) -> PrimExpr:
    return shapes.simplified((extent + padding - width) // stride + 1)
