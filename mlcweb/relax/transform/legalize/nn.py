"""Lowering of the operators of neural networks."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import Legalize, attribute, by, enter
from mlcweb.tir import arithmetic


def _dropout(x: te.Tensor) -> list[te.Tensor]:
    return [topi.identity(x), topi.full_like(x, 1.0)]


def _reordered(tensor: te.Tensor, layout: str, wanted: str) -> te.Tensor:
    return tensor if layout == wanted else topi.layout_transform(tensor, layout, wanted)


def _convolution(function: Any, hint: str) -> Legalize:
    """Convolutions give the layout of the data, and are put in `out_layout` after."""

    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        data_layout, out_layout = (attribute(call, key) for key in ("data_layout", "out_layout"))

        def convolve(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
            result = function(
                data,
                weight,
                strides=attribute(call, "strides"),
                padding=attribute(call, "padding"),
                dilation=attribute(call, "dilation"),
                groups=attribute(call, "groups"),
                data_layout=data_layout,
                kernel_layout=attribute(call, "kernel_layout"),
                out_dtype=attribute(call, "out_dtype"),
            )
            return _reordered(result, data_layout, out_layout)

        return builder.call_te(convolve, *call.args, primfunc_name_hint=hint)

    return legalize


def _transposed(rank: int) -> Legalize:
    """Transposed convolutions are done channels first."""
    spatial = {1: "W", 2: "HW", 3: "DHW"}[rank]
    first, kernel_first = f"NC{spatial}", f"IO{spatial}"

    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        def convolve(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
            result = topi.nn.conv_transpose(
                _reordered(data, attribute(call, "data_layout"), first),
                _reordered(weight, attribute(call, "kernel_layout"), kernel_first),
                attribute(call, "strides"),
                attribute(call, "padding"),
                attribute(call, "output_padding"),
                attribute(call, "dilation"),
                attribute(call, "groups"),
                attribute(call, "out_dtype"),
            )
            return _reordered(result, first, attribute(call, "out_layout"))

        return builder.call_te(convolve, *call.args, primfunc_name_hint=f"conv{rank}d_transpose")

    return legalize


def _pool(kind: str, hint: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        layout = attribute(call, "layout")

        def pool(data: te.Tensor) -> te.Tensor:
            result = topi.nn.pool(
                data,
                attribute(call, "pool_size"),
                attribute(call, "strides"),
                attribute(call, "dilation"),
                attribute(call, "padding"),
                kind,
                attribute(call, "ceil_mode"),
                layout,
                attribute(call, "count_include_pad"),
            )
            return _reordered(result, layout, attribute(call, "out_layout"))

        return builder.call_te(pool, *call.args, primfunc_name_hint=hint)

    return legalize


def _adaptive(hint: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        layout, size = attribute(call, "layout"), attribute(call, "output_size")

        def pool(data: te.Tensor) -> te.Tensor:
            wanted = size
            if wanted is None:
                wanted = [n for n, c in zip(data.shape, layout, strict=True) if c not in "NC"]
            result = topi.nn.adaptive_pool(data, wanted, "avg", layout)
            return _reordered(result, layout, attribute(call, "out_layout"))

        return builder.call_te(pool, *call.args, primfunc_name_hint=hint)

    return legalize


def _normalization(function: Any, *attributes: str) -> Legalize:
    """Normalisations per element: without `scale` there is no gamma, without `center` no beta."""

    def legalize(builder: BlockBuilder, call: E.Call) -> Any:
        data, gamma, beta = call.args
        return builder.call_te(
            function,
            data,
            gamma if attribute(call, "scale") else None,
            beta if attribute(call, "center") else None,
            *(attribute(call, key) for key in attributes),
        )

    return legalize


_PADS = {
    "reflect": topi.nn.reflect_pad,
    "replicate": topi.nn.replicate_pad,
    "circular": topi.nn.circular_pad,
}


def _pad(builder: BlockBuilder, call: E.Call) -> Any:
    widths, mode = list(attribute(call, "pad_width")), attribute(call, "pad_mode")
    before, after = widths[::2], widths[1::2]
    if mode in _PADS:
        return builder.call_te(_PADS[mode], *call.args, before, after)
    return builder.call_te(topi.nn.pad, *call.args, before, after, attribute(call, "pad_value"))


def _attention(builder: BlockBuilder, call: E.Call) -> Any:
    query, key, value, *bias = call.args
    scale = attribute(call, "scale")

    def attention(*tensors: te.Tensor) -> te.Tensor:
        return topi.nn.attention(
            *tensors,
            scale=None if scale is None else scale.value,
            causal_mask=attribute(call, "causal_mask"),
            window_size=attribute(call, "window_size"),
        )

    name = "attention_bias" if bias else "attention"
    return builder.call_te(attention, query, key, value, *bias, primfunc_name_hint=name)


def _pixel_shuffle(x: te.Tensor, factor: int) -> te.Tensor:
    *outer, channels, high, wide = x.shape
    kept = arithmetic.floordiv(channels, factor * factor)

    def element(*index: Any) -> Any:
        *front, c, i, j = index
        place = (c * factor + i % factor) * factor + j % factor
        return x(*front, place, i // factor, j // factor)

    return te.compute([*outer, kept, high * factor, wide * factor], element, "pixel_shuffle")


def _nll_loss(builder: BlockBuilder, call: E.Call) -> Any:
    predictions, targets, *weights = call.args

    def nll_loss(*tensors: te.Tensor) -> te.Tensor:
        chosen, wanted, *factors = tensors
        if chosen.ndim == 1:  # one target
            chosen = topi.expand_dims(chosen, 0)
            wanted = topi.expand_dims(wanted, 0)
        reduction = attribute(call, "reduction")
        weight = factors[0] if factors else None
        result = topi.nn.nll_loss(
            chosen, wanted, weight, reduction, attribute(call, "ignore_index")
        )
        return topi.squeeze(result) if reduction == "none" and tensors[0].ndim == 1 else result

    return builder.call_te(nll_loss, predictions, targets, *weights, primfunc_name_hint="nll_loss")


def _cross_entropy(predictions: te.Tensor, labels: te.Tensor) -> te.Tensor:
    total = topi.negative(topi.sum(topi.multiply(predictions, labels)))
    if predictions.ndim < 2:
        return total
    return topi.divide(total, arithmetic.cast(predictions.dtype, predictions.shape[0]))


enter({
    "nn.nll_loss": _nll_loss,
    "nn.cross_entropy_with_logits": by(_cross_entropy, hint="cross_entropy_with_logits"),
    "nn.relu": by(topi.nn.relu),
    "nn.gelu": by(topi.nn.gelu),
    "nn.gelu_tanh": by(topi.nn.gelu_tanh),
    "nn.silu": by(topi.nn.silu),
    "nn.selu": by(topi.nn.selu),
    "nn.leakyrelu": by(topi.nn.leaky_relu, "alpha"),
    "nn.softplus": by(topi.nn.softplus, "beta", "threshold"),
    "nn.prelu": by(topi.nn.prelu, "axis"),
    "nn.softmax": by(topi.nn.softmax, "axis"),
    "nn.log_softmax": by(topi.nn.log_softmax, "axis"),
    "nn.dropout": by(_dropout, hint="dropout"),
    "nn.pad": _pad,
    "nn.pixel_shuffle": by(_pixel_shuffle, "upscale_factor", hint="pixel_shuffle"),
    "nn.attention": _attention,
    "nn.attention_bias": _attention,
    "nn.conv1d": _convolution(topi.nn.conv1d, "conv1d"),
    "nn.conv2d": _convolution(topi.nn.conv2d, "conv2d"),
    "nn.conv3d": _convolution(topi.nn.conv3d, "conv3d"),
    "nn.conv1d_transpose": _transposed(1),
    "nn.conv2d_transpose": _transposed(2),
    "nn.conv3d_transpose": _transposed(3),
    "nn.max_pool1d": _pool("max", "max_pool1d"),
    "nn.max_pool2d": _pool("max", "max_pool2d"),
    "nn.avg_pool1d": _pool("avg", "avg_pool1d"),
    "nn.avg_pool2d": _pool("avg", "avg_pool2d"),
    "nn.max_pool3d": _pool("max", "max_pool3d"),
    "nn.avg_pool3d": _pool("avg", "avg_pool3d"),
    "nn.adaptive_avg_pool1d": _adaptive("adaptive_avg_pool1d"),
    "nn.adaptive_avg_pool2d": _adaptive("adaptive_avg_pool2d"),
    "nn.adaptive_avg_pool3d": _adaptive("adaptive_avg_pool3d"),
    "nn.batch_norm": by(
        topi.nn.batch_norm, "axis", "epsilon", "center", "scale", "training", "momentum"
    ),
    "nn.layer_norm": _normalization(topi.nn.layer_norm, "axes", "epsilon"),
    "nn.group_norm": _normalization(
        topi.nn.group_norm, "num_groups", "channel_axis", "axes", "epsilon"
    ),
    "nn.instance_norm": _normalization(topi.nn.instance_norm, "channel_axis", "axes", "epsilon"),
    "nn.rms_norm": by(topi.nn.rms_norm, "axes", "epsilon"),
})  # fmt: skip
