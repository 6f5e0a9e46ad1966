"""Operators of neural networks against plain NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb import TVMError, te, topi
from tests.strategies import examples

nn = topi.nn


def close(got, want, rtol=2e-5):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-5)


def convolution(x, w, stride, padding, dilation, groups):
    """A convolution of (n, c, h, w) in float64, straight from the definition."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, c, height, width = x.shape
    filters, per_group, kh, kw = w.shape
    oh = (height - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    ow = (width - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    out = np.zeros((n, filters, oh, ow))
    for f in range(filters):
        start = f // (filters // groups) * per_group
        for y in range(oh):
            for z in range(ow):
                window = x[
                    :,
                    start : start + per_group,
                    y * stride[0] : y * stride[0] + (kh - 1) * dilation[0] + 1 : dilation[0],
                    z * stride[1] : z * stride[1] + (kw - 1) * dilation[1] + 1 : dilation[1],
                ]
                out[:, f, y, z] = (window * w[f]).sum((1, 2, 3))
    return out.astype("float32")


@examples(12)
@given(st.data())
def test_convolutions(data):
    from tests.topi.conftest import run

    draw = data.draw
    groups = draw(st.sampled_from((1, 1, 2, 3)))
    channels, filters = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    kernel = draw(st.tuples(*[st.integers(1, 3)] * 2))
    stride, dilation = (draw(st.tuples(*[st.integers(1, 2)] * 2)) for _ in range(2))
    padding = draw(st.tuples(*[st.integers(0, 2)] * 4))
    image = tuple(
        draw(st.integers(max(1, (k - 1) * d + 1), 7)) for k, d in zip(kernel, dilation, strict=True)
    )
    generator = np.random.default_rng(3)
    x = generator.standard_normal((2, channels, *image)).astype("float32")
    w = generator.standard_normal((filters, channels // groups, *kernel)).astype("float32")
    want = convolution(x, w, stride, padding, dilation, groups)
    got = run(lambda a, b: nn.conv2d(a, b, stride, padding, dilation, groups=groups), x, w)
    close(got, want)
    last = run(
        lambda a, b: nn.conv2d(a, b, stride, padding, dilation, "NHWC", "HWIO", groups=groups),
        x.transpose(0, 2, 3, 1).copy(),
        w.transpose(2, 3, 1, 0).copy(),
    )
    close(last.transpose(0, 3, 1, 2), want)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_convolutions(run, random, multiplier):
    x, w = random(1, 3, 6, 7), random(3, multiplier, 3, 2)
    want = convolution(x, w.reshape(3 * multiplier, 1, 3, 2), (2, 1), (1, 0, 1, 1), (1, 2), 3)
    arguments = ((2, 1), (1, 0, 1, 1), (1, 2))
    close(run(lambda a, b: nn.depthwise_conv2d_nchw(a, b, *arguments), x, w), want)
    last = run(
        lambda a, b: nn.depthwise_conv2d_nhwc(a, b, *arguments),
        x.transpose(0, 2, 3, 1).copy(),
        w.transpose(2, 3, 0, 1).copy(),
    )
    close(last.transpose(0, 3, 1, 2), want)


def pooling(x, size, stride, padding, function, include):
    top, left, bottom, right = padding
    fill = -np.inf if function is np.max else 0
    widths = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(x, widths, constant_values=fill)
    inside = np.pad(np.ones_like(x), widths, constant_values=1 if include else 0)
    oh = (padded.shape[2] - size[0]) // stride[0] + 1
    ow = (padded.shape[3] - size[1]) // stride[1] + 1
    out = np.zeros((*x.shape[:2], oh, ow), "float32")
    for y in range(oh):
        for z in range(ow):
            place = (
                ...,
                slice(y * stride[0], y * stride[0] + size[0]),
                slice(z * stride[1], z * stride[1] + size[1]),
            )
            if function is np.max:
                out[..., y, z] = padded[place].max((2, 3))
            else:
                out[..., y, z] = padded[place].sum((2, 3)) / inside[place].sum((2, 3))
    return out


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 0, 1)])
def test_pooling(run, random, padding, include):
    x = random(2, 3, 7, 6)
    got = run(lambda a: nn.pool2d(a, (3, 2), (2, 1), 1, padding, "max"), x)
    close(got, pooling(x, (3, 2), (2, 1), padding, np.max, include))
    got = run(
        lambda a: nn.pool2d(a, (3, 2), (2, 1), 1, padding, "avg", count_include_pad=include),
        x,
    )
    close(got, pooling(x, (3, 2), (2, 1), padding, np.mean, include))


def test_pooling_counts_a_partial_last_window_where_asked(run):
    x = np.arange(25, dtype="float32").reshape(1, 1, 5, 5)
    got = run(lambda a: nn.pool2d(a, 2, 2, 1, 0, "max", ceil_mode=True), x)
    assert got[0, 0].tolist() == [[6, 8, 9], [16, 18, 19], [21, 23, 24]]
    mean = run(lambda a: nn.pool2d(a, 2, 2, 1, 0, "avg", ceil_mode=True), x)
    assert mean[0, 0, 2].tolist() == [20.5, 22.5, 24.0]


def test_adaptive_and_global_pooling(run, random):
    x = random(1, 2, 7, 6)
    close(run(lambda a: nn.global_pool(a, "avg"), x), x.mean((2, 3), keepdims=True))
    close(run(lambda a: nn.global_pool(a, "max"), x), x.max((2, 3), keepdims=True))
    want = np.zeros((1, 2, 3, 4), "float32")
    for i in range(3):
        for j in range(4):
            rows = slice(i * 7 // 3, math.ceil((i + 1) * 7 / 3))
            columns = slice(j * 6 // 4, math.ceil((j + 1) * 6 / 4))
            want[:, :, i, j] = x[:, :, rows, columns].mean((2, 3))
    close(run(lambda a: nn.adaptive_pool(a, (3, 4), "avg"), x), want)


def test_matrix_products(run, random):
    a, b, bias = random(4, 7), random(6, 7), random(6)
    close(run(nn.dense, a, b), a @ b.T)
    close(run(nn.dense, a, b, bias), a @ b.T + bias)
    close(run(lambda x, y: nn.matmul(x, y, transpose_a=True), a.T.copy(), b.T.copy()), a @ b.T)
    batch, other = random(3, 4, 7), random(3, 5, 7)
    close(run(nn.batch_matmul, batch, other), batch @ other.transpose(0, 2, 1))
    one = random(1, 7, 5)
    close(run(lambda x, y: nn.batch_matmul(x, y, transpose_b=False), batch, one), batch @ one)
    wide = random(2, 1, 4, 7)
    close(run(topi.matmul, wide, other.transpose(0, 2, 1).copy()), wide @ other.transpose(0, 2, 1))
    vector = random(7)
    close(run(topi.matmul, batch, vector), batch @ vector)
    close(run(topi.matmul, vector, vector), np.asarray(vector @ vector))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(run, random, axis):
    x = random(3, 4, 5) * 20
    e = np.exp(x - x.max(axis, keepdims=True))
    want = e / e.sum(axis, keepdims=True)
    close(run(lambda a: nn.softmax(a, axis), x), want)
    close(run(lambda a: nn.log_softmax(a, axis), x), np.log(want + 1e-38), rtol=1e-4)


def test_normalizations(run, random):
    x, gamma, beta = random(2, 3, 8) + 5, random(8), random(8)
    centred = x - x.mean(-1, keepdims=True)
    normal = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    close(run(lambda a, g, b: nn.layer_norm(a, g, b, -1), x, gamma, beta), normal * gamma + beta)
    root = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    close(run(lambda a, g: nn.rms_norm(a, g, [2]), x, gamma), x / root * gamma)

    image, scale, shift = random(2, 4, 3, 5), random(4), random(4)
    groups = image.reshape(2, 2, 2, 3, 5)
    spread = np.sqrt(groups.var((2, 3, 4), keepdims=True) + 1e-5)
    normal = ((groups - groups.mean((2, 3, 4), keepdims=True)) / spread).reshape(image.shape)
    want = normal * scale[:, None, None] + shift[:, None, None]
    close(run(lambda a, g, b: nn.group_norm(a, g, b, 2, 1, [2, 3]), image, scale, shift), want)

    spread = np.sqrt(image.var((2, 3), keepdims=True) + 1e-5)
    normal = (image - image.mean((2, 3), keepdims=True)) / spread
    want = normal * scale[:, None, None] + shift[:, None, None]
    close(run(lambda a, g, b: nn.instance_norm(a, g, b, 1, [2, 3]), image, scale, shift), want)


def test_batch_norm(run, random):
    x, gamma, beta, mean = random(2, 3, 4, 5), random(3), random(3), random(3)
    variance = np.abs(random(3))
    got, same_mean, same_variance = run(
        lambda *t: nn.batch_norm(*t, axis=1), x, gamma, beta, mean, variance
    )
    shape = (1, 3, 1, 1)
    want = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-5)
    close(got, want * gamma.reshape(shape) + beta.reshape(shape))
    np.testing.assert_array_equal(same_mean, mean)
    np.testing.assert_array_equal(same_variance, variance)


def test_activations(run, random):
    x = random(4, 5) * 4
    erf = np.vectorize(math.erf)
    sigmoid = 1 / (1 + np.exp(-x))
    close(run(nn.relu, x), x.clip(0))
    close(run(lambda a: nn.leaky_relu(a, 0.1), x), np.where(x > 0, x, 0.1 * x).astype("float32"))
    close(run(nn.gelu, x), (x * 0.5 * (1 + erf(x / math.sqrt(2)))).astype("float32"))
    cubic = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    close(run(nn.gelu_tanh, x), (0.5 * x * (1 + np.tanh(cubic))).astype("float32"))
    close(run(nn.silu, x), x * sigmoid)
    close(run(nn.softplus, x), np.logaddexp(0, x))
    close(run(nn.hard_sigmoid, x), (x / 6 + 0.5).clip(0, 1))
    close(run(nn.hard_swish, x), x * (x / 6 + 0.5).clip(0, 1))
    slope = random(5)
    for slopes in (slope, slope[:1]):
        close(run(lambda a, s: nn.prelu(a, s, 1), x, slopes), np.where(x > 0, x, slopes * x))


def test_padding(run, random):
    x = random(3, 4)
    np.testing.assert_array_equal(
        run(lambda a: nn.pad(a, (1, 0), (2, 1), 9.0), x),
        np.pad(x, ((1, 2), (0, 1)), constant_values=9),
    )
    for mode in ("reflect", "symmetric"):
        np.testing.assert_array_equal(
            run(lambda a, mode=mode: nn.mirror_pad(a, (1, 2), (2, 0), mode.upper()), x),
            np.pad(x, ((1, 2), (2, 0)), mode=mode),
        )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: nn.dense(x, te.placeholder((3, 6), name="w")), "inner dimensions differ"),
        (
            lambda x: nn.conv2d(x, te.placeholder((3, 6, 1, 1), name="w")),
            r"shape \(4, 5\); NCHW is expected",
        ),
        (
            lambda x: nn.conv2d(
                te.placeholder((1, 4, 8, 8), name="x"), te.placeholder((8, 3, 3, 3), name="w")
            ),
            "does not fit the data",
        ),
        (
            lambda x: nn.conv2d(
                te.placeholder((1, 3, 2, 2), name="x"), te.placeholder((8, 3, 3, 3), name="w")
            ),
            "larger than the padded",
        ),
        (lambda x: nn.softmax(x, 2), "axis 2"),
        (lambda x: nn.pool2d(te.placeholder((1, 1, 4, 4)), 2, 2, 1, (1, 2, 3), "max"), "padding"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(TVMError, match=message):
        build(te.placeholder((4, 5), name="x"))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x, g: nn.layer_norm(x, g, g, -1), (0.0, 2.0)),
        (lambda x, g: nn.rms_norm(x, g, -1), (1 / 5**0.5, 3 / 5**0.5)),
    ],
)
def test_norms_of_float16_sum_in_float32(run, build, expected):
    """4096 ones and threes: their float16 sum stops growing long before 8192."""
    x = np.tile(np.array([1, 3], "float16"), 2048).reshape(1, 4096)
    gamma = np.ones(4096, "float16")
    got = run(build, x, gamma)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got[0, :2].astype("float32"), expected, atol=1e-3)


