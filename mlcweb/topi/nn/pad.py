"""Padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.shapes import Extent, Scalar


def pad(
    data: Tensor,
    pad_before: Sequence[Extent],
    pad_after: Sequence[Extent] | None = None,
    pad_value: Scalar = 0.0,
    name: str = "PadInput",
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """`data` with so many elements of `pad_value` before and behind in each dimension."""
    after = pad_before if pad_after is None else pad_after
    if len(pad_before) != data.ndim or len(after) != data.ndim:
        raise DiagnosticError(
            f"pad: {len(pad_before)} and {len(after)} widths for {data.ndim} dimension(s)"
        )
    shape = [
        shapes.simplified(extent + low + high)
        for extent, low, high in zip(data.shape, pad_before, after, strict=True)
    ]
    value = arithmetic.cast(data.dtype, pad_value)

    def element(*index: PrimExpr) -> PrimExpr:
        inside: list[PrimExpr] = []
        conditions: list[PrimExpr] = []
        for i, extent, low, high in zip(index, data.shape, pad_before, after, strict=True):
            if shapes.constant(low) != 0 or shapes.constant(high) != 0:
                conditions.append(i >= low)
                conditions.append(i < extent + low)
            inside.append(i - low)
        if not conditions:
            return data(*inside)
        return intrinsics.if_then_else(logic.all(*conditions), data(*inside), value)

    return compute(shape, element, name, tag=f"{tags.INJECTIVE},pad", attrs=attrs)


def mirror_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """`data` continued by its mirror image; "REFLECT" does not repeat the border."""
    offset = {"SYMMETRIC": 0, "REFLECT": 1}.get(mode)
    if offset is None:
        raise DiagnosticError(f'mirror_pad: the mode is "SYMMETRIC" or "REFLECT", not {mode!r}')
    after = pad_before if pad_after is None else pad_after
    shape = [
        extent + (low + high)
        for extent, low, high in zip(data.shape, pad_before, after, strict=True)
    ]

    def mirrored(i: PrimExpr, extent: PrimExpr, low: int) -> PrimExpr:
        place = i - low
        before = low - i - (1 - offset)
        behind = 2 * extent - place - 1 - offset
        inside = arithmetic.select(place < extent, place, behind)
        return arithmetic.select(place < 0, before, inside)

    def element(*index: PrimExpr) -> PrimExpr:
        return data(
            *(
                mirrored(i, extent, low)
                for i, extent, low in zip(index, data.shape, pad_before, strict=True)
            )
        )

    return compute(shape, element, name, tag=tags.INJECTIVE)


def _mapped_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None,
    name: str,
    source: Callable[[PrimExpr, PrimExpr], PrimExpr],
) -> Tensor:
    """`data` continued by its own elements: `source(i, extent)` is the place of the element for
    the place i, which is negative before the data."""
    after = pad_before if pad_after is None else pad_after
    widths = list(zip(data.shape, pad_before, after, strict=True))
    shape = [extent + (low + high) for extent, low, high in widths]

    def element(*index: PrimExpr) -> PrimExpr:
        return data(
            *(
                source(i - low, extent) if low or high else i
                for i, (extent, low, high) in zip(index, widths, strict=True)
            )
        )

    return compute(shape, element, name, tag=tags.INJECTIVE)


def reflect_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    name: str = "ReflectPadInput",
) -> Tensor:
    """`data` continued by its mirror image, in which the border does not stand twice."""

    def source(i: PrimExpr, extent: PrimExpr) -> PrimExpr:
        i = arithmetic.select(i < 0, -i, i)
        last = extent - 1
        return arithmetic.select(i > last, 2 * last - i, i)

    return _mapped_pad(data, pad_before, pad_after, name, source)


def replicate_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    name: str = "ReplicatePadInput",
) -> Tensor:
    """`data` continued by its border."""

    def source(i: PrimExpr, extent: PrimExpr) -> PrimExpr:
        return arithmetic.minimum(arithmetic.maximum(i, 0), extent - 1)

    return _mapped_pad(data, pad_before, pad_after, name, source)


def circular_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    name: str = "CircularPadInput",
) -> Tensor:
    """`data` continued by its other end."""
    return _mapped_pad(data, pad_before, pad_after, name, arithmetic.floormod)
