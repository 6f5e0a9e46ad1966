"""Operators of neural networks against NumPy."""

import math

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax import op
from mlcweb.script import relax as R
from tests.relax.op.references import convolution, convolution_transpose, normalized, pool

erf = np.vectorize(math.erf, otypes=["float64"])
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(np.minimum(x, 0)) - 1))
    ),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "leakyrelu": lambda x: np.where(x > 0, x, 0.01 * x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(3, 7), (0, 2), ()])
def test_activations(name, shape, check, random):
    x = np.asarray(random(*shape) * 3, "float32")
    check(getattr(op.nn, name), [x], np.asarray(ACTIVATIONS[name](x), "float32"))


def test_slopes(check, random):
    x, alpha = random(2, 3, 4), random(3)
    expected = np.where(x > 0, x, alpha[None, :, None] * x)
    check(lambda v, a: op.nn.prelu(v, a, 1), [x, alpha], expected)
    one = alpha[:1]
    check(lambda v, a: op.nn.prelu(v, a, 1), [x, one], np.where(x > 0, x, one * x))
    check(lambda v: op.nn.leakyrelu(v, 0.2), [x], np.where(x > 0, x, np.float32(0.2) * x))
    soft = np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2)
    check(lambda v: op.nn.softplus(v, 2.0, 1.0), [x], soft.astype("float32"))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis, check, random):
    x = random(3, 4, 5) * 20
    e = np.exp(x - x.max(axis, keepdims=True))
    share = e / e.sum(axis, keepdims=True)
    check(lambda v: op.nn.softmax(v, axis), [x], share)
    logs = x - x.max(axis, keepdims=True) - np.log(e.sum(axis, keepdims=True))
    check(lambda v: op.nn.log_softmax(v, axis), [x], logs)


def test_dropout_keeps_all(check, random):
    x = random(3, 4)
    check(op.nn.dropout, [x], [x, np.ones_like(x)])