def test_group_and_instance_norms_of_float16_sum_in_float32(run):
    x = np.tile(np.array([1, 3], "float16"), 4096).reshape(1, 2, 4096)
    ones, zeros = np.ones(2, "float16"), np.zeros(2, "float16")
    for build in (
        lambda x, g, b: nn.group_norm(x, g, b, 1, 1, [2]),
        lambda x, g, b: nn.instance_norm(x, g, b, 1, [2]),
    ):
        np.testing.assert_array_equal(run(build, x, ones, zeros)[0, 1, :2], [-1, 1])


def blocked(x):
    """NCHW as NCHW4c."""
    n, c, h, w = x.shape
    return x.reshape(n, c // 4, 4, h, w).transpose(0, 1, 3, 4, 2).copy()


@pytest.mark.parametrize(
    "operator",
    [
        lambda a, layout: nn.pool2d(a, 2, 1, 1, (1, 0, 0, 1), "max", layout=layout),
        lambda a, layout: nn.pool2d(a, 3, 2, 1, 1, "avg", True, layout, False),
        lambda a, layout: nn.adaptive_pool(a, (3, 2), "avg", layout),
        lambda a, layout: nn.global_pool(a, "max", layout),
        lambda a, layout: nn.upsampling(a, 2, 3, layout, "bilinear", True),
        lambda a, layout: topi.image.resize2d(a, None, (3, 9), layout, "cubic"),
        lambda a, layout: topi.image.resize2d(a, None, (8, 4), layout, "nearest_neighbor"),
    ],
)
def test_channels_in_blocks(run, random, operator):
    x = random(2, 8, 5, 6)
    want = run(lambda a: operator(a, "NCHW"), x)
    close(run(lambda a: operator(a, "NCHW4c"), blocked(x)), blocked(want))


def test_layouts_that_images_do_not_have():
    x = te.placeholder((1, 2, 5, 6, 4))
    for layout in ("NCHW4h", "NCHWc", "N4cCHW", "NCXW4c"):
        with pytest.raises(TVMError, match="a layout is an order of the letters"):
            nn.pool2d(x, 2, 1, 1, 0, "max", layout=layout)
    with pytest.raises(TVMError, match="an image of the layout NCHW4c is expected"):
        nn.global_pool(te.placeholder((1, 2, 5, 6)), "max", "NCHW4c")


def test_means_of_integers_are_rounded_towards_zero(run):
    x = np.array([[-7, 4, 2, 0], [1, 0, 1, 0]], "int8").reshape(1, 1, 2, 4)
    got = run(lambda a: nn.pool2d(a, 2, 2, 1, 0, "avg"), x)
    assert (got.dtype, got.ravel().tolist()) == ("int32", [0, 0])
    x[0, 0, 0, 0] = -20
    assert run(lambda a: nn.pool2d(a, 2, 2, 1, 0, "avg"), x).ravel().tolist() == [-3, 0]
    assert run(lambda a: nn.global_pool(a, "avg"), x).ravel().tolist() == [-1]


def test_nearest_neighbours_halfway_are_even(run):
    x = np.arange(5, dtype="float32").reshape(1, 1, 5)
    got = run(
        lambda a: topi.image.resize1d(a, None, (9,), "NCW", "nearest_neighbor", "align_corners"), x
    )
    assert got.ravel().tolist() == [0, 0, 1, 2, 2, 2, 3, 4, 4]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("extrapolation", [None, 0.25])
def test_regions_of_images_at_one_size(run, random, layout, extrapolation):
    images = random(2, 3, 5, 6)
    boxes = np.array([[0, 0, 1, 1], [0.25, 0.2, 0.75, 1.2], [1, 0, 0, 1]], "float32")
    which = np.array([1, 0, 1], "int32")
    want = np.zeros((3, 3, 3, 4), "float32")
    for n, y, x in np.ndindex(3, 3, 4):
        top, left, bottom, right = boxes[n]
        row = (top + (bottom - top) * y / 2) * 4
        column = (left + (right - left) * x / 3) * 5
        outside = row > 4 or column > 5.0001
        if outside and extrapolation is not None:
            want[n, :, y, x] = extrapolation
            continue
        for at, high in ((int(row), 1 - row % 1), (int(row) + 1, row % 1)):
            for to, wide in ((int(column), 1 - column % 1), (int(column) + 1, column % 1)):
                want[n, :, y, x] += high * wide * images[which[n], :, min(at, 4), min(to, 5)]
    operator = topi.image.crop_and_resize
    source = images if layout == "NCHW" else images.transpose(0, 2, 3, 1).copy()
    got = run(
        lambda a, b, i: operator(a, b, i, (3, 4), layout, extrapolation_value=extrapolation),
        source, boxes, which,
    )  # fmt: skip
    close(got if layout == "NCHW" else got.transpose(0, 3, 1, 2), want, 1e-4)


def test_regions_take_the_nearest_pixel(run):
    images = np.arange(20, dtype="float32").reshape(1, 1, 4, 5)
    boxes, which = np.array([[0, 0, 1, 1]], "float32"), np.array([0], "int32")
    got = run(
        lambda a, b, i: topi.image.crop_and_resize(a, b, i, (2, 3), method="nearest_neighbor"),
        images, boxes, which,
    )  # fmt: skip
    assert got.tolist() == [[[[0, 2, 4], [15, 17, 19]]]]
    boxes = np.array([[0.2, 0.15, 0.8, 0.9]], "float32")  # rows 0.6, 2.4; columns 0.6, 2.1, 3.6
    got = run(
        lambda a, b, i: topi.image.crop_and_resize(a, b, i, (2, 3), method="nearest_neighbor"),
        images, boxes, which,
    )  # fmt: skip
    assert got.tolist() == [[[[6, 7, 9], [11, 12, 14]]]]


def test_a_scale_and_a_shift_for_channels_in_blocks(run, random):
    x, scale, shift = random(1, 2, 3, 3, 4), random(2, 4), random(2, 4)
    got = run(nn.scale_shift_nchwc, x, scale, shift)
    close(got, x * scale[None, :, None, None] + shift[None, :, None, None])


def test_regions_in_the_layouts_of_their_names(run, random):
    x = random(2, 3, 8, 9)
    rois = np.array([[0, 1, 1, 5, 5], [1, 0, 2, 6, 7]], "float32")
    turned = x.transpose(0, 2, 3, 1).copy()
    settings = ((3, 4), 0.5, "max", 2, True)
    want = run(lambda a, r: topi.vision.roi_align(a, r, *settings), x, rois)
    close(run(lambda a, r: topi.vision.roi_align_nchw(a, r, *settings), x, rois), want)
    got = run(lambda a, r: topi.vision.roi_align_nhwc(a, r, *settings), turned, rois)
    close(got.transpose(0, 3, 1, 2), want)
    want = run(lambda a, r: topi.vision.roi_pool(a, r, 2, 0.5), x, rois)
    close(run(lambda a, r: topi.vision.roi_pool_nchw(a, r, 2, 0.5), x, rois), want)
