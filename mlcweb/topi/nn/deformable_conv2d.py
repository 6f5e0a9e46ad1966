"""Convolutions whose windows take pixels at offsets that are data (Dai et al., "Deformable
Convolutional Networks", 2017)."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, logic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.window import numbers, paddings
from mlcweb.topi.shapes import Numbers, Padding


def _deformable(layout: str, kernel_layout: str) -> Callable[..., Tensor]:
    operator = f"deformable_conv2d_{layout.lower()}"

    def build(
        data: Tensor, offset: Tensor, kernel: Tensor, strides: Numbers, padding: Padding,
        dilation: Numbers, deformable_groups: int, groups: int, out_dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        for x, letters in ((data, layout), (offset, layout), (kernel, kernel_layout)):
            shapes.need_rank(operator, x, 4, letters)
        image = dict(zip(layout, data.shape, strict=True))
        weights = dict(zip(kernel_layout, kernel.shape, strict=True))
        outputs = dict(zip(layout, offset.shape, strict=True))
        sizes = [weights[letter] for letter in "HW"]
        if not shapes.same_extent(image["C"], weights["I"] * groups):
            raise DiagnosticError(
                f"{operator}: the kernel {shapes.show(kernel.shape)} does not fit the data "
                f"{shapes.show(data.shape)} with {groups} group(s)"
            )
        steps = numbers(operator, "stride", strides, 2)
        spread = numbers(operator, "dilation", dilation, 2)
        widths = [(size - 1) * d + 1 for size, d in zip(sizes, spread, strict=True)]
        low, _ = paddings(operator, padding, widths)
        dtype = out_dtype or data.dtype
        per_offset = image["C"] // deformable_groups

        def pixel(n: PrimExpr, c: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
            place = {"N": n, "C": c, "H": y, "W": x}
            return data(*(place[letter] for letter in layout))

        def sampled(*index: PrimExpr) -> PrimExpr:
            n, c, ky, kx, *at = index
            first = c // per_offset * sizes[0] * sizes[1] + ky * sizes[1] + kx
            points, outside = [], []
            for axis, (letter, k) in enumerate((("H", ky), ("W", kx))):
                place = {"N": n, "C": first * 2 + axis, "H": at[0], "W": at[1]}
                start = at[axis] * steps[axis] - low[axis] + k * spread[axis]
                moved = offset(*(place[letter] for letter in layout))
                point = arithmetic.cast(offset.dtype, start) + moved
                end = arithmetic.cast(offset.dtype, image[letter])
                outside += [point < 0.0, point >= end]
                points.append(point)
            value = _bilinear(lambda y, x: pixel(n, c, y, x), points, image)
            zero = arithmetic.const(0, data.dtype)
            return intrinsics.if_then_else(logic.any(*outside), zero, value)

        samples = compute(
            [image["N"], image["C"], *sizes, outputs["H"], outputs["W"]],
            sampled,
            varargs_names=["n", "c", "kh", "kw", "y", "x"],
        )
        extents = {"C": weights["I"], "H": sizes[0], "W": sizes[1]}
        names = {"C": "rc", "H": "ry", "W": "rx"}
        sums = {letter: reduce_axis((0, extents[letter]), names[letter]) for letter in "CHW"}
        per_group = weights["O"] // groups

        def element(*index: PrimExpr) -> PrimExpr:
            place = dict(zip(layout, index, strict=True))
            channel, ky, kx = (sums[letter].var for letter in "CHW")
            own = channel
            if groups > 1:
                own = place["C"] // per_group * weights["I"] + channel
            sample = samples(place["N"], own, ky, kx, place["H"], place["W"])
            weight = {"O": place["C"], "I": channel, "H": ky, "W": kx}
            factor = kernel(*(weight[letter] for letter in kernel_layout))
            return reducers.sum(
                arithmetic.cast(dtype, sample) * arithmetic.cast(dtype, factor),
                [sums[letter] for letter in layout if letter != "N"],
            )

        outputs["N"], outputs["C"] = image["N"], weights["O"]
        return compute([outputs[letter] for letter in layout], element, tag=operator)

    build.__name__ = build.__qualname__ = operator
    build.__doc__ = (
        f"A convolution of data {layout} by a kernel {kernel_layout} at offsets {layout}: for each "
        "pixel of the result, deformable group and position in the window, (y, x) along C."
    )
    return build


def _bilinear(
    pixel: Callable[[PrimExpr, PrimExpr], PrimExpr],
    points: list[PrimExpr],
    image: dict[str, PrimExpr],
) -> PrimExpr:
    """The value between four pixels; those behind the last row or column are zero."""
    taps = []
    for letter, point in zip("HW", points, strict=True):
        floor = intrinsics.floor(point)
        low = arithmetic.cast("int32", floor)
        inside = low + 1 < arithmetic.cast("int32", image[letter])
        taps.append([(low, 1.0 - (point - floor), None), (low + 1, point - floor, inside)])
    total: PrimExpr | None = None
    for y, above, first in taps[0]:
        for x, beside, second in taps[1]:
            value = pixel(y, x)
            value = value * arithmetic.cast(value.dtype, above * beside)
            conditions = [one for one in (first, second) if one is not None]
            if conditions:
                zero = arithmetic.const(0, value.dtype)
                value = intrinsics.if_then_else(logic.all(*conditions), value, zero)
            total = value if total is None else total + value
    assert total is not None
    return total


deformable_conv2d_nchw = _deformable("NCHW", "OIHW")
deformable_conv2d_nhwc = _deformable("NHWC", "HWIO")
