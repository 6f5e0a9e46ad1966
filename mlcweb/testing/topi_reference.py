"""`tvm.topi.testing`: what operators of TOPI compute, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isfunction
from itertools import product
from typing import Any

import numpy as np

from mlcweb.testing import more_references

globals().update({name: f for name, f in vars(more_references).items() if isfunction(f)})

Array = Any
Size = int | Sequence[int] | str


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _pads(padding: Size, kernel: Sequence[int], stride: Sequence[int]) -> list[tuple[int, int]]:
    """Before and after each of two axes; "SAME" pads as little as gives size / stride results."""
    if padding == "VALID":
        return [(0, 0), (0, 0)]
    if padding == "SAME":
        totals = [max(k - s, 0) for k, s in zip(kernel, stride, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, int):
        return [(padding, padding)] * 2
    sizes = [int(size) for size in padding]
    if len(sizes) == 2:
        return [(sizes[0], sizes[0]), (sizes[1], sizes[1])]
    return [(sizes[0], sizes[2]), (sizes[1], sizes[3])]


def dilate_python(
    input_np: Array, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: Any = None
) -> Array:
    """`strides - 1` values between the elements of each axis."""
    shape = [(size - 1) * stride + 1 for size, stride in zip(input_np.shape, strides, strict=True)]
    out = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    out[tuple(slice(None, None, stride) for stride in strides)] = input_np
    return out


def conv2d_nchw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Size, groups: int = 1
) -> Array:
    """A convolution: data (n, c, h, w), weights (o, c // groups, kh, kw)."""
    strides, kernel = _pair(stride), w_np.shape[2:]
    padded = np.pad(a_np, [(0, 0), (0, 0), *_pads(padding, kernel, strides)])
    views = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    views = views[:, :, :: strides[0], :: strides[1]]
    parts = [
        np.einsum("nchwij,ocij->nohw", data, weights)
        for data, weights in zip(
            np.split(views, groups, axis=1), np.split(w_np, groups, axis=0), strict=True
        )
    ]
    return np.concatenate(parts, axis=1).astype(a_np.dtype)


def conv2d_nhwc_python(
    a_np: Array, w_np: Array, stride: Any, padding: Size, groups: int = 1
) -> Array:
    """A convolution: data (n, h, w, c), weights (kh, kw, c // groups, o)."""
    data, weights = a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1)
    return conv2d_nchw_python(data, weights, stride, padding, groups).transpose(0, 2, 3, 1)


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: Any, padding: Size) -> Array:
    """A convolution: data (h, w, c, n), weights (kh, kw, c, o)."""
    data, weights = a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1)
    return conv2d_nchw_python(data, weights, stride, padding).transpose(2, 3, 1, 0)


def depthwise_conv2d_python_nchw(
    input_np: Array, filter_np: Array, stride: Any, padding: Size
) -> Array:
    """Each channel by its own filters, of shape (c, multiplier, kh, kw)."""
    channels, multiplier = filter_np.shape[:2]
    weights = filter_np.reshape(channels * multiplier, 1, *filter_np.shape[2:])
    return conv2d_nchw_python(input_np, weights, stride, padding, channels)


def conv2d_transpose_nchw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Size, output_padding: Any = (0, 0),
    groups: int = 1,
) -> Array:  # fmt: skip
    """The transpose of a convolution: data (n, c, h, w), weights (c, o / groups, kh, kw)."""
    if groups > 1:
        parts = zip(np.split(a_np, groups, 1), np.split(w_np, groups), strict=True)
        options = (stride, padding, output_padding)
        return np.concatenate([conv2d_transpose_nchw_python(*p, *options) for p in parts], 1)
    kernel, strides, extra = w_np.shape[2:], _pair(stride), _pair(output_padding)
    data = dilate_python(a_np, (1, 1, *strides))
    pads = _pads(padding, kernel, strides)
    around = [
        (k - 1 - before, k - 1 - after + more)
        for k, (before, after), more in zip(kernel, pads, extra, strict=True)
    ]
    data = np.pad(data, [(0, 0), (0, 0), *around])
    return conv2d_nchw_python(data, w_np[:, :, ::-1, ::-1].transpose(1, 0, 2, 3), 1, 0)


def dense(
    x: Array, y: Array, bias: Array | None, use_bias: bool = False, use_relu: bool = False,
    out_dtype: Any = None,
) -> Array:  # fmt: skip
    """x @ y.T, plus the bias."""
    out = x.astype(out_dtype or x.dtype) @ y.T.astype(out_dtype or y.dtype)
    out = out + bias if use_bias else out
    return np.maximum(out, 0) if use_relu else out


def batch_matmul(
    x: Array, y: Array, out_dtype: Any = None, trans_x: bool = False, trans_y: bool = True
) -> Array:
    """A product of matrices for each of a batch, one of which may be all of it."""
    a = x.swapaxes(1, 2) if trans_x else x
    b = y.swapaxes(1, 2) if trans_y else y
    return np.matmul(a.astype(out_dtype or x.dtype), b.astype(out_dtype or y.dtype))


