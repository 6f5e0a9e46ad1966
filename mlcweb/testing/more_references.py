"""More of `tvm.topi.testing`: norms, pools of a given size, and what moves or marks elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

Array = Any


def _along(values: Array, axis: int, ndim: int) -> Array:
    """Values for the elements of one axis, in a shape that broadcasts."""
    return values.reshape([values.size if a == axis % ndim else 1 for a in range(ndim)])


def _standardized(data: Array, axes: Any, epsilon: float) -> Array:
    mean, variance = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    return (data - mean) / np.sqrt(variance + epsilon)


def batch_norm(
    x: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, axis: int,
    epsilon: float, center: bool, scale: bool, training: bool, momentum: float,
) -> list[Array]:  # fmt: skip
    """Channels (along `axis`) with known mean and variance, or, `training`, with their own, which
    then move the known ones. Gives the result, the mean and the variance."""
    mean, variance = moving_mean, moving_var
    if training:
        others = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
        mean, variance = x.mean(others), x.var(others)
        moving_mean = (1 - momentum) * moving_mean + momentum * mean
        moving_var = (1 - momentum) * moving_var + momentum * variance
    out = (x - _along(mean, axis, x.ndim)) / np.sqrt(_along(variance, axis, x.ndim) + epsilon)
    out = out * _along(gamma, axis, x.ndim) if scale else out
    out = out + _along(beta, axis, x.ndim) if center else out
    return [out, moving_mean, moving_var]


def group_norm_python(
    data: Array, gamma: Array, beta: Array | None, num_groups: int, channel_axis: int,
    axes: Sequence[int], epsilon: float = 1e-5,
) -> Array:  # fmt: skip
    """Mean 0 and variance 1 of each group of channels, then a factor and a term for each."""
    shape = data.shape
    grouped = (*shape[:channel_axis], num_groups, -1, *shape[channel_axis + 1 :])
    inside = (channel_axis + 1, *(axis + (axis >= channel_axis) for axis in axes))
    out = _standardized(data.reshape(grouped).astype("float32"), inside, epsilon)
    out = out.reshape(shape).astype(data.dtype) * _along(gamma, channel_axis, data.ndim)
    return out if beta is None else out + _along(beta, channel_axis, data.ndim)


def instance_norm_python(
    data: Array, gamma: Array, beta: Array | None, axis: Any, epsilon: float = 1e-5
) -> Array:
    """Mean 0 and variance 1 along axes, then a factor and a term."""
    axes = tuple(axis) if isinstance(axis, list) else axis
    out = _standardized(data, axes, epsilon) * gamma
    return out if beta is None else out + beta


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    """Elements divided by a power of the mean of squares of `size` neighbours along an axis."""
    around = [(size // 2, size // 2) if a == axis else (0, 0) for a in range(a_np.ndim)]
    squares = np.lib.stride_tricks.sliding_window_view(
        np.pad(a_np * a_np, around), 2 * (size // 2) + 1, axis
    ).sum(-1)
    return a_np / (bias + alpha * squares / size) ** beta


def adaptive_pool(np_data: Array, out_size: Any, pool_type: str, layout: str) -> Array:
    """Means ("avg") or maxima of as many windows as `out_size` says, which cover all elements."""
    sizes = (out_size,) if isinstance(out_size, int) else tuple(out_size)
    first = 2 if layout.startswith("NC") else 1
    axes = tuple(range(first, first + len(sizes)))
    reduce = np.mean if pool_type == "avg" else np.max
    shape = list(np_data.shape)
    shape[first : first + len(sizes)] = sizes
    out = np.zeros(shape, np_data.dtype)
    for place in product(*map(range, sizes)):
        window, at = [slice(None)] * np_data.ndim, [slice(None)] * np_data.ndim
        for axis, size, index in zip(axes, sizes, place, strict=True):
            extent = np_data.shape[axis]
            window[axis] = slice(index * extent // size, -(-(index + 1) * extent // size))
            at[axis] = slice(index, index + 1)
        out[tuple(at)] = reduce(np_data[tuple(window)], axes, keepdims=True)
    return out


def conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any, groups: int = 1
) -> Array:
    """A convolution of data (n, c, w) with filters (o, c, k)."""
    from mlcweb.testing.topi_reference import conv2d_nchw_python, dilate_python
    from mlcweb.topi.utils import get_pad_tuple1d

    step, spread = (x[0] if isinstance(x, (tuple, list)) else x for x in (stride, dilation))
    filters = dilate_python(w_np, (1, 1, spread))
    left, right = get_pad_tuple1d(padding, (filters.shape[2],))
    padded = np.pad(a_np, [(0, 0), (0, 0), (left, right)])[:, :, None]
    return conv2d_nchw_python(padded, filters[:, :, None], (1, step), 0, groups)[:, :, 0]


def group_conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """`conv1d_ncw_python` of groups of channels."""
    return conv1d_ncw_python(a_np, w_np, stride, padding, dilation, groups)


def space_to_batch_nd_python(
    data: Array, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int],
    pad_value: float = 0,
) -> Array:  # fmt: skip
    """Blocks of the axes after the first one as more samples."""
    count, rest = len(block_shape), data.shape[1 + len(block_shape) :]
    widths = [(0, 0), *zip(pad_before, pad_after, strict=True), *[(0, 0)] * len(rest)]
    padded = np.pad(data, widths, constant_values=pad_value)
    counts = [n // b for n, b in zip(padded.shape[1:], block_shape, strict=False)]
    split = [n for pair in zip(counts, block_shape, strict=True) for n in pair]
    inside = range(2, 2 * count + 1, 2)
    order = [*inside, 0, *(i - 1 for i in inside), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    blocks = padded.reshape(data.shape[0], *split, *rest).transpose(order)
    return blocks.reshape(data.shape[0] * prod(block_shape), *counts, *rest)


def batch_to_space_nd_python(
    data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> Array:  # fmt: skip
    """Samples as blocks of the axes after the first one, less what is cropped."""
    count, rest = len(block_shape), data.shape[1 + len(block_shape) :]
    batch, sizes = data.shape[0] // prod(block_shape), data.shape[1 : 1 + count]
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    whole = [n * b for n, b in zip(sizes, block_shape, strict=True)]
    out = data.reshape(*block_shape, batch, *sizes, *rest).transpose(order)
    crops = zip(crop_begin_list, whole, crop_end_list, strict=True)
    places = [slice(begin, size - end) for begin, size, end in crops]
    return out.reshape(batch, *whole, *rest)[(slice(None), *places)]


def sequence_mask(data: Array, valid_length: Array, mask_value: float, axis: int) -> Array:
    """`mask_value` behind the valid length of each sequence; time is along axis 0 or 1."""
    time = _along(np.arange(data.shape[axis]), axis, data.ndim)
    return np.where(time >= _along(valid_length, 1 - axis, data.ndim), mask_value, data)


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: str) -> Array:
    """Where values belong in sorted rows, which are one for all or one for each row of values."""
    rows = values.reshape(-1, values.shape[-1])
    sequences = np.broadcast_to(
        sorted_sequence.reshape(-1, sorted_sequence.shape[-1]),
        (len(rows), sorted_sequence.shape[-1]),
    )
    side = "right" if right else "left"
    positions = [np.searchsorted(s, row, side) for s, row in zip(sequences, rows, strict=True)]
    return np.array(positions, out_dtype).reshape(values.shape)


def matrix_set_diag(
    input_np: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Array:
    """Matrices with diagonal `k`, or several from `k[0]` to `k[1]`, replaced. `align` says on which
    side those above ("RIGHT_…") and below are shorter than the rows of `diagonal`."""
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    rows = diagonal[..., None, :] if low == high else diagonal
    out = input_np.copy()
    for number in range(low, high + 1):
        row, column = max(-number, 0), max(number, 0)
        length = min(out.shape[-2] - row, out.shape[-1] - column)
        side = align.partition("_")[0 if number >= 0 else 2]
        begin = rows.shape[-1] - length if side == "RIGHT" and low != high else 0
        steps = np.arange(length)
        out[..., row + steps, column + steps] = rows[..., high - number, begin : begin + length]
    return out


def nll_loss(
    predictions: Array, targets: Array, weights: Array, reduction: str = "mean",
    ignore_index: int = -100,
) -> Array:  # fmt: skip
    """The weighted negative log likelihood of classes, along axis 1 of `predictions`."""
    counted = targets != ignore_index
    classes = np.where(counted, targets, 0)
    chosen = np.take_along_axis(predictions, np.expand_dims(classes, 1), 1).squeeze(1)
    loss = np.where(counted, -chosen * weights[classes], 0.0)
    if reduction == "mean":
        return loss.sum() / np.where(counted, weights[classes], 0).sum()
    return loss.sum() if reduction == "sum" else loss


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Array:
    """The elements from `begin` to before `end` along an axis; 0 or less counts from its end."""
    size = data.shape[axis]
    stop = size if end is None else end + size if end <= 0 else end
    return data.take(range(begin + size if begin < 0 else begin, min(stop, size)), axis)


def strided_set_python(
    data: Array, v: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
) -> Array:
    """An array with the elements of a slice replaced."""
    bounds = zip(begin, end, strides or [1] * len(begin), strict=True)
    out = data.copy()
    out[tuple(slice(*map(int, part)) for part in bounds)] = v
    return out
