"""Fourier transforms, as sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.shapes import Extent

_cos, _sin = (intrinsics.unary_functions[name] for name in ("cos", "sin"))


def stft(
    data: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor, normalized: bool,
    onesided: bool, output_shape: Sequence[Extent],
) -> Tensor:  # fmt: skip
    """The Fourier transforms of windows that move over signals, without padding.

    Args:
        data: (signals, samples).
        hop_length: samples from a window to the next one.
        win_length: samples of a window, of which `window` has the factors, (win_length,).
        normalized: divide by the square root of `n_fft`.
        onesided: whether frequencies above the half are left out, which `output_shape` says, too.
        output_shape: (signals, frequencies, windows, 2) of the result, real and imaginary part.
    """
    shapes.need_rank("stft", data, 2, "(signals, samples)")
    shapes.need_rank("stft", window, 1, "(win_length,)")
    if len(output_shape) != 4:
        raise DiagnosticError(
            f"stft: output_shape {shapes.show(shapes.as_shape(output_shape))} must be "
            "(signals, frequencies, windows, 2)"
        )
    k = reduce_axis((0, win_length), "k")

    def element(signal: PrimExpr, row: PrimExpr, column: PrimExpr, part: PrimExpr) -> PrimExpr:
        cos, sin = _unit(row, k.var, win_length, data.dtype, -1)
        sample = window(k.var) * data(signal, column * hop_length + k.var)
        return reducers.sum(
            sample * arithmetic.select(arithmetic.equal(part, 0), cos, sin), [k]
        )  # fmt: skip

    sums = compute(tuple(output_shape), element, "stft_sums" if normalized else "stft")
    if not normalized:
        return sums
    factor = arithmetic.const(1 / sqrt(n_fft), data.dtype)
    return compute(sums.shape, lambda *index: sums(*index) * factor, "stft")


def dft(re_data: Tensor, im_data: Tensor, inverse: bool) -> list[Tensor]:
    """The discrete Fourier transform along the last axis, or its inverse, which is divided by the
    number of elements.

    Args:
        re_data, im_data: the real and the imaginary part, of one shape.

    Returns: the two parts of the result.
    """
    shape, dtype = re_data.shape, re_data.dtype
    if len(im_data.shape) != len(shape) or not shape:
        raise DiagnosticError(
            f"dft: the parts {shapes.show(shape)} and {shapes.show(im_data.shape)} must be of one "
            "shape, with at least one axis"
        )
    count = shape[-1]
    factor: PrimExpr = arithmetic.const(1.0, dtype)
    if bool(inverse):
        factor = factor / arithmetic.cast(dtype, count)

    def part(name: str, imaginary: bool) -> Tensor:
        k = reduce_axis((0, count), "k")

        def element(*index: PrimExpr) -> PrimExpr:
            cos, sin = _unit(index[-1], k.var, count, dtype, 1 if inverse else -1)
            re, im = (data(*index[:-1], k.var) for data in (re_data, im_data))
            return reducers.sum(re * sin + im * cos if imaginary else re * cos - im * sin, [k])

        sums = compute(shape, element, f"{name}_sums")
        return compute(shape, lambda *index: sums(*index) * factor, name)

    return [part("dft_re", False), part("dft_im", True)]


def _unit(
    n: PrimExpr, k: PrimExpr, count: Extent, dtype: str, sign: int
) -> tuple[PrimExpr, PrimExpr]:
    """Cosine and sine of 2 pi n k / count, with a sign. The product is reduced before it becomes a
    float, which would be too coarse for it."""
    turn = arithmetic.cast(dtype, n * k % count)
    angle = turn * arithmetic.const(sign * 2 * pi, dtype) / arithmetic.cast(dtype, count)
    return _cos(angle), _sin(angle)
