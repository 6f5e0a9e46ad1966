"""The converters of layers: what `torch.nn` calls a module, as a call of the function it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.torch.functions import (
    activations,
    arithmetic,
    conversions,
    images,
    layers,
    movement,
)
from mlcweb.relax.frontend.torch.translator import (
    FUNCTIONS,
    FunctionConverter,
    Layer,
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
    "Hardswish": (activations.hardswish, ""),
    "Hardsigmoid": (activations.hardsigmoid, ""),
    "Identity": (conversions.same, ""),
    "Dropout Dropout1d Dropout2d Dropout3d StochasticDepth": (conversions.same, ""),
    "GELU": (activations.gelu, "approximate"),
    "LeakyReLU": (activations.leaky_relu, "negative_slope"),
    "ELU": (activations.elu, "alpha"),
    "CELU": (activations.celu, "alpha"),
    "SELU": (FUNCTIONS["selu"], ""),
    "PReLU": (activations.prelu, "weight"),
    "Mish": (activations.mish, ""),
    "Softsign": (activations.softsign, ""),
    "Softshrink": (activations.softshrink, "lambd"),
    "Hardshrink": (activations.hardshrink, "lambd"),
    "Tanhshrink": (activations.tanhshrink, ""),
    "Threshold": (activations.threshold, "threshold value"),
    "LogSigmoid": (activations.logsigmoid, ""),
    "GLU": (activations.glu, "dim"),
    "Hardtanh": (arithmetic.clamp, "min_val max_val"),
    "Softplus": (activations.softplus, "beta threshold"),
    "Softmax": (FUNCTIONS["softmax"], "dim"),
    "LogSoftmax": (FUNCTIONS["log_softmax"], "dim"),
    "Flatten": (movement.flatten, "start_dim end_dim"),
    "Unflatten": (movement.unflatten, "dim unflattened_size"),
    "Linear": (layers.linear, "weight bias"),
    "Embedding": (layers.embedding, "weight"),
    "ConvTranspose1d ConvTranspose2d ConvTranspose3d": (
        layers.conv_transpose, "weight bias stride padding output_padding groups dilation",
    ),
    "LayerNorm": (layers.layer_norm, "normalized_shape weight bias eps"),
    "RMSNorm": (layers.rms_norm, "normalized_shape weight eps"),
    "GroupNorm": (layers.group_norm, "num_groups weight bias eps"),
    "MaxPool1d MaxPool2d MaxPool3d": (
        layers.max_pool, "kernel_size stride padding dilation ceil_mode return_indices",
    ),
    "AvgPool1d": (layers.avg_pool, "kernel_size stride padding ceil_mode count_include_pad"),
    "AvgPool2d AvgPool3d": (
        layers.avg_pool,
        "kernel_size stride padding ceil_mode count_include_pad divisor_override",
    ),
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d": (
        layers.adaptive_avg_pool, "output_size",
    ),
    "Upsample": (images.interpolate, "size scale_factor mode align_corners"),
    "PixelShuffle": (images.pixel_shuffle, "upscale_factor"),
}  # fmt: skip
"""The function that a layer calls with its input, and with which of its attributes."""


def _layer(names: str, function: FunctionConverter, attributes: str) -> None:
    @module(*names.split())
    def convert(t: Translator, layer: Layer, x: Expr) -> Result:
        arguments = (
            t.optional_weight(getattr(layer, name)) if name in _WEIGHTS else getattr(layer, name)
            for name in attributes.split()
        )
        return function(t, x, *arguments)


for _names, _row in _LAYERS.items():
    _layer(_names, *_row)


@module("Conv1d", "Conv2d", "Conv3d")
def conv(t: Translator, layer: Layer, x: Expr) -> Expr:
    if layer.padding_mode != "zeros":
        raise TorchError(f'A convolution with padding_mode="{layer.padding_mode}" is not supported')
    weight, bias = t.weight(layer.weight), t.optional_weight(layer.bias)
    return layers.conv(
        t, x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups
    )


@module("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
def batch_norm(t: Translator, layer: Layer, x: Expr) -> Expr:
    if layer.training:
        raise TorchError("A BatchNorm in training mode cannot be imported: use model.eval()")
    mean, var, weight, bias = map(
        t.optional_weight, (layer.running_mean, layer.running_var, layer.weight, layer.bias)
    )
    return layers.batch_norm(t, x, mean, var, weight, bias, eps=layer.eps)


@module("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
def instance_norm(t: Translator, layer: Layer, x: Expr) -> Expr:
    mean, var, weight, bias = map(
        t.optional_weight, (layer.running_mean, layer.running_var, layer.weight, layer.bias)
    )
    own = layer.training or mean is None
    return layers.instance_norm(t, x, mean, var, weight, bias, own, eps=layer.eps)


@module("CrossEntropyLoss")
def cross_entropy(t: Translator, layer: Layer, x: Expr, target: Expr) -> Expr:
    return layers.cross_entropy(
        t, x, target, t.optional_weight(layer.weight), ignore_index=layer.ignore_index,
        reduction=layer.reduction, label_smoothing=layer.label_smoothing,
    )  # fmt: skip


@module("LSTM", "GRU", "RNN")
def recurrent_layer(
    t: Translator, layer: Layer, x: Expr, hx: Expr | Sequence[Expr] | None = None
) -> Result:
    """The outputs, and the hidden states after the last step; an LSTM gives both parts."""
    if t.ndim(x) != 3:
        raise TorchError(f"A layer {layer.mode} needs a batch: a tensor of three axes, not {x}")
    if hx is None:
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        batch = t.shape(x)[0 if layer.batch_first else 1]
        empty = t.emit(op.zeros([count, batch, layer.hidden_size], t.dtype(x)))
        hx = (empty, empty) if layer.mode == "LSTM" else empty
    params = [t.weight(param) for param in layer._flat_weights]
    convert: Callable[..., tuple[Expr, ...]] = FUNCTIONS[layer.mode.lower()]  # type: ignore
    output, *ends = convert(
        t, x, hx, params, layer.bias, layer.num_layers, layer.dropout, False,
        layer.bidirectional, layer.batch_first,
    )  # fmt: skip
    return output, tuple(ends) if layer.mode == "LSTM" else ends[0]
