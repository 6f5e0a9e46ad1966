"""Operators on sequences: masks by their lengths, and windows that move along them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes
from mlcweb.topi.shapes import Scalar
from mlcweb.topi.transform import moved


def sequence_mask(
    data: Tensor, valid_length: Tensor, mask_value: Scalar = 0, axis: int = 0
) -> Tensor:
    """`data` with `mask_value` behind the end of each sequence.

    Args:
        data: sequences along `axis`, 0 or 1; the other of the two counts the sequences.
        valid_length: their lengths.
    """
    if axis not in (0, 1) or data.ndim < 2 or valid_length.ndim != 1:
        raise DiagnosticError(
            f"sequence_mask: sequences along axis 0 or 1 of {shapes.show(data.shape)}, not {axis}; "
            "and one length for each"
        )
    value = arithmetic.cast(data.dtype, mask_value)

    def element(*index: PrimExpr) -> PrimExpr:
        time = arithmetic.cast(valid_length.dtype, index[axis])
        behind = time >= valid_length(index[1 - axis])
        return intrinsics.if_then_else(behind, value, data(*index))

    return moved(data.shape, element, "T_sequence_mask")


def sliding_window(
    data: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """Windows over the dimensions from `axis` on: their positions first, then their elements."""
    place = shapes.axis_of("sliding_window", axis, data.ndim)
    count = data.ndim - place
    if len(window_shape) != count or len(strides) != count:
        raise DiagnosticError(
            f"sliding_window: {len(window_shape)} extents and {len(strides)} strides of windows "
            f"over {count} dimension(s)"
        )
    outside = [
        (extent - size) // step + 1
        for extent, size, step in zip(data.shape[place:], window_shape, strides, strict=True)
    ]

    def element(*index: PrimExpr) -> PrimExpr:
        starts, inside = index[place : place + count], index[place + count :]
        moved_to = [i * step + j for i, step, j in zip(starts, strides, inside, strict=True)]
        return data(*index[:place], *moved_to)

    return moved([*data.shape[:place], *outside, *window_shape], element, "T_sliding_window")


def hamming_window(
    window_size: int, periodic: bool, alpha: float, beta: float, dtype: str
) -> Tensor:
    """alpha - beta cos(2 pi n / N) for n below `window_size`; N is the size, or one less where the
    window is not periodic."""
    steps = window_size if periodic else window_size - 1

    def element(i: PrimExpr) -> PrimExpr:
        angle = arithmetic.cast(dtype, i) * (2 * math.pi) / arithmetic.const(max(steps, 1), dtype)
        return arithmetic.const(alpha, dtype) - intrinsics.unary_functions["cos"](angle) * beta

    if window_size == 1:
        return compute((1,), lambda i: arithmetic.const(1, dtype), "hamming_window")
    return compute((window_size,), element, "hamming_window")
