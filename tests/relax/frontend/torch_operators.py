"""Small programs of PyTorch, one for each family of operators that TVM imports, by name: the
function and what makes its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Inputs = Callable[[], "tuple[torch.Tensor, ...]"]


def normal(*shapes: tuple[int, ...]) -> Inputs:
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def positive(*shape: int) -> Inputs:
    return lambda: (torch.rand(shape) + 0.1,)


def whole(*shapes: tuple[int, ...], low: int = -5, high: int = 6) -> Inputs:
    return lambda: tuple(torch.randint(low, high, shape) for shape in shapes)


def both(first: Inputs, second: Inputs) -> Inputs:
    return lambda: first() + second()


X = normal((3, 4, 5))
XY = normal((3, 4), (3, 4))
IMAGE = normal((2, 4, 6, 8))
VOLUME = normal((1, 2, 4, 5, 6))

FUNCTIONS: dict[str, tuple[Callable[..., Any], Inputs]] = {
    # element by element
    "inverse sines": (lambda x: x.asin() + x.acos() + x.atanh(), lambda: (torch.rand(3, 4) * 0.9,)),
    "inverse tangents": (lambda x: x.atan() + x.asinh() + (x.abs() + 1.1).acosh(), X),
    "hyperbolic": (lambda x: x.sinh() + x.cosh() + torch.atan2(x, x + 0.3), X),
    "logarithms": (
        lambda x: x.log2() + x.log10() + x.log1p() + x.expm1() + x.exp2(),
        positive(3, 4),
    ),
    "logaddexp": (lambda x, y: torch.logaddexp(x, y), XY),
    "isfinite": (
        lambda x: torch.isfinite(1 / x) | torch.isinf(1 / x),
        lambda: (torch.arange(5.0),),
    ),
    "of integers": (lambda x: x.sqrt() + x.sigmoid() + 1 / (x + 1), whole((3, 4), low=0)),
    "bits": (lambda x, y: (x & y) + (x | y) * 3 + (x ^ y) + ~x, whole((3, 4), (3, 4))),
    "bits of numbers": (lambda x: (x & 3) + (x | 5) + (x ^ 6), whole((3, 4))),
    "truth": (lambda x, y: ((x > 0) & ~(y > 0)) ^ ((x > 1) | (y > 1)), XY),
    "logical": (
        lambda x, y: torch.logical_and(x, y) | torch.logical_xor(x, y),
        whole((9,), (9,), low=0, high=2),
    ),
    "shifts": (lambda x: (x << 2) + (x >> 1), whole((3, 4), low=0)),
    "rounded": (lambda x: torch.round(x, decimals=2) + torch.round(x * 100, decimals=-1), X),
    "clamped": (
        lambda x: torch.clamp_min(x, -0.5) + torch.clamp_max(x, 0.5) + x.clamp(x - 1, x + 1),
        X,
    ),
    "clamped on one side": (lambda x: x.clamp(min=-0.5) + x.clamp(max=0.5), X),
    "clamped integers": (lambda x: x.clamp(min=-1) + x.clamp(max=2), whole((3, 4))),
    "bits of truth": (lambda x, y: ((x > 0) & (y > 0)) | ((x < 0) ^ (y < 1)), XY),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(x, y, torch.sigmoid(x)), XY),
    "isin": (lambda x: torch.isin(x, torch.tensor([1, 3, 5])), whole((3, 4))),
    "fused": (
        lambda x, y: torch.addcmul(x, x, y, value=0.5) + torch.addcdiv(x, x, y.abs() + 1),
        XY,
    ),
    "0-dim types": (lambda x: (x.half() * torch.tensor(2.0)).float() + x.half().float(), X),
    "0-dim kinds": (lambda x: x + torch.tensor(1.5), whole((3, 4))),
    "remainders": (lambda x: x % 3 + torch.fmod(x, 3) + x // 2, whole((3, 4))),
    # activations
    "steep celu": (lambda x: F.celu(x, -0.5) + F.elu(x * 60, -0.5), X),
    "selu": (lambda x: F.selu(x) + F.celu(x, 0.7) + F.elu(x, 1.3), X),
    "shrunk": (
        lambda x: F.softshrink(x) + F.softshrink(x, 0.2) + F.hardshrink(x) + F.tanhshrink(x),
        X,
    ),
    "softsign": (lambda x: F.softsign(x) + F.logsigmoid(x) + F.mish(x), X),
    "prelu": (lambda x, w: F.prelu(x, w), both(X, normal((4,)))),
    "one prelu": (lambda x, w: F.prelu(x, w), both(X, normal((1,)))),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0) + F.hardtanh(x, -0.3, 0.4), X),
    "glu": (lambda x: F.glu(x, 1), X),
    # norms and losses
    "norms": (lambda x: torch.linalg.vector_norm(x, 3.0, dim=1) + x.norm(dim=1) + x.norm(1, 1), X),
    "a norm of all": (lambda x: torch.norm(x) + torch.norm(x, dim=1), X),
    "norms of all": (lambda x: torch.linalg.vector_norm(x) + x.norm(math.inf), X),
    "instance norm": (lambda x, w: F.instance_norm(x, weight=w, bias=w), both(IMAGE, normal((4,)))),
    "group norm": (lambda x, w: F.group_norm(x, 2, w, w), both(IMAGE, normal((4,)))),
    "batch norm": (lambda x, w: F.batch_norm(x, w, w.abs(), w, w), both(IMAGE, normal((4,)))),
    "training norm": (
        lambda x, w: F.batch_norm(x, None, None, w, w, training=True),
        both(IMAGE, normal((4,))),
    ),
    "cross entropy": (
        lambda x, y: F.cross_entropy(x, y),
        both(normal((5, 7)), whole((5,), low=0, high=7)),
    ),
    "summed loss": (
        lambda x, y: F.cross_entropy(x, y, reduction="sum", ignore_index=2),
        both(normal((5, 7, 3)), whole((5, 3), low=0, high=7)),
    ),
    "nll loss": (
        lambda x, y: F.nll_loss(F.log_softmax(x, 1), y, reduction="none"),
        both(normal((5, 7)), whole((5,), low=0, high=7)),
    ),
    # windows
    "pools of volumes": (lambda x: F.max_pool3d(x, 2) + F.avg_pool3d(x, 2), VOLUME),
    "adaptive pools": (lambda x: F.adaptive_avg_pool3d(x, (2, 5, 3)), VOLUME),
    "convolved volume": (
        lambda x, w: F.conv3d(x, w, padding=1),
        both(VOLUME, normal((3, 2, 3, 3, 3))),
    ),
    "transposed": (
        lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=1, output_padding=1),
        both(VOLUME, normal((2, 3, 3, 3, 3))),
    ),
    "reflected": (lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"), IMAGE),
    "replicated": (lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"), IMAGE),
    "circular": (lambda x: F.pad(x, (1, 2, 3, 0), mode="circular"), IMAGE),
    # images
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE),
    "upsampled": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
    "to a size": (lambda x: F.interpolate(x, size=(9, 5), mode="bilinear"), IMAGE),
    "by a fraction": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), IMAGE),
    "by uneven factors": (lambda x: F.interpolate(x, scale_factor=(2.0, 0.5)), IMAGE),
    "corners": (
        lambda x: F.interpolate(x, size=(9, 5), mode="bilinear", align_corners=True),
        IMAGE,
    ),
    "cubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), IMAGE),
    "antialiased": (
        lambda x: F.interpolate(x, size=(9, 11), mode="bilinear", antialias=True),
        IMAGE,
    ),
    "a sequence": (lambda x: F.interpolate(x, scale_factor=3, mode="linear"), normal((2, 3, 5))),
    "nearest of a sequence": (lambda x: F.interpolate(x, size=7), normal((2, 3, 5))),
    "a volume": (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), VOLUME),
    "nearest of a volume": (lambda x: F.interpolate(x, size=(8, 3, 6)), VOLUME),
    "grid sample": (
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=False),
        lambda: (torch.randn(2, 3, 5, 6), torch.rand(2, 4, 7, 2) * 2.4 - 1.2),
    ),
    "nearest of a grid": (
        lambda x, g: F.grid_sample(x, g, "nearest", align_corners=True),
        lambda: (torch.randn(2, 3, 5, 6), torch.rand(2, 4, 7, 2) * 2.4 - 1.2),
    ),
    "affine grid": (
        lambda m: (
            F.affine_grid(m, [2, 3, 4, 5], align_corners=False)
            + F.affine_grid(m, [2, 3, 4, 5], align_corners=True)
        ),
        normal((2, 2, 3)),
    ),
    # moved
    "rolled": (lambda x: x.roll(2) + x.roll((1, -2), (0, 2)), X),
    "rolled around": (lambda x: x.roll(3, 0) + x.roll(-9, 1), X),
    "the same shape": (lambda x: x.reshape(3, 4, 5) + x.expand(3, -1, 5), X),
    "from behind": (lambda x: x[-2, 1] + x[:, :, -3:-1].select(0, -1).sum(), X),
    "tiled": (lambda x: x.tile(2, 1, 2), X),
    "spread": (lambda x: torch.broadcast_to(x[:, :1], (3, 4, 5)) + x, X),
    "like another": (lambda x, y: x.reshape_as(y) + y, normal((3, 8), (4, 6))),
    "meshgrid": (lambda x, y: torch.meshgrid(x, y, indexing="ij"), normal((3,), (4,))),
    "xy meshgrid": (lambda x, y: torch.meshgrid(x, y, indexing="xy")[1], normal((3,), (4,))),
    "outer": (lambda x, y: torch.outer(x, y), normal((3,), (4,))),
    "strided": (lambda x: x.contiguous().as_strided((5, 12), (12, 1)), X),
    # chosen
    "by tensors": (lambda x, i, j: x[i, j], both(X, whole((2, 3), (3,), low=0, high=3))),
    "from the end": (lambda x, i: x[:, i], both(X, whole((6,), low=-4, high=4))),
    "two apart": (lambda x, i: x[i, :, i], both(X, whole((2,), low=0, high=3))),
    "two inside": (
        lambda x, i: x[:, i, i],
        both(normal((3, 4, 5, 2)), whole((2, 2), low=0, high=4)),
    ),
    "a list": (lambda x: x[:, [2, 0, 1], 1:], X),
    "put": (
        lambda x, i, v: torch.index_put(x, (i,), v),
        both(X, lambda: (torch.tensor([2, 0]), torch.randn(2, 4, 5))),
    ),
    "added": (
        lambda x, i, v: torch.index_put(x, (i, i), v, accumulate=True),
        both(X, lambda: (torch.tensor([2, 2, 1]), torch.randn(3, 5))),
    ),
    "put where true": (lambda x: torch.index_put(x, (x > 0.5,), torch.tensor(0.5)), X),
    "taken": (lambda x, i: x.take(i), both(X, whole((2, 3), low=-5, high=40))),
    "selected": (lambda x: torch.masked_select(x, x > 0), X),
    "positions": (lambda x: (x > 0).nonzero(), X),
    "masked": (lambda x, s: x.masked_scatter(x > 0, s), both(X, normal((70,)))),
    "scattered": (
        lambda x, i, s: x.scatter(1, i, s),
        both(X, lambda: (torch.arange(20).reshape(1, 4, 5) % 4, torch.randn(1, 4, 5))),
    ),
    "scattered number": (
        lambda x, i: x.scatter(2, i, 7.0),
        both(X, whole((3, 4, 2), low=0, high=5)),
    ),
    "scatter added": (
        lambda x, i, s: x.scatter_add(0, i, s),
        both(X, both(whole((2, 4, 5), low=0, high=3), normal((3, 4, 5)))),
    ),
    "scatter reduced": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "amax"),
        both(X, both(whole((2, 4, 5), low=0, high=3), normal((2, 4, 5)))),
    ),
    "index added": (
        lambda x, s: x.index_add(1, torch.tensor([3, 0, 3]), s, alpha=2),
        normal((3, 4, 5), (3, 3, 5)),
    ),
    "slice scattered": (
        lambda x, s: torch.slice_scatter(x, s, 1, 1, -1),
        normal((3, 4, 5), (3, 2, 5)),
    ),
    "select scattered": (lambda x, s: torch.select_scatter(x, s, 2, -2), normal((3, 4, 5), (3, 4))),
    "diagonal": (lambda x: x.diagonal(1, 2, 1), X),
    # sorted
    "sorted": (lambda x: torch.sort(x, dim=1), X),
    "descending": (lambda x: x.sort(-1, True)[1] + x.argsort(-1), X),
    "greatest": (lambda x: torch.topk(x, 2, 1), X),
    "least": (lambda x: torch.topk(x, 3, largest=False)[0], X),
    "median": (lambda x: torch.median(x, 1), X),
    "median of all": (lambda x: torch.median(x) + x.median(2, keepdim=True)[0], X),
    "buckets": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), X),
    "right buckets": (
        lambda x: torch.bucketize(x, torch.tensor([-1, 0, 1]), right=True, out_int32=True),
        whole((3, 4)),
    ),
    # sums
    "running product": (lambda x: x.cumprod(1) + x.cumsum(2), X),
    "running sum of a scalar": (lambda x: x.cumsum(0) + x.cumprod(0), lambda: (torch.randn(()),)),
    "running sums of a type": (lambda x: x.cumsum(1, dtype=torch.float64), X),
    "running count": (lambda x: (x > 0).cumsum(1), X),
    # new
    "spaced": (lambda x: x + torch.linspace(-1, 2, 5), X),
    "identity": (lambda x: x + torch.eye(4, 5), X),
    "one hot": (lambda x: F.one_hot(x, 6), whole((3, 4), low=0)),
    "new of several extents": (lambda x: x.new_ones(3, 4, 5) + x.new_zeros((3, 4, 5)) + x, X),
    "like": (
        lambda x: (
            torch.ones_like(x, dtype=torch.int64) + torch.full_like(x, 2) + torch.zeros_like(x)
        ),
        X,
    ),
    "filled": (lambda x: x + torch.full_like(x, 2).fill_(3) + x.new_full((5,), 4.0), X),
    "window": (lambda x: x * torch.hamming_window(5) + torch.hamming_window(5, periodic=False), X),
    "scalar": (lambda x: x + torch.scalar_tensor(2.5) + torch.tensor([1, 2, 3, 4, 5]), X),
    "empty": (lambda x: torch.empty_like(x).zero_() + torch.zeros(4, 5) + x, X),
    "copied": (lambda x, y: torch.zeros_like(x).copy_(y) + x, normal((3, 4), (4,))),
    # attention
    "masked attention": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m > 0),
        lambda: (torch.randn(2, 3, 5, 8), torch.eye(5) + torch.ones(5, 5).tril()),
    ),
}

ONLY_EXPORTED = {
    "isin",
    "0-dim types",
    "0-dim kinds",
    "buckets",
    "right buckets",
    "index added",
    "scalar",
    "spaced",
    "identity",
    "window",
    "put where true",
    "strided",
    "selected",
    "positions",
}
"""What torch.fx runs while it traces is a constant, which from_fx is not asked about here; and
what knows no rank before a run."""


class Layers(nn.Module):
    """A layer and its results."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.layer(*inputs)


