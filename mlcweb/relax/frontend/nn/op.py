"""Functions of the tensors of a model: each binds a call to a variable called `name`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias, cast

from mlcweb.ir.dialect import also_named
from mlcweb.relax import expr as E
from mlcweb.relax import op as R
from mlcweb.relax.frontend.nn.calls import (
    extern,
    tensor_expr_op,
    tensor_ir_inplace_op,
    tensor_ir_op,
)  # fmt: skip
from mlcweb.relax.frontend.nn.debugging import debug_func, print_
from mlcweb.relax.frontend.nn.sampling import (
    multinomial_from_uniform,
    renormalize_top_p_top_k_prob,
    sample_top_p_top_k_from_sorted_prob,
)  # fmt: skip
from mlcweb.relax.frontend.nn.tensor import Number, Tensor, wrap_nested
from mlcweb.relax.op.registry import several
from mlcweb.tir.expr import PrimExpr

Extents: TypeAlias = "Sequence[int | PrimExpr]"
Window: TypeAlias = "int | Sequence[int]"
Axes: TypeAlias = "int | list[int] | None"

__all__ = [
    "add", "arange", "argsort", "astype", "broadcast_to", "chunk", "concat", "conv1d",
    "conv1d_transpose", "conv2d", "conv3d", "cumsum", "debug_func", "divide", "empty", "equal",
    "exp", "extern", "floor", "full", "gelu", "get_timestep_embedding", "greater", "greater_equal",
    "group_norm", "interpolate", "layer_norm", "less", "less_equal", "log", "matmul", "max",
    "maximum", "min", "minimum", "multinomial_from_uniform", "multiply", "negative", "not_equal",
    "ones", "pad", "permute", "permute_dims", "prelu", "print_", "relu", "relu6",
    "renormalize_top_p_top_k_prob", "repeat", "reshape", "rms_norm",
    "sample_top_p_top_k_from_sorted_prob", "scaled_dot_product_attention", "sigmoid", "silu",
    "softmax", "softplus", "sort", "split", "sqrt", "square", "squeeze", "subtract", "sum", "take",
    "tanh", "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op", "topk", "triu", "unsqueeze",
    "where", "zeros",
]  # fmt: skip


def _unary(build: Callable[..., E.Expr], name: str) -> Callable[..., Tensor]:
    def apply(x: Tensor, name: str = name) -> Tensor:
        return wrap_nested(build(x._expr), name)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`R.{build.__name__}` of each element."
    return apply


def _binary(build: Callable[..., E.Expr], name: str) -> Callable[..., Tensor]:
    @also_named(x1="a", x2="b")
    def apply(a: Tensor, b: Tensor, name: str = name) -> Tensor:
        return wrap_nested(build(a._expr, b._expr), name)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`R.{build.__name__}` of the elements of two tensors, broadcast."
    return apply


exp = _unary(R.exp, "exp")
floor = _unary(R.floor, "floor")
log = _unary(R.log, "log")
negative = _unary(R.negative, "neg")
relu = _unary(R.nn.relu, "relu")
relu6 = _unary(R.nn.relu6, "relu6")
sigmoid = _unary(R.sigmoid, "sigmoid")
silu = _unary(R.nn.silu, "silu")
sqrt = _unary(R.sqrt, "sqrt")
square = _unary(R.square, "square")
tanh = _unary(R.tanh, "tanh")

add = _binary(R.add, "add")
subtract = _binary(R.subtract, "subtract")
multiply = _binary(R.multiply, "mul")
divide = _binary(R.divide, "divide")
maximum = _binary(R.maximum, "maximum")
minimum = _binary(R.minimum, "minimum")
equal = _binary(R.equal, "equal")
not_equal = _binary(R.not_equal, "not_equal")
less = _binary(R.less, "less")
less_equal = _binary(R.less_equal, "less_equal")
greater = _binary(R.greater, "greater")
greater_equal = _binary(R.greater_equal, "greater_equal")


# Shapes


def unsqueeze(x: Tensor, dim: int, name: str = "unsqueeze") -> Tensor:
    """With a new dimension of one element."""
    return wrap_nested(R.expand_dims(x._expr, dim), name)


def squeeze(x: Tensor, axis: int = -1, name: str = "squeeze") -> Tensor:
    """Without a dimension of one element."""
    return wrap_nested(R.squeeze(x._expr, axis), name)


def concat(x: Sequence[Tensor], dim: int, name: str = "concat") -> Tensor:
    """Tensors one after the other along a dimension."""
    return wrap_nested(R.concat([each._expr for each in x], dim), name)


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> tuple[Tensor, ...]:
    """Equal parts along a dimension."""
    return wrap_nested(R.split(x._expr, chunks, dim), name)


def split(
    ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, name: str = "split"
) -> tuple[Tensor, ...]:
    """Parts along an axis: as many as a number says, or cut at positions."""
    return wrap_nested(R.split(ary._expr, indices_or_sections, axis), name)


def broadcast_to(x: Tensor, shape: Extents, name: str = "broadcast_to") -> Tensor:
    """Repeated to a shape."""
    return wrap_nested(R.broadcast_to(x._expr, shape), name)


def permute_dims(x: Tensor, axes: list[int] | None = None, name: str | None = None) -> Tensor:
    """With the dimensions in another order; by default reversed."""
    return wrap_nested(R.permute_dims(x._expr, axes), name or "permute_dims")


def permute(x: Tensor, axes: list[int] | None, name: str = "permute") -> Tensor:
    """As `permute_dims`."""
    return wrap_nested(R.permute_dims(x._expr, axes), name)


def reshape(x: Tensor, shape: Extents, name: str = "reshape") -> Tensor:
    """Of another shape; -1 stands for the extent that is left."""
    return wrap_nested(R.reshape(x._expr, shape), name)


def repeat(x: Tensor, repeats: int, axis: int | None = None, name: str = "repeat") -> Tensor:
    """Each element several times."""
    return wrap_nested(R.repeat(x._expr, repeats, axis), name)


def take(x: Tensor, indices: Tensor, axis: int | None = None, name: str = "take") -> Tensor:
    """The elements at indices along an axis."""
    return wrap_nested(R.take(x._expr, indices._expr, axis), name)


def pad(
    x: Tensor, pad: list[int], mode: str = "constant", value: float = 0.0, name: str = "pad"
) -> Tensor:
    """With elements before and after, as `pad` says for each dimension from the first on."""
    return wrap_nested(
        R.nn.pad(x._expr, pad_width=pad, pad_mode=mode, pad_value=value), name
    )  # fmt: skip


def astype(x: Tensor, dtype: str, name: str = "astype") -> Tensor:
    """With elements of another type; the tensor itself where they have it."""
    return x if x.dtype == dtype else wrap_nested(R.astype(x._expr, dtype), name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """The upper triangle."""
    return wrap_nested(R.triu(x._expr, diagonal), name)


def where(condition: Tensor, x1: Tensor, x2: Tensor, name: str = "where") -> Tensor:
    """The elements of one tensor where a condition holds, else those of another."""
    return wrap_nested(R.where(astype(condition, "bool")._expr, x1._expr, x2._expr), name)


# New tensors


def full(
    shape: Extents,
    fill_value: Tensor | Number,
    dtype: str = "float32",
    name: str = "full",
) -> Tensor:
    """A tensor of one value."""
    if not isinstance(fill_value, Tensor):
        fill_value = Tensor.from_scalar(fill_value, dtype)
    return wrap_nested(R.full(shape, fill_value._expr, dtype), name)


def zeros(shape: Extents, dtype: str = "float32", name: str = "zeros") -> Tensor:
    return wrap_nested(R.zeros(shape, dtype), name)


def ones(shape: Extents, dtype: str = "float32", name: str = "ones") -> Tensor:
    return wrap_nested(R.ones(shape, dtype), name)


def empty(shape: Extents, dtype: str = "float32", name: str = "empty") -> Tensor:
    """A tensor of no particular values."""
    return wrap_nested(R.builtin.alloc_tensor(E.ShapeExpr(shape), dtype, 0), name)


def arange(
    start: int,
    end: int | None = None,
    step: int = 1,
    dtype: str | None = "float32",
    name: str = "arange",
) -> Tensor:
    """The numbers from `start` (included) to `end`."""
    return wrap_nested(R.arange(start, end, step, dtype), name)


# Linear algebra


def matmul(a: Tensor, b: Tensor, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    return wrap_nested(R.matmul(a._expr, b._expr, out_dtype), name)


def _convolved(convolution: E.Expr, bias: Tensor | None, layout: str, name: str) -> Tensor:
    """A convolution with its bias, which has the length of the axis C."""
    if bias is None:
        return wrap_nested(convolution, name)
    shape = [-1 if axis == "C" else 1 for axis in layout]
    return wrap_nested(R.add(convolution, R.reshape(bias._expr, shape)), name)


def conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Window = 1,
    padding: Window | str = 0, dilation: Window = 1, groups: int = 1, name: str = "conv1d",
) -> Tensor:  # fmt: skip
    """A convolution of NCW by OIW."""
    result = R.nn.conv1d(x._expr, weight._expr, stride, padding, dilation, groups)  # type: ignore[arg-type]
    return _convolved(result, bias, "NCW", name)


def conv1d_transpose(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Window = 1,
    padding: Window = 0, output_padding: Window = 0, dilation: Window = 1, groups: int = 1,
    name: str = "conv1d_transpose",
) -> Tensor:  # fmt: skip
    """A transposed convolution of NCW by IOW."""
    result = R.nn.conv1d_transpose(
        x._expr, weight._expr, stride, padding, output_padding, dilation, groups
    )
    return _convolved(result, bias, "NCW", name)


def _convolution(build: Callable[..., E.Expr], layout: str):
    def apply(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Window = 1,
        padding: Window | str = 0, dilation: Window = 1, groups: int = 1,
        data_layout: str = layout, name: str = build.__name__,
    ) -> Tensor:  # fmt: skip
        """A convolution of data in a layout by weights that are filters, channels, and then the
        axes of the window, whatever the layout of the data."""
        weights = layout.replace("N", "O").replace("C", "I")
        result = build(
            x._expr, weight._expr, stride, padding, dilation, groups, data_layout, weights
        )
        return _convolved(result, bias, data_layout, name)

    apply.__name__ = apply.__qualname__ = build.__name__
    return apply


conv2d = _convolution(R.nn.conv2d, "NCHW")
conv3d = _convolution(R.nn.conv3d, "NCDHW")


# Activations and norms


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Tensor:
    """GELU; `approximate="tanh"` by the hyperbolic tangent."""
    build = R.nn.gelu_tanh if approximate == "tanh" else R.nn.gelu
    return wrap_nested(build(x._expr), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    return wrap_nested(R.nn.softmax(x._expr, axis), name)


def softplus(
    x: Tensor, beta: float = 1.0, threshold: float = 20.0, name: str = "softplus"
) -> Tensor:
    return wrap_nested(R.nn.softplus(x._expr, beta=beta, threshold=threshold), name)


def prelu(x: Tensor, alpha: Tensor, name: str = "prelu") -> Tensor:
    return wrap_nested(R.nn.prelu(x._expr, alpha._expr), name)


def _filled(value: Tensor | None, shape: Sequence[int | PrimExpr], dtype: str, fill: int) -> E.Expr:
    if value is not None:
        return value._expr
    return (R.ones if fill else R.zeros)(shape, dtype)


def layer_norm(
    x: Tensor,
    normalized_shape: int | list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    name: str = "layer_norm",
) -> Tensor:
    """Normalized over the last dimensions, which have the shape `normalized_shape`."""
    rank = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    shape, axes = x.shape[-rank:], list(range(-rank, 0))
    gamma = _filled(weight, shape, x.dtype, 1)
    beta = _filled(bias, shape, x.dtype, 0)
    return wrap_nested(R.nn.layer_norm(x._expr, gamma, beta, axes=axes, epsilon=eps), name)


def rms_norm(
    x: Tensor, weight: Tensor, axes: int | list[int], epsilon: float = 1e-5, name: str = "rms_norm"
) -> Tensor:
    return wrap_nested(R.nn.rms_norm(x._expr, weight._expr, axes, epsilon), name)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    channel_axis: int = 1,
    axes: list[int] | None = None,
    name: str = "group_norm",
) -> Tensor:
    """Normalized in groups of channels, and over `axes`: those after the channels by default."""
    shape = [x.shape[channel_axis]]
    gamma, beta = _filled(weight, shape, x.dtype, 1), _filled(bias, shape, x.dtype, 0)
    if axes is None:
        axes = list(range(2, x.ndim))
    return wrap_nested(
        R.nn.group_norm(x._expr, gamma, beta, num_groups, channel_axis, axes, eps), name
    )


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool | None = False,
    scale: float | None = None,
    name: str = "scaled_dot_product_attention",
) -> Tensor:
    """Attention of tensors in the order batch, length, heads, size of a head."""
    attention = R.nn.attention(
        query._expr, key._expr, value._expr,
        bias=None if attn_mask is None else attn_mask._expr,
        causal_mask="TopLeft" if is_causal else None, scale=scale,
    )  # fmt: skip
    return wrap_nested(attention, name)


# Reductions and orders


def sum(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "sum") -> Tensor:
    return wrap_nested(R.sum(x._expr, axis, keepdims), name)


def max(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "max") -> Tensor:
    return wrap_nested(R.max(x._expr, axis, keepdims), name)


def min(x: Tensor, axis: Axes = None, keepdims: bool = False, name: str = "min") -> Tensor:
    return wrap_nested(R.min(x._expr, axis, keepdims), name)


def cumsum(
    data: Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
    name: str = "cumsum",
) -> Tensor:
    return wrap_nested(R.cumsum(data._expr, axis, dtype, bool(exclusive)), name)


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> Tensor:
    return wrap_nested(R.sort(x._expr, axis, descending), name)


def argsort(
    data: Tensor,
    axis: int = -1,
    descending: bool = False,
    dtype: str = "int32",
    name: str = "argsort",
) -> Tensor:
    return wrap_nested(R.argsort(data._expr, axis, descending, dtype), name)


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest (or smallest) elements and their indices, or one of the two."""
    return wrap_nested(R.topk(data._expr, k, axis, ret_type, largest, dtype), name)


