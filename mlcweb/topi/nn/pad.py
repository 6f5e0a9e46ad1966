"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags

PadPair = tuple[int, int, int, int]
"""Top, left, bottom, right."""


def pad(
    data: Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
) -> Tensor:
    """`data` with so many elements of `pad_value` before and behind in each dimension."""
    after = pad_before if pad_after is None else pad_after
    if len(pad_before) != data.ndim or len(after) != data.ndim:
        raise DiagnosticError(
            f"pad: {len(pad_before)} and {len(after)} widths for {data.ndim} dimension(s)"
        )
    shape = [
        arithmetic.add(arithmetic.add(extent, low), high)
        for extent, low, high in zip(data.shape, pad_before, after, strict=True)
    ]
    value = arithmetic.cast(data.dtype, pad_value)

    def element(*index: PrimExpr) -> Any:
        inside: list[PrimExpr] = []
        conditions: list[PrimExpr] = []
        for i, extent, low, high in zip(index, data.shape, pad_before, after, strict=True):
            if shapes.constant(low) == 0 and shapes.constant(high) == 0:
                inside.append(i)
                continue
            conditions.append(arithmetic.greater_equal(i, low))
            conditions.append(arithmetic.less(i, arithmetic.add(extent, low)))
            inside.append(arithmetic.subtract(i, low))
        if not conditions:
            return data(*inside)
        return intrinsics.if_then_else(logic.all(*conditions), data(*inside), value)

    return compute(shape, element, name, tag=f"{tags.INJECTIVE},pad")


def mirror_pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int], mode: str = "SYMMETRIC"
) -> Tensor:
    """`data` continued by its mirror image; "REFLECT" does not repeat the border."""
    offset = {"SYMMETRIC": 0, "REFLECT": 1}.get(mode)
    if offset is None:
        raise DiagnosticError(f'mirror_pad: the mode is "SYMMETRIC" or "REFLECT", not {mode!r}')
    shape = [
        arithmetic.add(extent, low + high)
        for extent, low, high in zip(data.shape, pad_before, pad_after, strict=True)
    ]

    def mirrored(i: PrimExpr, extent: PrimExpr, low: int) -> PrimExpr:
        place = i - low
        before = low - i - (1 - offset)
        behind = 2 * extent - place - 1 - offset
        inside = arithmetic.select(place < extent, place, behind)
        return arithmetic.select(arithmetic.less(place, 0), before, inside)

    def element(*index: PrimExpr) -> Any:
        return data(
            *(
                mirrored(i, extent, low)
                for i, extent, low in zip(index, data.shape, pad_before, strict=True)
            )
        )

    return compute(shape, element, "MirrorPadInput", tag=tags.INJECTIVE)


def pad_widths(operator: str, padding: Any, kernel: Sequence[Any]) -> PadPair:
    """(top, left, bottom, right) of a padding: one number, (h, w), (top, left, bottom, right),
    "VALID" or "SAME" (of a dilated kernel `kernel` of two constant extents)."""
    if padding == "VALID":
        return 0, 0, 0, 0
    if padding == "SAME":
        high, wide = (int(shapes.constant(extent) or 1) - 1 for extent in kernel)
        return high // 2, wide // 2, high - high // 2, wide - wide // 2
    widths = [padding] if not isinstance(padding, (tuple, list)) else list(padding)
    numbers = [shapes.constant(width) for width in widths]
    if any(number is None for number in numbers) or len(numbers) not in (1, 2, 4):
        raise DiagnosticError(
            f"{operator}: padding is a number, (h, w), (top, left, bottom, right), "
            f'"SAME" or "VALID", not {padding!r}'
        )
    whole = [int(number) for number in numbers if number is not None]
    if len(whole) == 4:
        return whole[0], whole[1], whole[2], whole[3]
    high, wide = (whole * 2)[:2]
    return high, wide, high, wide


def pair(operator: str, what: str, value: Any) -> tuple[int, int]:
    """A number for each of height and width: one for both, or two."""
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    numbers = [shapes.constant(item) for item in items]
    if any(number is None for number in numbers) or len(numbers) not in (1, 2):
        raise DiagnosticError(f"{operator}: {what} is a number or a pair, not {value!r}")
    first, second = (numbers * 2)[:2]
    assert first is not None
    assert second is not None
    return first, second
