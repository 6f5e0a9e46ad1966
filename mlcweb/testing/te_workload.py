"""`tvm.meta_schedule.testing.te_workload`: tensor expressions by which searches are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb import te, tir, topi
from mlcweb.tir import intrinsics
from mlcweb.tir.function import PrimFunc

Tensors = tuple[te.Tensor, ...]


def _cast(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


def matmul(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """C = A @ B."""
    a = te.placeholder((n, k), in_dtype, "A")
    b = te.placeholder((k, m), in_dtype, "B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute(
        (n, m),
        lambda i, j: te.sum(_cast(a[i, r], out_dtype) * _cast(b[r, j], out_dtype), axis=r),
        "C",
    )
    return a, b, c


def matmul_relu(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """C = relu(A @ B)."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    return a, b, topi.nn.relu(c)


def batch_matmul_nkkm(
    B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """A product of matrices for each of a batch."""
    x = te.placeholder((B, N, K), in_dtype, "X")
    y = te.placeholder((B, K, M), in_dtype, "Y")
    k = te.reduce_axis((0, K), "k")
    z = te.compute(
        (B, N, M),
        lambda b, i, j: te.sum(_cast(x[b, i, k], out_dtype) * _cast(y[b, k, j], out_dtype), axis=k),
        "Z",
    )
    return x, y, z


def transpose_batch_matmul(
    batch: int, seq_len: int, n_head: int, n_dim: int, in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """The scores of an attention: queries by values, each transposed."""
    shape = (batch, seq_len, n_head, n_dim)
    query, value = (te.placeholder(shape, in_dtype, name) for name in ("query", "value"))
    query_t = te.compute(
        (batch, n_head, seq_len, n_dim), lambda b, h, s, d: query[b, s, h, d], "query_T"
    )
    value_t = te.compute(
        (batch, n_head, n_dim, seq_len), lambda b, h, d, s: value[b, s, h, d], "value_T"
    )
    k = te.reduce_axis((0, n_dim), "k")
    out = te.compute(
        (batch, n_head, seq_len, seq_len),
        lambda b, h, i, j: te.sum(
            _cast(query_t[b, h, i, k], out_dtype) * _cast(value_t[b, h, k, j], out_dtype), axis=k
        ),
        "C",
    )
    return query, value, out


def _convolution(
    name: str, space: tuple[int, ...], channels: tuple[int, int], batch: int,
    size: tuple[int, int, int, int], groups: int | None, dtypes: tuple[str, str],
    names: tuple[str, str, str] = ("inputs", "weight", "PadInput"),
) -> Tensors:  # fmt: skip
    """A convolution of channels last; `size` has kernel, stride, padding and dilation. `groups`
    of None are no groups: the channels of the data are those that are summed over. `names` are
    those of the data, the weight and the padded data."""
    (ci, co), (kernel, stride, padding, dilation) = channels, size
    rank, part = len(space), ci // (groups or 1)
    data = te.placeholder((batch, *space, ci), dtypes[0], names[0])
    weight = te.placeholder((*[kernel] * rank, part, co), dtypes[0], names[1])
    reach = (kernel - 1) * dilation + 1
    shape = (batch, *((s + 2 * padding - reach) // stride + 1 for s in space), co)
    window = [te.reduce_axis((0, kernel), f"r{axis}") for axis in "dhw"[3 - rank :]]
    rc = te.reduce_axis((0, part), "rc")
    padded = topi.nn.pad(data, [0, *[padding] * rank, 0], name=names[2])

    def element(n: Any, at: Sequence[Any], c: Any) -> Any:
        indices = [p * stride + r * dilation for p, r in zip(at, window, strict=True)]
        channel = rc if groups is None else c // (co // groups) * part + rc
        read = padded[(n, *indices, channel)]
        factor = weight[(*window, rc, c)]
        return te.sum(_cast(read, dtypes[1]) * _cast(factor, dtypes[1]), axis=[*window, rc])

    of_rank: dict[int, Callable[..., Any]] = {
        1: lambda n, l, co: element(n, (l,), co),  # noqa: E741
        2: lambda n, h, w, co: element(n, (h, w), co),
        3: lambda n, d, h, w, co: element(n, (d, h, w), co),
    }  # whose names are those of the iterators
    return data, weight, te.compute(shape, of_rank[rank], name)


def conv1d_nlc(
    N: int, L: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, groups: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution along one axis."""
    size = (kernel_size, stride, padding, dilation)
    return _convolution("conv1d_nlc", (L,), (CI, CO), N, size, groups, (in_dtype, out_dtype))


def conv2d_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, groups: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of pictures."""
    size = (kernel_size, stride, padding, dilation)
    return _convolution("conv2d_nhwc", (H, W), (CI, CO), N, size, groups, (in_dtype, out_dtype))


def conv3d_ndhwc(
    N: int, D: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1,
    padding: int = 0, dilation: int = 1, groups: int = 1, in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of volumes."""
    size = (kernel_size, stride, padding, dilation)
    return _convolution("conv3d_ndhwc", (D, H, W), (CI, CO), N, size, groups, (in_dtype, out_dtype))


def conv2d_nchw(
    n: int, h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of pictures, channels first."""
    x = te.placeholder((n, ci, h, w), in_dtype, "X")
    y = te.placeholder((co, ci, kh, kw), in_dtype, "W")
    return x, y, topi.nn.conv2d_nchw(x, y, stride, padding, dilation, out_dtype)


def depthwise_conv2d_nhwc(
    N: int, H: int, W: int, C: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, factor: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """Each channel by its own filter."""
    data = te.placeholder((N, H, W, C), in_dtype, "placeholder")
    weight = te.placeholder((factor, kernel_size, kernel_size, C), in_dtype, "placeholder")
    reach = (kernel_size - 1) * dilation + 1
    out_h, out_w = ((size + 2 * padding - reach) // stride + 1 for size in (H, W))
    rh, rw = (te.reduce_axis((0, kernel_size), name) for name in ("rh", "rw"))
    padded = topi.nn.pad(data, [0, padding, padding, 0], name="PadInput")
    out = te.compute(
        (N, out_h, out_w, C * factor),
        lambda n, h, w, c: te.sum(
            _cast(
                padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor],
                out_dtype,
            )
            * _cast(weight[c % factor, rh, rw, c // factor], out_dtype),
            axis=[rh, rw],
        ),
        "depth_conv2d_nhwc",
    )
    return data, weight, out


def conv2d_transpose_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """The transpose of a convolution."""
    data = te.placeholder((N, H, W, CI), in_dtype, "inputs")
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), in_dtype, "weight")
    before = kernel_size - 1 - padding
    first = (before + stride - 1) // stride
    skipped = first * stride - before
    padded = topi.nn.pad(data, [0, first, first, 0], name="PadInput")
    out_h, out_w = ((size - 1) * stride - 2 * padding + kernel_size for size in (H, W))
    rh, rw = (te.reduce_axis((0, kernel_size), name) for name in ("rh", "rw"))
    rc = te.reduce_axis((0, CI), "rc")

    def element(n: Any, h: Any, w: Any, co: Any) -> Any:
        y, x = h + rh + skipped, w + rw + skipped
        read = padded[n, y // stride, x // stride, rc]
        if stride > 1:
            hit = tir.all((y % stride).equal(0), (x % stride).equal(0))
            read = tir.if_then_else(hit, read, tir.const(0, in_dtype))
        factor = weight[kernel_size - 1 - rh, kernel_size - 1 - rw, rc, co]
        return te.sum(_cast(read, out_dtype) * _cast(factor, out_dtype), axis=[rh, rw, rc])

    return data, weight, te.compute((N, out_h, out_w, CO), element, "conv2d_transpose_nhwc")


def conv2d_capsule_nhwijc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    capsule_size: int = 4, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of pictures whose points are square matrices, which are multiplied."""
    data = te.placeholder((N, H, W, capsule_size, capsule_size, CI), in_dtype, "inputs")
    weight = te.placeholder(
        (kernel_size, kernel_size, capsule_size, capsule_size, CI, CO), in_dtype, "weight"
    )
    out_h, out_w = ((size + 2 * padding - kernel_size) // stride + 1 for size in (H, W))
    rh, rw = (te.reduce_axis((0, kernel_size), name) for name in ("rh", "rw"))
    inner, rc = te.reduce_axis((0, capsule_size), "cap_k"), te.reduce_axis((0, CI), "rc")
    padded = topi.nn.pad(data, [0, padding, padding, 0, 0, 0], name="PadInput")
    out = te.compute(
        (N, out_h, out_w, capsule_size, capsule_size, CO),
        lambda n, h, w, cap_i, cap_j, co: te.sum(
            _cast(padded[n, h * stride + rh, w * stride + rw, cap_i, inner, rc], out_dtype)
            * _cast(weight[rh, rw, inner, cap_j, rc, co], out_dtype),
            axis=[rh, rw, inner, rc],
        ),
        "conv2d_capsule_nhwijc",
    )
    return data, weight, out


def conv2d_nchw_bias_bn_relu(
    n: int, h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution, channels first, with bias, a factor and a term for each channel, and ReLU."""
    data, weight, conv = conv2d_nchw(
        n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype
    )
    bias, scale, offset = (
        te.placeholder((co, 1, 1), out_dtype, name) for name in ("B", "bn_scale", "bn_offset")
    )
    shape = conv.shape
    out = te.compute(shape, lambda i, j, k, l: conv[i, j, k, l] + bias[j, 0, 0], "bias_add")  # noqa: E741
    product = te.compute(shape, lambda i, j, k, l: out[i, j, k, l] * scale[j, 0, 0], "bn_mul")  # noqa: E741
    total = te.compute(shape, lambda i, j, k, l: product[i, j, k, l] + offset[j, 0, 0], "bn_add")  # noqa: E741
    return data, weight, bias, scale, offset, topi.nn.relu(total)


def conv2d_nhwc_bn_relu(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, strides: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution with bias, a factor and a term for each channel, and ReLU."""
    size = (kernel_size, strides, padding, dilation)
    data, weight, conv = _convolution(
        "Conv2dOutput", (H, W), (CI, CO), N, size, None, (in_dtype, out_dtype),
        ("data", "kernel", "PaddedInput"),
    )  # fmt: skip
    bias, offset, scale = (
        te.placeholder((CO,), out_dtype, name) for name in ("bias", "bn_offset", "bn_scale")
    )
    shape = conv.shape
    out = te.compute(shape, lambda n, h, w, c: conv[n, h, w, c] + bias[c], "bias_add")
    product = te.compute(shape, lambda n, h, w, c: out[n, h, w, c] * scale[c], "bn_mul")
    total = te.compute(shape, lambda n, h, w, c: product[n, h, w, c] + offset[c], "bn_add")
    return data, weight, bias, offset, scale, topi.nn.relu(total)


def max_pool2d_nchw(n: int, h: int, w: int, ci: int, padding: int) -> Tensors:
    """The maximum of windows of 2 by 2."""
    x = te.placeholder((n, ci, h, w), "float32", "X")
    return x, topi.nn.pool2d(x, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")


def norm_bmn(B: int, M: int, N: int) -> Tensors:
    """The root of the sum of squares, for each of a batch."""
    a = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), "i"), te.reduce_axis((0, N), "j")
    c = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), "C")
    return a, te.compute((B,), lambda b: intrinsics.sqrt(c[b]), "D")


def softmax_mn(m: int, n: int) -> Tensors:
    """The softmax of each row."""
    a = te.placeholder((m, n), name="A")
    return a, topi.nn.softmax(a, 1)


CONFIGS: dict[str, tuple[Callable[..., Tensors], list[tuple[int, ...]]]] = {
    "C1D": (conv1d_nlc, [(1, 256, 64, 128, 3, 2, 1), (1, 128, 128, 256, 1, 2, 0)]),
    "C2D": (conv2d_nhwc, [(1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 64, 1, 1, 0)]),
    "C3D": (conv3d_ndhwc, [(1, 16, 224, 224, 3, 64, 7, 2, 3), (1, 16, 56, 56, 64, 64, 1, 1, 0)]),
    "GMM": (batch_matmul_nkkm, [(1, 128, 128, 128), (1, 512, 32, 512)]),
    "GRP": (conv2d_nhwc, [(1, 56, 56, 64, 128, 3, 2, 1, 1, 4), (1, 56, 56, 64, 64, 1, 1, 0, 1, 4)]),
    "DIL": (conv2d_nhwc, [(1, 224, 224, 3, 64, 7, 2, 3, 2), (1, 56, 56, 64, 64, 1, 1, 0, 2)]),
    "DEP": (depthwise_conv2d_nhwc, [(1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1)]),
    "T2D": (conv2d_transpose_nhwc, [(1, 4, 4, 512, 256, 4, 2, 1), (1, 8, 8, 256, 128, 4, 2, 1)]),
    "CAP": (
        conv2d_capsule_nhwijc,
        [
            (1, 16, 16, 32, 32, 3, 2, 1),
            (1, 8, 8, 32, 32, 3, 1, 1),
            (1, 16, 16, 8, 16, 3, 2, 1),
            (1, 8, 8, 16, 16, 3, 1, 1),
        ],
    ),
    "NRM": (norm_bmn, [(1, 256, 256), (1, 512, 512)]),
    "SFM": (softmax_mn, [(256, 256), (512, 512)]),
    "CBR": (conv2d_nhwc_bn_relu, [(1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 128, 3, 2, 1)]),
    "TBG": (transpose_batch_matmul, [(1, 128, 12, 64), (1, 128, 16, 64)]),
}
"""The short name of a program -> what makes it, and the sizes at which it is compared."""


def create_te_workload(name: str, idx: int) -> PrimFunc:
    """The program of a short name, at one of its sizes.

    Raises:
        KeyError: there is no such program here.
    """
    if name not in CONFIGS:
        raise KeyError(f"there is no workload {name} here; there are {', '.join(CONFIGS)}")
    build, sizes = CONFIGS[name]
    return te.create_prim_func(list(build(*sizes[idx])))
