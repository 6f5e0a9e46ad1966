"""The converters of layers: what `torch.nn` calls a module, as a call of the function it makes."""

from __future__ import annotations

from typing import Any

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.torch.functions import arithmetic, layers, movement, reductions
from mlcweb.relax.frontend.torch.translator import FUNCTIONS, TorchError, Translator, module

_PLAIN = {
    "ReLU": "relu", "ReLU6": "relu6", "Sigmoid": "sigmoid", "Tanh": "tanh", "SiLU": "silu",
    "Hardswish": "hardswish", "Hardsigmoid": "hardsigmoid", "Identity": "clone",
    "Dropout": "clone", "Dropout1d": "clone", "Dropout2d": "clone",
}  # fmt: skip
"""Layers that are a function of their input alone."""


def _plain(name: str) -> None:
    @module(name)
    def convert(t: Translator, layer: Any, x: Expr) -> Expr:
        return FUNCTIONS[_PLAIN[name]](t, x)


for _name in _PLAIN:
    _plain(_name)


@module("Linear")
def linear(t: Translator, layer: Any, x: Expr) -> Expr:
    return layers.linear(t, x, t.weight(layer.weight), t.optional_weight(layer.bias))


@module("Conv1d", "Conv2d", "Conv3d")
def conv(t: Translator, layer: Any, x: Expr) -> Expr:
    if layer.padding_mode != "zeros":
        raise TorchError(f'A convolution with padding_mode="{layer.padding_mode}" is not supported')
    weight, bias = t.weight(layer.weight), t.optional_weight(layer.bias)
    return layers.conv(
        t, x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups
    )


@module("ConvTranspose1d", "ConvTranspose2d")
def conv_transpose(t: Translator, layer: Any, x: Expr) -> Expr:
    weight, bias = t.weight(layer.weight), t.optional_weight(layer.bias)
    return layers.conv_transpose(
        t, x, weight, bias, layer.stride, layer.padding, layer.output_padding, layer.groups,
        layer.dilation,
    )  # fmt: skip


@module("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
def batch_norm(t: Translator, layer: Any, x: Expr) -> Expr:
    if layer.training or layer.running_mean is None:
        raise TorchError("A BatchNorm in training mode cannot be imported: use model.eval()")
    weight, bias = t.optional_weight(layer.weight), t.optional_weight(layer.bias)
    mean, var = t.weight(layer.running_mean), t.weight(layer.running_var)
    return layers.batch_norm(t, x, mean, var, weight, bias, eps=layer.eps)


@module("LayerNorm")
def layer_norm(t: Translator, layer: Any, x: Expr) -> Expr:
    weight, bias = t.optional_weight(layer.weight), t.optional_weight(layer.bias)
    return layers.layer_norm(t, x, layer.normalized_shape, weight, bias, layer.eps)


@module("RMSNorm")
def rms_norm(t: Translator, layer: Any, x: Expr) -> Expr:
    weight = t.optional_weight(layer.weight)
    return layers.rms_norm(t, x, layer.normalized_shape, weight, layer.eps)


@module("GroupNorm")
def group_norm(t: Translator, layer: Any, x: Expr) -> Expr:
    weight, bias = t.optional_weight(layer.weight), t.optional_weight(layer.bias)
    return layers.group_norm(t, x, layer.num_groups, weight, bias, layer.eps)


@module("MaxPool1d", "MaxPool2d")
def max_pool(t: Translator, layer: Any, x: Expr) -> Expr:
    return layers.max_pool(
        t, x, layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode,
        layer.return_indices,
    )  # fmt: skip


@module("AvgPool1d", "AvgPool2d")
def avg_pool(t: Translator, layer: Any, x: Expr) -> Expr:
    return layers.avg_pool(
        t, x, layer.kernel_size, layer.stride, layer.padding, layer.ceil_mode,
        layer.count_include_pad, getattr(layer, "divisor_override", None),
    )  # fmt: skip


@module("AdaptiveAvgPool1d", "AdaptiveAvgPool2d")
def adaptive_avg_pool(t: Translator, layer: Any, x: Expr) -> Expr:
    return layers.adaptive_avg_pool(t, x, layer.output_size)


@module("Flatten")
def flatten(t: Translator, layer: Any, x: Expr) -> Expr:
    return movement.flatten(t, x, layer.start_dim, layer.end_dim)


@module("Unflatten")
def unflatten(t: Translator, layer: Any, x: Expr) -> Expr:
    return movement.unflatten(t, x, layer.dim, layer.unflattened_size)


@module("Embedding")
def embedding(t: Translator, layer: Any, indices: Expr) -> Expr:
    return op.take(t.weight(layer.weight), indices, 0)


@module("GELU")
def gelu(t: Translator, layer: Any, x: Expr) -> Expr:
    return arithmetic.gelu(t, x, layer.approximate)


@module("LeakyReLU")
def leaky_relu(t: Translator, layer: Any, x: Expr) -> Expr:
    return arithmetic.leaky_relu(t, x, layer.negative_slope)


@module("ELU")
def elu(t: Translator, layer: Any, x: Expr) -> Expr:
    return arithmetic.elu(t, x, layer.alpha)


@module("Hardtanh")
def hardtanh(t: Translator, layer: Any, x: Expr) -> Expr:
    return op.clip(x, layer.min_val, layer.max_val)


@module("Softplus")
def softplus(t: Translator, layer: Any, x: Expr) -> Expr:
    return arithmetic.softplus(t, x, layer.beta, layer.threshold)


@module("Softmax")
def softmax(t: Translator, layer: Any, x: Expr) -> Expr:
    return reductions.softmax(t, x, layer.dim)


@module("LogSoftmax")
def log_softmax(t: Translator, layer: Any, x: Expr) -> Expr:
    return reductions.log_softmax(t, x, layer.dim)


@module("Upsample")
def upsample(t: Translator, layer: Any, x: Expr) -> Expr:
    return layers.interpolate(t, x, layer.size, layer.scale_factor, layer.mode, layer.align_corners)
