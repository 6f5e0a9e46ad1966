"""The converters of layers: what `torch.nn` calls a module, as a call of the function it makes."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.torch.functions import arithmetic, layers, movement, reductions
from mlcweb.relax.frontend.torch.translator import (
    FUNCTIONS,
    FunctionConverter,
    Result,
    TorchError,
    Translator,
    module,
)

_WEIGHTS = ("weight", "bias")

_LAYERS: dict[str, tuple[FunctionConverter, str]] = {
    "ReLU": (FUNCTIONS["relu"], ""),
    "ReLU6": (FUNCTIONS["relu6"], ""),
    "Sigmoid": (FUNCTIONS["sigmoid"], ""),
    "Tanh": (FUNCTIONS["tanh"], ""),
    "SiLU": (FUNCTIONS["silu"], ""),
    "Hardswish": (arithmetic.hardswish, ""),
    "Hardsigmoid": (arithmetic.hardsigmoid, ""),
    "Identity": (arithmetic.same, ""),
    "Dropout Dropout1d Dropout2d": (arithmetic.same, ""),
    "GELU": (arithmetic.gelu, "approximate"),
    "LeakyReLU": (arithmetic.leaky_relu, "negative_slope"),
    "ELU": (arithmetic.elu, "alpha"),
    "Hardtanh": (arithmetic.clamp, "min_val max_val"),
    "Softplus": (arithmetic.softplus, "beta threshold"),
    "Softmax": (reductions.softmax, "dim"),
    "LogSoftmax": (reductions.log_softmax, "dim"),
    "Flatten": (movement.flatten, "start_dim end_dim"),
    "Unflatten": (movement.unflatten, "dim unflattened_size"),
    "Linear": (layers.linear, "weight bias"),
    "Embedding": (layers.embedding, "weight"),
    "ConvTranspose1d ConvTranspose2d": (
        layers.conv_transpose, "weight bias stride padding output_padding groups dilation",
    ),
    "LayerNorm": (layers.layer_norm, "normalized_shape weight bias eps"),
    "RMSNorm": (layers.rms_norm, "normalized_shape weight eps"),
    "GroupNorm": (layers.group_norm, "num_groups weight bias eps"),
    "MaxPool1d MaxPool2d": (
        layers.max_pool, "kernel_size stride padding dilation ceil_mode return_indices",
    ),
    "AvgPool1d": (layers.avg_pool, "kernel_size stride padding ceil_mode count_include_pad"),
    "AvgPool2d": (
        layers.avg_pool,
        "kernel_size stride padding ceil_mode count_include_pad divisor_override",
    ),
    "AdaptiveAvgPool1d AdaptiveAvgPool2d": (layers.adaptive_avg_pool, "output_size"),
    "Upsample": (layers.interpolate, "size scale_factor mode align_corners"),
}  # fmt: skip
"""The function that a layer calls with its input, and with which of its attributes."""


def _layer(names: str, function: FunctionConverter, attributes: str) -> None:
    @module(*names.split())
    def convert(t: Translator, layer: Any, x: Expr) -> Result:
        given = (
            t.optional_weight(getattr(layer, name)) if name in _WEIGHTS else getattr(layer, name)
            for name in attributes.split()
        )
        return function(t, x, *given)


for _names, _row in _LAYERS.items():
    _layer(_names, *_row)


@module("Conv1d", "Conv2d", "Conv3d")
def conv(t: Translator, layer: Any, x: Expr) -> Expr:
    if layer.padding_mode != "zeros":
        raise TorchError(f'A convolution with padding_mode="{layer.padding_mode}" is not supported')
    weight, bias = t.weight(layer.weight), t.optional_weight(layer.bias)
    return layers.conv(
        t, x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups
    )


@module("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
def batch_norm(t: Translator, layer: Any, x: Expr) -> Expr:
    if layer.training or layer.running_mean is None:
        raise TorchError("A BatchNorm in training mode cannot be imported: use model.eval()")
    weight, bias = t.optional_weight(layer.weight), t.optional_weight(layer.bias)
    mean, var = t.weight(layer.running_mean), t.weight(layer.running_var)
    return layers.batch_norm(t, x, mean, var, weight, bias, eps=layer.eps)