# Larger formulas


def interpolate(
    x: Tensor,
    size: Window | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool | None = None,
    data_layout: str = "NCHW",
    name: str = "interpolate",
) -> Tensor:
    """An image of another size, which is given, or a factor for it."""
    if recompute_scale_factor or antialias:
        raise ValueError("interpolate: recompute_scale_factor and antialias are not here")
    if size is None:
        if scale_factor is None:
            raise ValueError("interpolate: give the size, or a scale_factor")
        places = [data_layout.index(axis) for axis in "HW"]
        factors: list[float] = several(scale_factor, 2)
        extents = cast("list[int]", [x.shape[place] for place in places])
        size = [int(n * f) for n, f in zip(extents, factors, strict=True)]
    how = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode == "nearest":
        transform = "asymmetric"
    else:
        transform = "align_corners" if align_corners else "half_pixel"
    resized = R.image.resize2d(
        x._expr, size, layout=data_layout, method=how.get(mode[:8], mode),
        coordinate_transformation_mode=transform,
    )  # fmt: skip
    return wrap_nested(resized, name)


def get_timestep_embedding(
    x: Tensor,
    embedding_dim: int,
    flip_sin_to_cos: bool = False,
    downscale_freq_shift: float = 1,
    scale: float = 1,
    max_period: int = 10000,
    name: str = "get_timestep_embedding",
) -> Tensor:
    """Sines and cosines of steps in time, at frequencies that fall from 1 to 1 / `max_period`."""
    import math

    dtype, half = "float32", embedding_dim // 2
    falling = R.multiply(E.const(-math.log(max_period), dtype), R.arange(0, half, dtype=dtype))
    frequencies = R.exp(R.divide(falling, E.const(half - downscale_freq_shift, dtype)))
    steps = R.expand_dims(R.astype(x._expr, dtype), 1)
    angles = R.multiply(steps, R.expand_dims(frequencies, 0))
    if scale != 1:
        angles = R.multiply(E.const(scale, dtype), angles)
    parts = [R.cos(angles), R.sin(angles)] if flip_sin_to_cos else [R.sin(angles), R.cos(angles)]
    embedding = R.concat(parts, -1)
    if embedding_dim % 2:
        embedding = R.nn.pad(embedding, (0, 0, 0, 1))
    return wrap_nested(R.astype(embedding, dtype), name)


_ABSENT = {
    "ccl_allreduce": "there is one device here",
    "ccl_allgather": "there is one device here",
    "ccl_broadcast_from_worker0": "there is one device here",
}


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name not in _ABSENT:
        raise AttributeError(f"nn.op has no {name}")

    def refuse(*args: object, **options: object) -> NoReturn:
        raise NotImplementedError(f"nn.op.{name} is not here: {_ABSENT[name]}")

    return refuse