@pytest.mark.parametrize(
    ("mode", "name"),
    [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")],
)
def test_pad(mode, name, check, random):
    x = random(3, 4)
    options = {"constant_values": 2.5} if mode == "constant" else {}
    expected = np.pad(x, ((1, 0), (2, 3)), mode=name, **options)
    check(lambda v: op.nn.pad(v, [1, 0, 2, 3], mode, 2.5), [x], expected)


CONV = [
    {},
    {"strides": 2, "padding": 1},
    {"strides": (2, 1), "padding": (1, 2, 0, 1), "dilation": (1, 2)},
    {"groups": 2},
    {"groups": 4, "padding": 1},
]


@pytest.mark.parametrize("options", CONV)
@pytest.mark.parametrize(
    ("layout", "kernel"), [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "OIHW")]
)
def test_conv2d(options, layout, kernel, check, random):
    groups = options.get("groups", 1)
    x, w = random(2, 4, 7, 6), random(8, 4 // groups, 3, 2)

    def pair(value):
        return list(value) if isinstance(value, tuple) else [value] * 2

    padding = options.get("padding", 0)
    wide = list(padding) if isinstance(padding, tuple) else [padding] * 4
    expected = convolution(
        x, w, pair(options.get("strides", 1)), wide, pair(options.get("dilation", 1)), groups
    )

    def turned(array, letters, wanted):
        return np.ascontiguousarray(array.transpose([letters.index(c) for c in wanted]))

    check(
        lambda a, b: op.nn.conv2d(a, b, data_layout=layout, kernel_layout=kernel, **options),
        [turned(x, "NCHW", layout), turned(w, "OIHW", kernel)],
        turned(expected, "NCHW", layout),
        rtol=1e-4,
    )


def test_conv2d_in_another_layout(check, random):
    x, w = random(1, 5, 5, 3), random(4, 3, 3, 3)
    expected = convolution(x.transpose(0, 3, 1, 2), w, [1, 1], [0] * 4, [1, 1])
    check(
        lambda a, b: op.nn.conv2d(a, b, data_layout="NHWC", out_layout="NCHW"), [x, w], expected,
        rtol=1e-4,
    )  # fmt: skip


def test_conv1d_and_conv3d(check, random):
    x, w = random(2, 4, 9), random(6, 4, 3)
    check(
        lambda a, b: op.nn.conv1d(a, b, 2, 1, 2), [x, w],
        convolution(x, w, [2], [1, 1], [2]), rtol=1e-4,
    )  # fmt: skip
    x, w = random(1, 2, 4, 5, 3), random(3, 2, 2, 3, 1)
    check(
        lambda a, b: op.nn.conv3d(a, b, 1, (0, 1, 0)), [x, w],
        convolution(x, w, [1, 1, 1], [0, 1, 0] * 2, [1, 1, 1]), rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("strides", "padding", "extra", "dilation", "groups"),
    [
        ((1, 1), (0, 0, 0, 0), (0, 0), (1, 1), 1),
        ((2, 2), (1, 1, 1, 1), (1, 1), (1, 1), 1),
        ((2, 3), (1, 0, 0, 2), (0, 1), (2, 1), 2),
    ],
)
def test_conv2d_transpose(strides, padding, extra, dilation, groups, check, random):
    x, w = random(2, 4, 3, 4), random(4, 3, 3, 2)
    expected = convolution_transpose(x, w, strides, padding, extra, dilation, groups)
    check(
        lambda a, b: op.nn.conv2d_transpose(a, b, strides, padding, extra, dilation, groups),
        [x, w],
        expected,
        rtol=1e-4,
    )


def test_conv1d_transpose(check, random):
    x, w = random(1, 2, 5), random(2, 3, 4)
    expected = convolution_transpose(x, w, [3], [1, 1], [2], [1])
    check(lambda a, b: op.nn.conv1d_transpose(a, b, 3, 1, 2), [x, w], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(
    ("size", "stride", "padding"), [(2, 2, [0] * 4), (3, 2, [1] * 4), (2, 1, [1, 0, 0, 1])]
)
def test_pool2d(kind, size, stride, padding, check, random):
    x = random(2, 3, 6, 7)
    build = getattr(op.nn, f"{kind}_pool2d")
    for counts in (False, True):
        expected = pool(x, kind, [size] * 2, [stride] * 2, padding, counts)
        check(
            lambda v, c=counts: build(v, size, stride, padding, count_include_pad=c), [x], expected
        )
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    expected = pool(x, kind, [size] * 2, [stride] * 2, padding).transpose(0, 2, 3, 1)
    check(lambda v: build(v, size, stride, padding, layout="NHWC"), [last],
          np.ascontiguousarray(expected))  # fmt: skip


def test_pool_with_a_partial_last_window(check, random):
    x = random(1, 2, 6, 6)
    wide = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-np.inf)
    expected = pool(wide, "max", [3, 3], [2, 2], [0] * 4)
    check(lambda v: op.nn.max_pool2d(v, 3, 2, ceil_mode=True), [x], expected)


def test_pool1d(check, random):
    x = random(1, 4, 9)
    check(lambda v: op.nn.max_pool1d(v, 3, 2, 1), [x], pool(x, "max", [3], [2], [1, 1]))
    check(lambda v: op.nn.avg_pool1d(v, 2, 2), [x], pool(x, "avg", [2], [2], [0, 0]))


@pytest.mark.parametrize("size", [1, (3, 2), (4, 5), None])
def test_adaptive_avg_pool2d(size, check, random):
    x = random(2, 3, 6, 7)
    rows, columns = {1: (1, 1), None: (6, 7)}.get(size, size)

    def bounds(n, out):
        return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]

    expected = np.stack([
        np.stack([x[:, :, a:b, c:d].mean((2, 3)) for c, d in bounds(7, columns)], -1)
        for a, b in bounds(6, rows)
    ], -2)  # fmt: skip
    check(lambda v: op.nn.adaptive_avg_pool2d(v, size), [x], expected)