LAYERS: dict[str, tuple[Callable[[], nn.Module], Inputs]] = {
    "PReLU": (lambda: nn.PReLU(4), X),
    "SELU": (nn.SELU, X),
    "CELU": (lambda: nn.CELU(0.5), X),
    "ELU": (lambda: nn.ELU(0.5), X),
    "Softshrink": (nn.Softshrink, X),
    "GLU": (lambda: nn.GLU(1), X),
    "Threshold": (lambda: nn.Threshold(0.1, 3.0), X),
    "AvgPool3d": (lambda: nn.AvgPool3d(2, 2, 1), VOLUME),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, 2, 1), VOLUME),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d((2, None, 3)), VOLUME),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 3, 2, 1), VOLUME),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), X),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), IMAGE),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(2, track_running_stats=True), VOLUME),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGE),
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(torch.rand(7)),
        both(normal((5, 7)), whole((5,), low=0, high=7)),
    ),
    "LSTM": (lambda: nn.LSTM(4, 3), normal((5, 2, 4))),
    "LSTM of two layers": (
        lambda: nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True),
        normal((2, 5, 4)),
    ),
    "GRU": (lambda: nn.GRU(4, 3, num_layers=2, bidirectional=True), normal((5, 2, 4))),
    "GRU without biases": (lambda: nn.GRU(4, 3, bias=False, batch_first=True), normal((2, 5, 4))),
    "RNN": (lambda: nn.RNN(4, 3, nonlinearity="relu"), normal((5, 2, 4))),
    "RNN with a state": (
        lambda: nn.RNN(4, 3, bidirectional=True),
        normal((5, 2, 4), (2, 2, 3)),
    ),
}
