"""Products, convolutions, pools, normalisations and attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.relax import op
from mlcweb.relax.expr import Expr, TupleGetItem
from mlcweb.relax.frontend.common import (
    AVERAGE_POOLS,
    CONVOLUTIONS,
    MAX_POOLS,
    TRANSPOSED,
    ceil_padding,
    with_bias,
)  # fmt: skip
from mlcweb.relax.frontend.torch.functions.arithmetic import promoted
from mlcweb.relax.frontend.torch.translator import (
    NOT_IMPORTED,
    Number,
    Result,
    TorchError,
    Translator,
    function,
)  # fmt: skip
from mlcweb.relax.op.nn.layouts import Extents
from mlcweb.relax.op.registry import several
from mlcweb.tir import dtype as dtypes


@function("matmul", "bmm", "mm", "mv", "_sparse_mm")
def matmul(t: Translator, input: Expr, other: Expr) -> Expr:
    return op.matmul(input, other, _sum_dtype(t, input))


def _sum_dtype(t: Translator, input: Expr) -> str | None:
    """What sums of products are written to be of: the type of floats."""
    return t.dtype(input) if dtypes.is_float(t.dtype(input)) else None


@function("addmm", "baddbmm", "_sparse_addmm")
def addmm(
    t: Translator, input: Expr, mat1: Expr, mat2: Expr, *, beta: Number = 1, alpha: Number = 1
) -> Expr:
    product = t.emit(op.matmul(mat1, mat2, _sum_dtype(t, mat1)))
    if alpha != 1:
        product = t.emit(op.multiply(*promoted(t, product, alpha)))
    if beta != 1:
        input = t.emit(op.multiply(*promoted(t, input, beta)))
    return input + product


@function("einsum")
def einsum(t: Translator, equation: str, *operands: Expr | Sequence[Expr]) -> Expr:
    tensors = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    )
    return op.einsum(list(tensors), equation)


@function("linear")
def linear(t: Translator, input: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    return op.linear(input, weight, bias, _sum_dtype(t, input))


@function("conv1d", "conv2d", "conv3d")
def conv(
    t: Translator, input: Expr, weight: Expr, bias: Expr | None = None,
    stride: Extents = 1, padding: Extents = 0, dilation: Extents = 1, groups: int = 1,
) -> Expr:  # fmt: skip
    ndim = len(t.shape(weight))
    rank = ndim - 2
    stride, dilation = several(stride, rank), several(dilation, rank)
    if isinstance(padding, str):
        if padding == "valid":
            padding = [0] * 2 * rank
        else:
            kernel = [t.extent(weight, 2 + axis) for axis in range(rank)]
            widths = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            padding = [w // 2 for w in widths] + [w - w // 2 for w in widths]
    else:
        padding = several(padding, rank) * 2
    result = CONVOLUTIONS[rank](
        input, weight, stride, padding, dilation, groups, out_dtype=_sum_dtype(t, input)
    )
    return with_bias(result, bias, ndim)


@function("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    t: Translator, input: Expr, weight: Expr, bias: Expr | None = None, stride: Extents = 1,
    padding: Extents = 0, output_padding: Extents = 0, groups: int = 1, dilation: Extents = 1,
) -> Expr:  # fmt: skip
    ndim = len(t.shape(weight))
    rank = ndim - 2
    result = TRANSPOSED[rank](
        input,
        weight,
        strides=several(stride, rank),
        padding=several(padding, rank) * 2,
        output_padding=several(output_padding, rank),
        dilation=several(dilation, rank),
        groups=groups,
        out_dtype=_sum_dtype(t, input),
    )
    return with_bias(result, bias, ndim)


@function("convolution", "_convolution")
def convolution(
    t: Translator, input: Expr, weight: Expr, bias: Expr | None,
    stride: Extents, padding: Extents, dilation: Extents,
    transposed: bool, output_padding: Extents, groups: int, *ignored: object,
) -> Expr:  # fmt: skip
    if transposed:
        return conv_transpose(
            t, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return conv(t, input, weight, bias, stride, padding, dilation, groups)


# Pools


_ADAPTIVE_POOLS = {
    1: op.nn.adaptive_avg_pool1d, 2: op.nn.adaptive_avg_pool2d, 3: op.nn.adaptive_avg_pool3d,
}  # fmt: skip


@function("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    t: Translator, input: Expr, kernel_size: Extents, stride: Extents | None = None,
    padding: Extents = 0, dilation: Extents = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Expr:  # fmt: skip
    if return_indices:
        raise TorchError("A max_pool with return_indices=True cannot be imported")
    build = MAX_POOLS[t.ndim(input) - 2]
    return _pool(t, build, input, kernel_size, stride, padding, dilation, ceil_mode)


def _pool(
    t: Translator, build: Callable[..., Expr], input: Expr, kernel_size: Extents,
    stride: Extents | None, padding: Extents, dilation: Extents, ceil_mode: bool, **options: bool,
) -> Expr:  # fmt: skip
    shape = t.shape(input)[2:]
    rank = len(shape)
    kernel, strides = several(kernel_size, rank), several(stride or kernel_size, rank)
    widths, steps = several(padding, rank) * 2, several(dilation, rank)
    if ceil_mode:
        widths, ceil_mode = ceil_padding(shape, kernel, strides, widths, steps)
    return build(
        input,
        pool_size=kernel,
        strides=strides,
        padding=widths,
        dilation=steps,
        ceil_mode=ceil_mode,
        **options,
    )


@function("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(t: Translator, *args: Any, **kwargs: Any) -> tuple[Result, ...]:
    return max_pool(t, *args, **kwargs), NOT_IMPORTED


@function("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    t: Translator, input: Expr, kernel_size: Extents, stride: Extents | None = None,
    padding: Extents = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expr:  # fmt: skip
    if divisor_override is not None:
        raise TorchError("An avg_pool with divisor_override cannot be imported")
    build = AVERAGE_POOLS[t.ndim(input) - 2]
    return _pool(
        t, build, input, kernel_size, stride, padding, 1, ceil_mode,
        count_include_pad=count_include_pad,
    )  # fmt: skip


@function(
    *(f"{prefix}adaptive_avg_pool{rank}d" for rank in _ADAPTIVE_POOLS for prefix in ("", "_"))
)
def adaptive_avg_pool(t: Translator, input: Expr, output_size: int | Sequence[int | None]) -> Expr:
    rank = t.ndim(input) - 2
    size = [
        t.extent(input, 2 + axis) if extent is None else extent
        for axis, extent in enumerate(several(output_size, rank))
    ]
    return _ADAPTIVE_POOLS[rank](input, size)


# Normalisations


@function("batch_norm")
def batch_norm(
    t: Translator, input: Expr, running_mean: Expr | None, running_var: Expr | None,
    weight: Expr | None = None, bias: Expr | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Expr:  # fmt: skip
    """By the running moments; by those of the batch in training, or if there are none."""
    if training or running_mean is None or running_var is None:
        return batch_norm_of_batch(t, input, weight, bias, True, momentum, eps)[0]
    dtype = t.dtype(input)
    weight = t.const([1.0] * t.extent(input, 1), dtype) if weight is None else weight
    bias = t.const([0.0] * t.extent(input, 1), dtype) if bias is None else bias
    result = op.nn.batch_norm(
        input, weight, bias, running_mean, running_var, axis=1, epsilon=eps, training=False
    )
    return TupleGetItem(t.emit(result), 0)


@function("aten.batch_norm")
def aten_batch_norm(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, mean: Expr | None,
    var: Expr | None, training: bool, momentum: float, eps: float, *ignored: object,
) -> Expr:  # fmt: skip
    return batch_norm(t, input, mean, var, weight, bias, training, momentum, eps)


@function("_native_batch_norm_legit_no_training")
def native_batch_norm(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, var: Expr,
    momentum: float, eps: float,
) -> tuple[Result, ...]:  # fmt: skip
    result = batch_norm(t, input, mean, var, weight, bias, False, momentum, eps)
    return result, NOT_IMPORTED, NOT_IMPORTED


def batch_norm_of_batch(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, training: bool,
    momentum: float, eps: float,
) -> tuple[Expr, ...]:  # fmt: skip
    """By the moments of the batch, which follow, the second as 1 / sqrt(variance + eps)."""
    axes = [0, *range(2, t.ndim(input))]
    mean, var = t.bound(op.mean(input, axes)), t.bound(op.variance(input, axes))
    result = batch_norm(t, input, mean, var, weight, bias, False, momentum, eps)
    return result, mean, op.rsqrt(var + t.const(eps, t.dtype(var)))


@function("_native_batch_norm_legit_functional")
def batch_norm_functional(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, running_mean: Expr,
    running_var: Expr, training: bool, momentum: float, eps: float,
) -> tuple[Result, ...]:  # fmt: skip
    """Also the running moments after the batch, in training."""
    if not training:
        result = batch_norm(t, input, running_mean, running_var, weight, bias, False, eps=eps)
        return result, NOT_IMPORTED, NOT_IMPORTED, running_mean, running_var
    results = batch_norm_of_batch(t, input, weight, bias, True, momentum, eps)
    result, mean, scale = t.bound(results)
    axes = [0, *range(2, t.ndim(input))]
    count = math.prod(t.extent(input, axis) for axis in axes)
    var = t.bound(op.variance(input, axes) * t.const(count / (count - 1), t.dtype(mean)))
    new_mean, new_var = (
        running + (moment - running) * t.const(momentum, t.dtype(mean))
        for running, moment in ((running_mean, mean), (running_var, var))
    )
    return result, mean, scale, new_mean, new_var


@function("_native_batch_norm_legit")
def batch_norm_in_place(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, *rest: Any
) -> tuple[Result, ...]:
    """The moments as buffers that are written to, or without any."""
    if not isinstance(rest[0], Expr):
        return batch_norm_of_batch(t, input, weight, bias, *rest)
    return batch_norm_functional(t, input, weight, bias, *rest)[:3]


@function("instance_norm")
def instance_norm(
    t: Translator, input: Expr, running_mean: Expr | None = None, running_var: Expr | None = None,
    weight: Expr | None = None, bias: Expr | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Expr:  # fmt: skip
    if not use_input_stats:
        assert running_mean is not None and running_var is not None
        return batch_norm(t, input, running_mean, running_var, weight, bias, eps=eps)
    weight, bias = _per_channel(t, input, weight, bias)
    axes = list(range(2, t.ndim(input)))
    return op.nn.instance_norm(input, weight, bias, 1, axes, eps)


def _per_channel(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None
) -> tuple[Expr, Expr]:
    """Those of a normalisation, 1 and 0 where there are none."""
    channels, dtype = [t.shape(input)[1]], t.dtype(input)
    weight = op.ones(channels, dtype) if weight is None else weight
    return weight, op.zeros(channels, dtype) if bias is None else bias


@function("aten.instance_norm")
def aten_instance_norm(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, mean: Expr | None,
    var: Expr | None, use_input_stats: bool, momentum: float, eps: float, *ignored: object,
) -> Expr:  # fmt: skip
    return instance_norm(t, input, mean, var, weight, bias, use_input_stats, momentum, eps)


@function("layer_norm")
def layer_norm(
    t: Translator, input: Expr, normalized_shape: Sequence[int], weight: Expr | None = None,
    bias: Expr | None = None, eps: float = 1e-5, *ignored: object,
) -> Expr:  # fmt: skip
    shape, dtype = list(normalized_shape), t.dtype(input)
    axes = list(range(-len(shape), 0))
    weight = op.ones(shape, dtype) if weight is None else weight
    bias = op.zeros(shape, dtype) if bias is None else bias
    return op.nn.layer_norm(input, weight, bias, axes, eps)


@function("native_layer_norm")
def native_layer_norm(
    t: Translator, input: Expr, shape: Sequence[int], weight: Expr, bias: Expr, eps: float
) -> tuple[Result, ...]:
    return layer_norm(t, input, shape, weight, bias, eps), NOT_IMPORTED, NOT_IMPORTED


@function("rms_norm")
def rms_norm(
    t: Translator, input: Expr, normalized_shape: Sequence[int], weight: Expr | None = None,
    eps: float | None = None,
) -> Expr:  # fmt: skip
    shape = list(normalized_shape)
    weight = op.ones(shape, t.dtype(input)) if weight is None else weight
    epsilon = 1.1920928955078125e-07 if eps is None else eps
    return op.nn.rms_norm(input, weight, list(range(-len(shape), 0)), epsilon)


@function("group_norm")
def group_norm(
    t: Translator, input: Expr, num_groups: int, weight: Expr | None = None,
    bias: Expr | None = None, eps: float = 1e-5, *ignored: object,
) -> Expr:  # fmt: skip
    weight, bias = _per_channel(t, input, weight, bias)
    axes = list(range(2, t.ndim(input)))
    return op.nn.group_norm(input, weight, bias, num_groups, 1, axes, eps)


@function("native_group_norm")
def native_group_norm(
    t: Translator, input: Expr, weight: Expr | None, bias: Expr | None, n: int, c: int, hxw: int,
    group: int, eps: float,
) -> tuple[Result, ...]:  # fmt: skip
    return group_norm(t, input, group, weight, bias, eps), NOT_IMPORTED, NOT_IMPORTED


# Transformers


@function("embedding")
def embedding(
    t: Translator, input: Expr, weight: Expr, *ignored: object, **options: object
) -> Expr:
    return op.take(weight, input, 0)


@function("aten.embedding")
def aten_embedding(t: Translator, weight: Expr, indices: Expr, *ignored: object) -> Expr:
    return op.take(weight, indices, 0)


@function("scaled_dot_product_attention")
def attention(
    t: Translator, query: Expr, key: Expr, value: Expr, attn_mask: Expr | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
    enable_gqa: bool = False,
) -> Expr:  # fmt: skip
    """softmax(query key^T scale + mask) value over the last two axes."""
    if enable_gqa:
        raise TorchError("scaled_dot_product_attention with enable_gqa cannot be imported")
    shape, dtype = t.shape(query), t.dtype(query)
    ndim = len(shape)
    axes = [*range(ndim - 2), ndim - 1, ndim - 2]
    factor = 1 / math.sqrt(t.extent(query, -1)) if scale is None else scale
    scores = op.matmul(query, op.permute_dims(key, axes))
    scores = t.emit(scores * t.const(factor, dtype))
    if is_causal:
        size = [shape[-2], t.shape(key)[-2]]
        attn_mask = t.emit(op.tril(op.ones(size, dtype)))
        attn_mask = t.emit(op.not_equal(attn_mask, t.const(0, dtype)))
    if attn_mask is not None:
        if t.dtype(attn_mask) == "bool":
            scores = op.where(attn_mask, scores, t.const(-math.inf, dtype))
        else:
            scores = scores + attn_mask
    return op.matmul(op.nn.softmax(scores, -1), value)


@function("pad")
def pad(
    t: Translator, input: Expr, pad: Sequence[int], mode: str = "constant",
    value: float | None = None,
) -> Expr:  # fmt: skip
    """`pad` has the widths before and behind the last axis, then the one before it, and so on."""
    ndim = t.ndim(input)
    widths = [0] * 2 * ndim
    for place in range(len(pad) // 2):
        axis = ndim - 1 - place
        widths[2 * axis], widths[2 * axis + 1] = pad[2 * place], pad[2 * place + 1]
    return op.nn.pad(input, widths, mode, value or 0.0)


def _padding(name: str, mode: str) -> None:
    @function(*(f"{name}_pad{rank}d" for rank in (1, 2, 3)))
    def convert(t: Translator, input: Expr, padding: Sequence[int]) -> Expr:
        return pad(t, input, padding, mode)


_padding("reflection", "reflect")
_padding("replication", "replicate")


@function("constant_pad_nd")
def constant_pad(t: Translator, input: Expr, widths: Sequence[int], value: Number = 0.0) -> Expr:
    return pad(t, input, widths, "constant", value)


# Losses

_REDUCTIONS = "none", "mean", "sum"
"""By the numbers of ATen."""


@function("nll_loss")
def nll_loss(
    t: Translator, input: Expr, target: Expr, weight: Expr | None = None,
    size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None,
    reduction: str = "mean",
) -> Expr:  # fmt: skip
    return op.nn.nll_loss(input, target, weight, reduction, ignore_index)


@function("aten.nll_loss", "nll_loss_nd")
def aten_nll_loss(
    t: Translator, input: Expr, target: Expr, weight: Expr | None = None, reduction: int = 1,
    ignore_index: int = -100,
) -> Expr:  # fmt: skip
    return op.nn.nll_loss(input, target, weight, _REDUCTIONS[reduction], ignore_index)


@function("cross_entropy")
def cross_entropy(
    t: Translator, input: Expr, target: Expr, weight: Expr | None = None,
    size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Expr:  # fmt: skip
    if label_smoothing or t.dtype(target) == t.dtype(input):
        raise TorchError(
            "cross_entropy of probabilities or with label_smoothing cannot be imported, only of "
            "the numbers of classes"
        )
    logits = op.nn.log_softmax(input, 1 if t.ndim(input) > 1 else 0)
    return op.nn.nll_loss(logits, target, weight, reduction, ignore_index)


@function("cross_entropy_loss")
def cross_entropy_loss(
    t: Translator, input: Expr, target: Expr, weight: Expr | None = None, reduction: int = 1,
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Expr:  # fmt: skip
    return cross_entropy(
        t, input, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction],
        label_smoothing=label_smoothing,
    )  # fmt: skip