def test_adaptive_avg_pool1d(check, random):
    x = random(2, 3, 6)
    check(lambda v: op.nn.adaptive_avg_pool1d(v, 2), [x], x.reshape(2, 3, 2, 3).mean(-1))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm(training, affine, check, random):
    x = random(3, 4, 2, 5)
    gamma, beta, mean = random(4), random(4), random(4)
    var = np.abs(random(4)) + np.float32(0.5)

    def along(v):
        return v[None, :, None, None]

    now = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if training else (mean, var)
    expected = (x - along(now[0])) / np.sqrt(along(now[1]) + 1e-3)
    if affine:
        expected = expected * along(gamma) + along(beta)
    share = 0.2 if training else 0.0
    moved = [(1 - share) * old + share * new for old, new in zip((mean, var), now, strict=True)]
    check(
        lambda *a: op.nn.batch_norm(
            *a, axis=1, epsilon=1e-3, center=affine, scale=affine, momentum=0.2, training=training
        ),
        [x, gamma, beta, mean, var],
        [np.asarray(v, "float32") for v in (expected, *moved)],
        rtol=1e-4,
    )


@pytest.mark.parametrize("axes", [[-1], [1, 2]])
def test_layer_and_rms_norm(axes, check, random):
    x = random(3, 4, 5)
    shape = [x.shape[a] for a in axes]
    gamma, beta = random(*shape), random(*shape)
    plain = normalized(x, tuple(axes), 1e-5)
    check(lambda *a: op.nn.layer_norm(*a, axes=axes), [x, gamma, beta], plain * gamma + beta,
          rtol=1e-4)  # fmt: skip
    check(lambda *a: op.nn.layer_norm(*a, axes=axes, center=False, scale=False), [x, gamma, beta],
          plain, rtol=1e-4)  # fmt: skip
    root = np.sqrt((x * x).mean(tuple(axes), keepdims=True) + 1e-5)
    check(lambda *a: op.nn.rms_norm(*a, axes=axes), [x, gamma], x / root * gamma, rtol=1e-4)


def test_group_and_instance_norm(check, random):
    x, gamma, beta = random(2, 6, 3, 4), random(6), random(6)
    scale, shift = gamma[None, :, None, None], beta[None, :, None, None]
    groups = normalized(x.reshape(2, 3, 2, 3, 4), (2, 3, 4), 1e-5).reshape(x.shape)
    check(lambda *a: op.nn.group_norm(*a, 3, 1, [2, 3]), [x, gamma, beta], groups * scale + shift,
          rtol=1e-4)  # fmt: skip
    check(lambda *a: op.nn.instance_norm(*a, 1, [2, 3]), [x, gamma, beta],
          normalized(x, (2, 3), 1e-5) * scale + shift, rtol=1e-4)  # fmt: skip