def softmax_python(a_np: Array, axis: int = 1) -> Array:
    """exp(a) by its sum along an axis."""
    powers = np.exp(a_np - a_np.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax_python(a_np: Array, axis: int = 1) -> Array:
    """The logarithm of the softmax."""
    shifted = a_np - a_np.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _normalized(data: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean, variance = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    return (data - mean) / np.sqrt(variance + epsilon)


def layer_norm_python(
    data: Array, gamma: Array, beta: Array | None, axis: Any, epsilon: float = 1e-5
) -> Array:
    """Mean 0 and variance 1 along axes, then a factor and a term for each of their elements."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    out = _normalized(data.astype("float32"), axes, epsilon)
    around = [data.shape[a] if a in {x % data.ndim for x in axes} else 1 for a in range(data.ndim)]
    out = out * gamma.reshape(around)
    return (out if beta is None else out + beta.reshape(around)).astype(data.dtype)


def rms_norm_python(data: Array, weight: Array, axis: Any, epsilon: float = 1e-5) -> Array:
    """A mean of squares of 1 along axes, then a factor for each of their elements."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    wide = data.astype("float32")
    out = wide / np.sqrt((wide**2).mean(axes, keepdims=True) + epsilon)
    around = [data.shape[a] if a in {x % data.ndim for x in axes} else 1 for a in range(data.ndim)]
    return (out * weight.reshape(around)).astype(data.dtype)


def l2_normalize_python(a_np: Array, eps: float, axis: Any = None) -> Array:
    """Vectors of length 1, or 0 where they are shorter than the root of `eps`."""
    axes = tuple(axis) if isinstance(axis, list) else axis
    return a_np / np.sqrt(np.maximum((a_np**2).sum(axes, keepdims=True), eps))


def poolnd_python(
    np_data: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int],
    padding_before: Sequence[int], padding_after: Sequence[int], pool_type: str,
    count_include_pad: bool = True, ceil_mode: bool = False, dtype: str = "float32",
    layout: str | None = None,
) -> Array:  # fmt: skip
    """The maximum ("max") or mean ("avg") of windows over the last axes."""
    first = np_data.ndim - len(kernel)
    data = np_data.astype(dtype)
    counts = np.ones(np_data.shape, dtype)
    windows, shape = [], []
    for axis, (size, stride, step) in enumerate(zip(kernel, strides, dilation, strict=True)):
        extent = np_data.shape[first + axis] + padding_before[axis] + padding_after[axis]
        room = extent - (size - 1) * step - 1
        shape.append((-(-room // stride) if ceil_mode else room // stride) + 1)
        windows.append([at * step for at in range(size)])
    lowest = -np.inf if pool_type == "max" else 0
    pads = [(0, 0)] * first + [
        (before, after + stride)
        for before, after, stride in zip(padding_before, padding_after, strides, strict=True)
    ]
    data = np.pad(data, pads, constant_values=lowest)
    counts = np.pad(counts, pads, constant_values=1 if count_include_pad else 0)
    ends = [np_data.shape[first + a] + padding_before[a] + padding_after[a]
            for a in range(len(kernel))]  # fmt: skip
    inside = np.zeros_like(counts)
    inside[(..., *(slice(0, end) for end in ends))] = 1
    counts = counts * inside

    def views(array: Array) -> list[Array]:
        return [
            array[
                (
                    ...,
                    *(
                        slice(at, at + (size - 1) * stride + 1, stride)
                        for at, size, stride in zip(place, shape, strides, strict=True)
                    ),
                )
            ]
            for place in product(*windows)
        ]

    if pool_type == "max":
        return np.max(views(data), axis=0).astype(dtype)
    return (np.sum(views(data), axis=0) / np.maximum(np.sum(views(counts), axis=0), 1)).astype(
        dtype
    )


def strided_slice_python(
    data: Array, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[int] = (),
    slice_mode: str = "end", axes: Sequence[int] | None = None,
) -> Array:  # fmt: skip
    """From `begin` to before `end`, or `end` elements where the mode is "size"."""
    places = [slice(None)] * data.ndim
    for number, axis in enumerate(range(len(begin)) if axes is None else axes):
        first, stop = int(begin[number]), end[number] if number < len(end) else None
        stride = int(strides[number]) if number < len(strides) else 1
        if slice_mode == "size":
            stop, stride = None if stop in (None, -1) else first + int(stop), 1
        places[axis] = slice(first, stop, stride)
    return data[tuple(places)]


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """Elements at indices along an axis."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """Elements at places, whose coordinates are along the first axis of `indices_np`."""
    return a_np[tuple(indices_np.astype("int64"))]


def one_hot(
    indices: Array, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str
) -> Array:
    """`on_value` at the index along a new axis, `off_value` elsewhere."""
    chosen = np.expand_dims(indices, -1) == np.arange(depth)
    out = np.where(chosen, on_value, off_value).astype(dtype)
    return out if axis == -1 else np.moveaxis(out, -1, axis)


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """Blocks of pixels as channels: data (n, c, h, w)."""
    n, c, h, w = data.shape
    blocks = data.reshape(n, c, h // block_size, block_size, w // block_size, block_size)
    shape = (n, c * block_size**2, h // block_size, w // block_size)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(shape)


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """Channels as blocks of pixels: data (n, c, h, w); `mode` is "DCR" or "CRD"."""
    n, c, h, w = data.shape
    rest = c // block_size**2
    if mode == "DCR":
        blocks = data.reshape(n, block_size, block_size, rest, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = data.reshape(n, rest, block_size, block_size, h, w).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, rest, h * block_size, w * block_size)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"topi.testing has no {name} here: compute the expected numbers with NumPy, and compare by "
        "tvm.testing.assert_allclose"
    )
