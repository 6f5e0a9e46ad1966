"""Functions of layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mlcweb.stand_ins.torch.functions import function, relu, sigmoid, softmax, tanh
from mlcweb.stand_ins.torch.tensors import refusal, refusing

__all__ = [
    "conv2d", "layer_norm", "linear", "max_pool2d", "nll_loss", "pair", "relu", "sigmoid",
    "softmax", "tanh",
]  # fmt: skip


__getattr__ = refusing("torch.nn.functional")


@function
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x (…, n), weight (m, n) and bias (m) give (…, m)."""
    product = x @ weight.T
    return product if bias is None else product + bias


@function
def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """x (batch, c, h, w), weight (k, c / groups, kh, kw) and bias (k) give (batch, k, …)."""
    if isinstance(padding, str):
        raise refusal(f'conv2d(padding="{padding}")')
    x = x if x.ndim == 4 else x[None]
    windows = _windows(x, weight.shape[2:], stride, padding, dilation, 0)
    batch, channels, rows, columns = windows.shape[:4]
    windows = windows.reshape(batch, groups, channels // groups, *windows.shape[2:])
    filters = weight.reshape(groups, -1, *weight.shape[1:])
    result = np.einsum("bgcijyx,gkcyx->bgkij", windows, filters, optimize=True)
    result = result.reshape(batch, -1, rows, columns)
    return result if bias is None else result + bias[:, None, None]


@function
def layer_norm(
    x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """x with its last axes, which have the shape `normalized_shape`, normalized."""
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size {list(x.shape)}"
        )
    axes = tuple(range(-len(shape), 0))
    centered = x - x.mean(axis=axes, keepdims=True)
    scale = np.sqrt(np.square(centered).mean(axis=axes, keepdims=True) + eps)
    result = (centered / scale).astype(x.dtype)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@function
def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest of each window of x (…, h, w)."""
    if ceil_mode or return_indices:
        raise refusal("max_pool2d(ceil_mode=…, return_indices=…)")
    stride = kernel_size if stride is None else stride
    return _windows(x, pair(kernel_size), stride, padding, dilation, -np.inf).max(axis=(-2, -1))


@function
def nll_loss(x: Any, target: Any, reduction: str = "mean") -> Any:
    """What x (batch, classes) says of the class of each sample, target (batch), negated."""
    losses = -x[np.arange(len(target)), target]
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


def pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _windows(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, outside: float
) -> np.ndarray:
    """Windows of x (…, h, w), shape (…, rows, columns, kh, kw)."""
    (top, left), (down, right), (dy, dx) = pair(padding), pair(stride), pair(dilation)
    widths = [(0, 0)] * (x.ndim - 2) + [(top, top), (left, left)]
    x = np.pad(x, widths, constant_values=outside)
    reach = ((kernel[0] - 1) * dy + 1, (kernel[1] - 1) * dx + 1)
    return sliding_window_view(x, reach, (-2, -1))[..., ::down, ::right, ::dy, ::dx]