@pytest.mark.parametrize("mask", [None, "TopLeft", "BottomRight"])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_attention(mask, scale, check, random):
    q, k, v = random(2, 4, 3, 8), random(2, 6, 3, 8), random(2, 6, 3, 5)
    bias = random(2, 1, 4, 6)
    scores = np.einsum("bihd,bjhd->bhij", q, k) * (scale or 1 / math.sqrt(8))

    def expected(s):
        i, j = np.indices((4, 6))
        shift = {"TopLeft": 0, "BottomRight": 2}.get(mask)
        if shift is not None:
            s = np.where(j <= i + shift, s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        return np.einsum("bhij,bjhd->bihd", e / e.sum(-1, keepdims=True), v)

    options = {"scale": scale, "causal_mask": mask}
    check(lambda *a: op.nn.attention(*a, **options), [q, k, v], expected(scores).astype("float32"))
    check(lambda *a: op.nn.attention(*a, **options), [q, k, v, bias],
          expected(scores + bias).astype("float32"))  # fmt: skip


def test_pixel_shuffle(check, random):
    x = random(2, 8, 3, 4)
    expected = x.reshape(2, 2, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 8)
    check(lambda v: op.nn.pixel_shuffle(v, 2), [x], np.ascontiguousarray(expected))


MATMULS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((5, 1, 2, 3), (4, 3, 6)), ((0, 3), (3, 4)), ((2, 0), (0, 3)), ((2, 2, 3), (2, 3, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), MATMULS)
def test_matmul(a, b, check, random):
    x, y = random(*a), random(*b)
    check(op.matmul, [x, y], np.asarray(np.matmul(x, y)), rtol=1e-4)


def test_extents_of_a_sum_are_compared_in_a_run(random):
    n, m = (mlcweb.tir.Var(name, "int64") for name in "nm")
    builder = relax.BlockBuilder()
    x, y = relax.Var("x", R.Tensor((2, n), "float32")), relax.Var("y", R.Tensor((m, 3), "float32"))
    with builder.function("main", [x, y]):
        builder.emit_func_output(builder.emit(op.matmul(x, y)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), mlcweb.cpu())
    a, b = random(2, 4), random(4, 3)
    result = machine["main"](*map(mlcweb.nd.array, (a, b))).numpy()
    np.testing.assert_allclose(result, a @ b, rtol=1e-4)
    with pytest.raises(ValueError, match=r"should be R\.Tensor\(\(2, m\)"):
        machine["main"](*map(mlcweb.nd.array, (random(2, 5), b)))


def test_products(check, random):
    x, w, b = random(2, 3), random(4, 3), random(4)
    check(lambda *a: op.linear(*a), [x, w, b], x @ w.T + b)
    check(op.outer, [x[0], b], np.outer(x[0], b))
    i, j = random(2, 3, dtype="int32"), random(3, 2, dtype="int32")
    check(lambda p, q: op.matmul(p, q, "float32"), [i, j], (i @ j).astype("float32"))


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("bii->b", [(2, 3, 3)]),
        ("ij->ji", [(2, 3)]), ("i,j->ij", [(2,), (3,)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("ij->", [(2, 3)]), ("bhid,bhjd->bhij", [(1, 2, 3, 4), (1, 2, 5, 4)]),
    ],
)  # fmt: skip
def test_einsum(subscripts, shapes, check, random):
    arrays = [random(*shape) for shape in shapes]
    expected = np.asarray(np.einsum(subscripts, *arrays))
    check(lambda *a: op.einsum(a, subscripts), arrays, expected, rtol=1e-4)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("padding", [0, 1, (1, 0, 1, 0, 1, 0)])
def test_pool3d(kind, padding, check, random):
    x = random(2, 3, 4, 5, 6)
    sides = [padding] * 6 if isinstance(padding, int) else padding
    build = op.nn.max_pool3d if kind == "max" else op.nn.avg_pool3d
    expected = pool(x, kind, [2, 3, 2], [1, 2, 2], sides, counts_padding=True)
    check(lambda v: build(v, (2, 3, 2), (1, 2, 2), padding), [x], expected)


def test_adaptive_avg_pool3d(check, random):
    x = random(1, 2, 4, 6, 2)
    expected = x.reshape(1, 2, 2, 2, 2, 3, 2, 1).mean((3, 5, 7))
    check(lambda v: op.nn.adaptive_avg_pool3d(v, 2), [x], expected)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv3d_transpose(groups, check, random):
    x, w = random(1, 4, 2, 3, 2), random(4, 3, 2, 2, 3)
    sizes = [(2, 1, 2), (1, 0, 1, 0, 1, 0), (1, 0, 0), (1, 1, 1)]
    expected = convolution_transpose(x, w, *sizes, groups)
    check(
        lambda a, b: op.nn.conv3d_transpose(a, b, *sizes, groups=groups), [x, w], expected,
        rtol=1e-4,
    )  # fmt: skip
