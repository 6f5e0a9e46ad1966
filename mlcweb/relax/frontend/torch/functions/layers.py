"""Products, convolutions, pools, normalisations and attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.common import CONVOLUTIONS, TRANSPOSED, ceil_padding, with_bias
from mlcweb.relax.frontend.torch.functions.arithmetic import promoted
from mlcweb.relax.frontend.torch.translator import Number, TorchError, Translator, function
from mlcweb.relax.op.nn.layouts import Extents
from mlcweb.relax.op.registry import several

T = TypeVar("T")


@function("matmul", "bmm", "mm")
def matmul(t: Translator, input: Expr, other: Expr) -> Expr:
    return op.matmul(input, other)


@function("addmm", "baddbmm")
def addmm(
    t: Translator, input: Expr, mat1: Expr, mat2: Expr, *, beta: Number = 1, alpha: Number = 1
) -> Expr:
    product = op.matmul(mat1, mat2)
    if alpha != 1:
        product = op.multiply(*promoted(t, t.emit(product), alpha))
    if beta != 1:
        input = op.multiply(*promoted(t, input, beta))
    return op.add(input, product)


@function("einsum")
def einsum(t: Translator, equation: str, *operands: Expr | Sequence[Expr]) -> Expr:
    given = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    )
    return op.einsum(list(given), equation)


@function("linear")
def linear(t: Translator, input: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    return op.linear(input, weight, bias)


def _pair(value: T | Sequence[T], rank: int = 2) -> list[T]:
    return several(value, rank)


@function("conv1d", "conv2d", "conv3d")
def conv(
    t: Translator, input: Expr, weight: Expr, bias: Expr | None = None,
    stride: Extents = 1, padding: Extents = 0, dilation: Extents = 1, groups: int = 1,
) -> Expr:  # fmt: skip
    ndim = len(t.shape(weight))
    rank = ndim - 2
    stride, dilation = _pair(stride, rank), _pair(dilation, rank)
    if isinstance(padding, str):
        if padding == "valid":
            padding = [0] * 2 * rank
        else:
            kernel = [t.extent(weight, 2 + axis) for axis in range(rank)]
            widths = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            padding = [w // 2 for w in widths] + [w - w // 2 for w in widths]
    else:
        padding = _pair(padding, rank) * 2
    result = CONVOLUTIONS[rank](input, weight, stride, padding, dilation, groups)
    return with_bias(result, bias, ndim)


@function("conv_transpose1d", "conv_transpose2d")
def conv_transpose(
    t: Translator, input: Expr, weight: Expr, bias: Expr | None = None, stride: Extents = 1,
    padding: Extents = 0, output_padding: Extents = 0, groups: int = 1, dilation: Extents = 1,
) -> Expr:  # fmt: skip
    ndim = len(t.shape(weight))
    rank = ndim - 2
    result = TRANSPOSED[rank](
        input,
        weight,
        strides=_pair(stride, rank),
        padding=_pair(padding, rank) * 2,
        output_padding=_pair(output_padding, rank),
        dilation=_pair(dilation, rank),
        groups=groups,
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


@function("max_pool1d", "max_pool2d")
def max_pool(
    t: Translator, input: Expr, kernel_size: Extents, stride: Extents | None = None,
    padding: Extents = 0, dilation: Extents = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Expr:  # fmt: skip
    if return_indices:
        raise TorchError("max_pool2d with return_indices=True cannot be imported")
    rank = len(t.shape(input)) - 2
    build = op.nn.max_pool1d if rank == 1 else op.nn.max_pool2d
    return _pool(t, build, input, kernel_size, stride, padding, dilation, ceil_mode)


def _pool(
    t: Translator, build: Callable[..., Expr], input: Expr, kernel_size: Extents,
    stride: Extents | None, padding: Extents, dilation: Extents, ceil_mode: bool, **options: bool,
) -> Expr:  # fmt: skip
    shape = t.shape(input)[2:]
    rank = len(shape)
    kernel, strides = _pair(kernel_size, rank), _pair(stride or kernel_size, rank)
    widths, steps = _pair(padding, rank) * 2, _pair(dilation, rank)
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


@function("max_pool2d_with_indices")
def max_pool_with_indices(t: Translator, *args: Any, **kwargs: Any) -> tuple[Expr | None, ...]:
    return (max_pool(t, *args, **kwargs), None)


@function("avg_pool1d", "avg_pool2d")
def avg_pool(
    t: Translator, input: Expr, kernel_size: Extents, stride: Extents | None = None,
    padding: Extents = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expr:  # fmt: skip
    if divisor_override is not None:
        raise TorchError("avg_pool2d with divisor_override cannot be imported")
    rank = len(t.shape(input)) - 2
    build = op.nn.avg_pool1d if rank == 1 else op.nn.avg_pool2d
    return _pool(
        t, build, input, kernel_size, stride, padding, 1, ceil_mode,
        count_include_pad=count_include_pad,
    )  # fmt: skip


@function("adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def adaptive_avg_pool(t: Translator, input: Expr, output_size: int | Sequence[int | None]) -> Expr:
    rank = len(t.shape(input)) - 2
    size = [
        t.extent(input, 2 + axis) if extent is None else extent
        for axis, extent in enumerate(_pair(output_size, rank))
    ]
    build = op.nn.adaptive_avg_pool1d if rank == 1 else op.nn.adaptive_avg_pool2d
    return build(input, size)


# Normalisations


@function("batch_norm")
def batch_norm(
    t: Translator, input: Expr, running_mean: Expr, running_var: Expr, weight: Expr | None = None,
    bias: Expr | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Expr:  # fmt: skip
    if training or running_mean is None:
        raise TorchError("batch_norm in training mode cannot be imported: use model.eval()")
    dtype = t.dtype(input)
    weight = t.const([1.0] * t.extent(input, 1), dtype) if weight is None else weight
    bias = t.const([0.0] * t.extent(input, 1), dtype) if bias is None else bias
    result = op.nn.batch_norm(
        input, weight, bias, running_mean, running_var, axis=1, epsilon=eps, training=False
    )
    return t.bound(result)[0]


@function("aten.batch_norm")
def aten_batch_norm(
    t: Translator, input: Expr, weight: Expr, bias: Expr, mean: Expr, var: Expr, training: bool,
    momentum: float, eps: float, *ignored: object,
) -> Expr:  # fmt: skip
    return batch_norm(t, input, mean, var, weight, bias, training, momentum, eps)


@function("_native_batch_norm_legit_no_training")
def native_batch_norm(
    t: Translator, input: Expr, weight: Expr, bias: Expr, mean: Expr, var: Expr, momentum: float,
    eps: float,
) -> tuple[Expr | None, ...]:  # fmt: skip
    return batch_norm(t, input, mean, var, weight, bias, False, momentum, eps), None, None


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
) -> tuple[Expr | None, ...]:
    return layer_norm(t, input, shape, weight, bias, eps), None, None


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
    shape, dtype = t.shape(input), t.dtype(input)
    weight = op.ones([shape[1]], dtype) if weight is None else weight
    bias = op.zeros([shape[1]], dtype) if bias is None else bias
    return op.nn.group_norm(input, weight, bias, num_groups, 1, list(range(2, len(shape))), eps)


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
    scores = t.emit(op.multiply(scores, t.const(factor, dtype)))
    if is_causal:
        size = [shape[-2], t.shape(key)[-2]]
        attn_mask = t.emit(op.tril(op.ones(size, dtype)))
        attn_mask = t.emit(op.not_equal(attn_mask, t.const(0, dtype)))
    if attn_mask is not None:
        if t.dtype(attn_mask) == "bool":
            scores = op.where(attn_mask, scores, t.const(-math.inf, dtype))
        else:
            scores = op.add(scores, attn_mask)
    return op.matmul(op.nn.softmax(scores, -1), value)


@function("pad")
def pad(
    t: Translator, input: Expr, pad: Sequence[int], mode: str = "constant",
    value: float | None = None,
) -> Expr:  # fmt: skip
    if mode != "constant":
        raise TorchError(f'pad with mode="{mode}" cannot be imported')
    ndim = len(t.shape(input))
    widths = [0] * 2 * ndim
    for place in range(len(pad) // 2):  # from the last axis on
        axis = ndim - 1 - place
        widths[2 * axis], widths[2 * axis + 1] = pad[2 * place], pad[2 * place + 1]
    return op.nn.pad(input, widths, "constant", value or 0.0)


@function("constant_pad_nd")
def constant_pad(t: Translator, input: Expr, widths: Sequence[int], value: Number = 0.0) -> Expr:
    return pad(t, input, widths, "constant", value)


@function("interpolate")
def interpolate(
    t: Translator, input: Expr, size: Extents | None = None,
    scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None, *ignored: object, **more: object,
) -> Expr:  # fmt: skip
    shape = t.shape(input)
    rank = len(shape) - 2
    if rank != 2:
        raise TorchError("interpolate can be imported for images (n, c, h, w) only")
    if size is None:
        if scale_factor is None:
            raise TorchError("interpolate needs a size or a scale_factor")
        factors = _pair(scale_factor, rank)
        size = [math.floor(t.extent(input, 2 + axis) * f) for axis, f in enumerate(factors)]
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode not in methods:
        raise TorchError(f'interpolate with mode="{mode}" cannot be imported')
    place = "align_corners" if align_corners else "half_pixel"
    if mode == "nearest":
        place = "asymmetric"
    return op.image.resize2d(
        input,
        _pair(size, rank),
        method=methods[mode],
        coordinate_transformation_mode=place,
        rounding_method="floor" if mode == "nearest" else "",
        cubic_alpha=-0.75,
    )


def _upsample(name: str, mode: str) -> None:
    @function(name)
    def convert(t: Translator, input: Expr, output_size: Extents | None, *rest: Any) -> Expr:
        """`rest`: whether corners are aligned, where that is a question, then the factors."""
        aligned = bool(rest[0]) if mode != "nearest" and rest else None
        factors = rest[-1] if rest else None
        return interpolate(t, input, output_size, factors, mode, aligned)


for _name, _mode in (
    ("upsample_nearest2d", "nearest"), ("upsample_bilinear2d", "bilinear"),
    ("upsample_bicubic2d", "bicubic"),
):  # fmt: skip
    _upsample(_name, _mode)
