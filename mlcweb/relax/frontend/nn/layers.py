"""The usual layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.relax.frontend.nn import op
from mlcweb.relax.frontend.nn.module import Module, ModuleList
from mlcweb.relax.frontend.nn.tensor import Extent, Parameter, Tensor


class ReLU(Module):
    def forward(self, x: Tensor) -> Tensor:
        return op.relu(x)


class SiLU(Module):
    def forward(self, x: Tensor) -> Tensor:
        return op.silu(x)


class GELU(Module):
    def forward(self, x: Tensor) -> Tensor:
        return op.gelu(x)


class Identity(Module):
    """Gives what it takes."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """x · weightᵀ + bias; the weight is (out_features, in_features)."""

    def __init__(
        self,
        in_features: Extent,
        out_features: Extent,
        bias: bool = True,
        dtype: str | None = None,
        out_dtype: str | None = None,
    ) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.out_dtype = out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), out_dtype or dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        result = op.matmul(x, op.permute_dims(self.weight), out_dtype=self.out_dtype)
        return result if self.bias is None else result + self.bias

    def to(self, dtype: str | None = None) -> None:
        """Change the element type; that of the bias is `out_dtype`, where one is given."""
        self.weight.to(dtype=dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype=dtype)


class _Convolution(Module):
    """What convolutions share: the weight is (out_channels, in_channels / groups, *kernel)."""

    rank = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | list[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = (
            [kernel_size] * self.rank if isinstance(kernel_size, int) else list(kernel_size)
        )
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(shape, dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None


class Conv1D(_Convolution):
    """A convolution of NCW."""

    def forward(self, x: Tensor) -> Tensor:
        return op.conv1d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class Conv2D(_Convolution):
    """A convolution of NCHW or NHWC; the weight is in the layout OIHW for both."""

    rank = 2
    layout = "NCHW"

    def __init__(self, *args: Any, data_layout: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.data_layout = data_layout or self.layout

    def forward(self, x: Tensor) -> Tensor:
        return op.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.data_layout,
        )  # fmt: skip


class Conv3D(Conv2D):
    """A convolution of NCDHW or NDHWC; the weight is in the layout OIDHW for both."""

    rank = 3
    layout = "NCDHW"

    def forward(self, x: Tensor) -> Tensor:
        return op.conv3d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.data_layout,
        )  # fmt: skip


class ConvTranspose1D(Module):
    """A transposed convolution of NCW; the weight is (in_channels, out_channels / groups, W)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation
        self.groups = groups
        self.weight = Parameter((in_channels, out_channels // groups, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return op.conv1d_transpose(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.dilation, self.groups,
        )  # fmt: skip


class LayerNorm(Module):
    """Normalizes the last dimension."""

    def __init__(
        self,
        normalized_shape: int,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = (normalized_shape,)
        self.weight = Parameter(shape, dtype) if elementwise_affine else None
        self.bias = Parameter(shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Divides by the root of the mean square over `axes`."""

    def __init__(
        self,
        hidden_size: int,
        axes: int | list[int],
        epsilon: float = 1e-5,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.axes = axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        result = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return result if self.bias is None else result + self.bias


class GroupNorm(Module):
    """Normalizes groups of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x: Tensor, channel_axis: int = 1, axes: list[int] | None = None) -> Tensor:
        return op.group_norm(
            x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes
        )


class Embedding(Module):
    """Rows of a table of `num` rows with `dim` elements, by their numbers."""

    def __init__(self, num: Extent, dim: Extent, dtype: str | None = None) -> None:
        self.num = num
        self.dim = dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        rows = op.take(self.weight, op.reshape(x, shape=[-1]), axis=0)
        return op.reshape(rows, shape=[*x.shape, self.weight.shape[1]])


class Timesteps(Module):
    """Sines and cosines of steps in time."""

    def __init__(
        self, num_channels: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1
    ) -> None:
        self.num_channels = num_channels
        self.flip_sin_to_cos = flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x: Tensor) -> Tensor:
        return op.get_timestep_embedding(
            x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift
        )


class TimestepEmbedding(Module):
    """Two linear layers with SiLU between them, for embeddings of steps in time."""

    def __init__(
        self,
        in_channels: int,
        time_embed_dim: int,
        act_fn: str = "silu",
        out_dim: int | None = None,
        post_act_fn: str | None = None,
        cond_proj_dim: int | None = None,
    ) -> None:
        if act_fn != "silu" or post_act_fn not in (None, "silu"):
            raise ValueError("TimestepEmbedding knows the activation silu only")
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = (
            Linear(cond_proj_dim, in_channels, bias=False) if cond_proj_dim is not None else None
        )
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, out_dim or time_embed_dim)
        self.post_act = SiLU() if post_act_fn else None

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Tensor:
        if condition is not None and self.cond_proj is not None:
            sample = sample + self.cond_proj(condition)
        result = self.linear_2(self.act(self.linear_1(sample)))
        return result if self.post_act is None else self.post_act(result)


class Attention(Module):
    """Attention of several heads, with its projections."""

    def __init__(
        self,
        query_dim: int,
        cross_attention_dim: int | None = None,
        heads: int = 8,
        dim_head: int = 64,
        bias: bool = False,
        norm_num_groups: int | None = None,
        out_bias: bool = True,
        scale_qk: bool = True,
    ) -> None:
        inner = dim_head * heads
        other = cross_attention_dim or query_dim
        self.heads = heads
        self.dim_head = dim_head
        self.scale = dim_head**-0.5 if scale_qk else 1.0
        self.to_q = Linear(query_dim, inner, bias=bias)
        self.to_k = Linear(other, inner, bias=bias)
        self.to_v = Linear(other, inner, bias=bias)
        self.group_norm = (
            GroupNorm(norm_num_groups, query_dim, 1e-5) if norm_num_groups is not None else None
        )
        self.to_out = ModuleList([Linear(inner, query_dim, bias=out_bias)])

    def forward(
        self,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **options: object,
    ) -> Tensor:
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = self.to_q(hidden_states), self.to_k(source), self.to_v(source)
        split = [self.heads, self.dim_head]
        query, key, value = (
            op.reshape(part, [*part.shape[:2], *split]) for part in (query, key, value)
        )
        attended = op.scaled_dot_product_attention(query, key, value, attention_mask)
        attended = op.reshape(attended, [*attended.shape[:2], self.heads * self.dim_head])
        return self.to_out[0](attended)
