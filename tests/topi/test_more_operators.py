"""Operators on matrices, sequences, blocks of images and volumes, against NumPy."""

import math

import numpy as np
import pytest

from mlcweb import TVMError, te, tir, topi


def close(got, want, tolerance=1e-5):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_unit_matrices(run):
    for n, m, k in ((3, None, 0), (3, 4, 1), (4, 2, -2)):
        np.testing.assert_array_equal(run(lambda: topi.eye(n, m, k)), np.eye(n, m, k, "float32"))  # noqa: B023


def test_sums_of_several_tensors(run, random):
    a, b, c = random(4, 3), random(4, 3), random(4, 3)
    close(run(lambda *x: topi.elemwise_sum(x), a, b, c), a + b + c)


@pytest.mark.parametrize(
    ("name", "exact", "tolerance"),
    [
        ("fast_exp", np.exp, 2e-6),
        ("fast_tanh", np.tanh, 2e-6),
        ("fast_erf", np.vectorize(math.erf), 2e-6),
    ],
)
def test_approximations(run, name, exact, tolerance):
    x = np.linspace(-20, 20, 401).astype("float32")
    got, want = run(getattr(topi, name), x), exact(x.astype("float64"))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axes", [2, 1, 0, ((1, 2), (2, 0)), ((0,), (1,)), (0, 1)])
def test_sums_over_pairs_of_axes(run, random, axes):
    a = random(2, 3, 4)
    b = {2: random(3, 4, 5), 1: random(4, 2), 0: random(2, 3)}.get(
        axes if isinstance(axes, int) else -1
    )
    b = (random(4, 5, 3) if axes == ((1, 2), (2, 0)) else random(3, 2)) if b is None else b
    close(run(lambda x, y: topi.tensordot(x, y, axes), a, b), np.tensordot(a, b, axes))


def test_masks_of_sequences(run, random):
    lengths = np.array([1, 4, 0], "int32")
    for axis, x in ((0, random(4, 3, 2)), (1, random(3, 4, 2))):
        got = run(lambda a, n, axis=axis: topi.sequence_mask(a, n, 0.5, axis), x, lengths)
        time = np.arange(4)[:, None] if axis == 0 else np.arange(4)[None, :]
        kept = time < (lengths[None, :] if axis == 0 else lengths[:, None])
        close(got, np.where(kept[..., None], x, np.float32(0.5)))


def test_windows_along_the_last_dimensions(run, random):
    x = random(2, 8, 6)
    want = np.lib.stride_tricks.sliding_window_view(x, (3, 2), axis=(1, 2))[:, ::2, ::1]
    close(run(lambda a: topi.sliding_window(a, 1, [3, 2], [2, 1]), x), want)


def test_hamming_windows(run):
    close(run(lambda: topi.hamming_window(7, False, 0.54, 0.46, "float32")), np.hamming(7))
    close(run(lambda: topi.hamming_window(6, True, 0.54, 0.46, "float32")), np.hamming(7)[:6])


def test_positions_along_each_axis(run):
    flat = np.array([0, 7, 11, 5], "int32")
    got = run(topi.unravel_index, flat, np.array([3, 4], "int32"))
    np.testing.assert_array_equal(got, np.stack(np.unravel_index(flat, (3, 4))))


def test_positions_with_values(run):
    values = np.array([1, 2, 3], "float32")
    got = run(
        lambda i, v: topi.sparse_to_dense(i, [6], v, -1.0), np.array([4, 1, 4], "int32"), values
    )
    np.testing.assert_array_equal(got, [-1, 2, -1, -1, 3, -1])
    at = np.array([[0, 1], [2, 0]], "int32")
    got = run(lambda i, v: topi.sparse_to_dense(i, [3, 2], v), at, values[:2])
    np.testing.assert_array_equal(got, [[0, 1], [0, 0], [2, 0]])


def test_indices_broadcast(run, random):
    x, i, j = random(4, 5, 6), np.array([[3, 0], [1, 2]]), np.array([[4, 2]])
    close(run(lambda a, *k: topi.adv_index(a, k), x, i, j), x[i, j])


@pytest.mark.parametrize(
    ("begin", "end", "steps", "shape"),
    [((1, 0), (6, 4), (2, 1), (3, 4)), ((-1, 3), (1, -5), (-2, -1), (2, 4))],
)
def test_slices_at_positions_that_are_data(run, random, begin, end, steps, shape):
    x, positions = random(6, 4), [np.array(p, "int64") for p in (begin, end, steps)]
    place = tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps, strict=True))
    if end == (1, -5):
        place = (slice(-1, 1, -2), slice(3, None, -1))
    got = run(lambda a, b, e, s: topi.dynamic_strided_slice(a, b, e, s, shape), x, *positions)
    close(got, x[place])
    new, want = random(*shape), x.copy()
    want[place] = new
    close(run(topi.strided_set, x, new, *positions), want)


def test_new_dimensions_and_sizes(run, random):
    x = random(3)
    got = run(lambda a, b: topi.expand_like(a, b, [1]), x, random(3, 4))
    close(got, np.repeat(x[:, None], 4, 1))
    assert run(topi.tensor_size, random(2, 3)) == 6
    tiled = run(lambda a: topi.dyn_tile(a, (2, 6), 2), x)
    close(tiled, np.tile(x, (2, 2)))


def test_diagonals(run, random):
    x, diagonal = random(2, 3, 4), random(2, 3)
    want = x.copy()
    want[:, range(3), range(3)] = diagonal
    close(run(topi.matrix_set_diag, x, diagonal), want)
    # Diagonals 1 (three elements) and -1 (two), the uppermost first; align says where two begin.
    several = random(2, 3, 3)
    for align, start in (("LEFT_LEFT", 0), ("RIGHT_RIGHT", 1)):
        got = run(lambda a, d, align=align: topi.matrix_set_diag(a, d, (-1, 1), align), x, several)
        want = x.copy()
        want[:, range(3), range(1, 4)] = several[:, 0]
        want[:, range(3), range(3)] = several[:, 1]
        want[:, range(1, 3), range(2)] = several[:, 2, start : start + 2]
        close(got, want)
    k = te.var("k")
    upper = topi.trilu(te.placeholder((3, 4), "float32", "x"), k, True)
    assert any(var is k for var in tir.analysis.undefined_vars(upper.op.body[0], []))


def test_blocks_of_pixels_become_channels_and_back(run, random):
    x = random(2, 3, 4, 6)
    deep = run(lambda a: topi.nn.space_to_depth(a, 2), x)
    want = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    close(deep, want)
    close(run(lambda a: topi.nn.depth_to_space(a, 2), deep), x)
    last = lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1))  # noqa: E731
    close(run(lambda a: topi.nn.space_to_depth(a, 2, "NHWC"), last(x)), last(want))
    crd = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    close(run(lambda a: topi.nn.depth_to_space(a, 2, "NCHW", "CRD"), crd.copy()), x)


def test_channels_become_neighbouring_pixels(run, random):
    x = random(2, 8, 3, 4)
    want = x.reshape(2, 2, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 8)
    shuffle = topi.nn.pixel_shuffle.pixel_shuffle
    close(run(lambda a: shuffle(a, 2), x), want)
    for factor, why in ((3, "8 channels"), (0, "positive int")):
        with pytest.raises(TVMError, match=why):
            run(lambda a, factor=factor: shuffle(a, factor), x)


def test_blocks_of_positions_go_to_the_batch_and_back(run, random):
    x = random(2, 3, 5, 2)
    batches = run(lambda a: topi.nn.space_to_batch_nd(a, [2, 3], [1, 0], [0, 1], 0.5), x)
    padded = np.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=np.float32(0.5))
    want = padded.reshape(2, 2, 2, 2, 3, 2).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 2)
    close(batches, want)
    close(run(lambda a: topi.nn.batch_to_space_nd(a, [2, 3], [1, 0], [0, 1]), batches), x)


def test_layouts_of_convolutions(run, random):
    x, w = random(1, 4, 6, 7), random(6, 4, 3, 2)
    want = run(lambda a, b: topi.nn.conv2d_nchw(a, b, (2, 1), 1, 1), x, w)
    hwcn = [np.ascontiguousarray(a.transpose(2, 3, 1, 0)) for a in (x, w)]
    got = run(lambda a, b: topi.nn.conv2d_hwcn(a, b, (2, 1), 1, 1), *hwcn)
    close(got.transpose(3, 2, 0, 1), want)
    x, w = random(1, 4, 5, 5, 5), random(6, 2, 3, 3, 2)
    want = run(lambda a, b: topi.nn.conv3d_ncdhw(a, b, 1, 1, 1, 2), x, w)
    got = run(
        lambda a, b: topi.nn.conv3d_ndhwc(a, b, 1, 1, 1, 2),
        np.ascontiguousarray(np.moveaxis(x, 1, -1)),
        np.ascontiguousarray(w.transpose(2, 3, 4, 1, 0)),
    )
    close(np.moveaxis(got, -1, 1), want)
    x, w = random(1, 4, 8), random(6, 2, 3)
    want = np.stack([
        sum(np.convolve(x[0, 2 * (f // 3) + c], w[f, c, ::-1], "valid") for c in range(2))
        for f in range(6)
    ])  # fmt: skip
    close(run(lambda a, b: topi.nn.group_conv1d_ncw(a, b, groups=2), x, w)[0], want)
    got = run(
        lambda a, b: topi.nn.group_conv1d_nwc(a, b, groups=2),
        np.ascontiguousarray(x.transpose(0, 2, 1)),
        np.ascontiguousarray(w.transpose(2, 1, 0)),
    )
    close(got[0].T, want)


def test_transposes_of_convolutions_with_groups(run, random):
    x, w = random(1, 4, 3, 3, 3), random(4, 3, 2, 2, 2)
    want = np.zeros((1, 6, 6, 6, 6), "float32")
    for c, f in np.ndindex(4, 3):
        for place in np.ndindex(3, 3, 3):
            at = tuple(slice(2 * p, 2 * p + 2) for p in place)
            want[(0, 3 * (c // 2) + f, *at)] += x[(0, c, *place)] * w[c, f]
    arguments = (2, 0, "float32", 0)
    got = run(lambda a, b: topi.nn.group_conv3d_transpose_ncdhw(a, b, *arguments, 2), x, w)
    close(got, want)
    halves = [run(lambda a, b: topi.nn.conv3d_transpose_ncdhw(a, b, *arguments),
                  x[:, i : i + 2].copy(), w[i : i + 2].copy()) for i in (0, 2)]  # fmt: skip
    close(np.concatenate(halves, 1), want)
    x, w = random(1, 4, 5), random(4, 3, 3)
    want = np.zeros((1, 6, 11), "float32")
    for c, f, i in np.ndindex(4, 3, 5):
        want[0, 3 * (c // 2) + f, 2 * i : 2 * i + 3] += x[0, c, i] * w[c, f]
    got = run(lambda a, b: topi.nn.group_conv1d_transpose_ncw(a, b, 2, 0, "float32", 0, 2), x, w)
    close(got, want)


def test_gradients_of_depthwise_convolutions(run, random):
    for stride, padding, out in ((1, 0, 4), (2, 1, 3)):
        x, w, g = random(1, 6, 6, 2), random(3, 3, 2, 2), random(1, out, out, 4)
        dx, dw = np.zeros((1, 8, 8, 2), "float32"), np.zeros_like(w)
        padded = np.pad(x, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))
        for y, z, c, m in np.ndindex(out, out, 2, 2):
            at = (0, slice(stride * y, stride * y + 3), slice(stride * z, stride * z + 3), c)
            dx[at] += g[0, y, z, 2 * c + m] * w[:, :, c, m]
            dw[:, :, c, m] += g[0, y, z, 2 * c + m] * padded[at]
        dx = dx[:, padding : padding + 6, padding : padding + 6]
        shape = (1, out, out, 4)
        got = run(lambda b, c, o=(shape, x.shape, stride, padding):
                  topi.nn.depthwise_conv2d_backward_input_nhwc(b, c, *o), w, g)  # fmt: skip
        close(got, dx)
        got = run(lambda a, c, o=(shape, w.shape, stride, padding):
                  topi.nn.depthwise_conv2d_backward_weight_nhwc(a, c, *o), x, g)  # fmt: skip
        close(got, dw)


def test_pooling_of_sequences_and_volumes(run, random):
    x = random(1, 2, 7)
    want = np.stack([x[..., a:b].mean(-1) for a, b in ((0, 3), (2, 5), (4, 7))], -1)
    close(run(lambda a: topi.nn.adaptive_pool1d(a, 3, "avg"), x), want)
    x = random(1, 2, 4, 6, 2)
    want = x.reshape(1, 2, 2, 2, 3, 2, 2, 1).max((3, 5, 7))
    close(run(lambda a: topi.nn.adaptive_pool3d(a, (2, 3, 2), "max"), x), want)


def test_normalization_by_near_channels(run, random):
    x = random(1, 5, 3, 2)
    squares = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    close(run(lambda a: topi.nn.lrn(a, 3, 1, 0.5, 0.75, 2), x), x / (2 + 0.5 * total / 3) ** 0.75)


def test_scales_of_channels_and_buffers_of_streams(run, random):
    x, scale, shift = random(1, 3, 2, 2), random(3), random(3)
    want = x * scale[:, None, None] + shift[:, None, None]
    close(run(topi.nn.scale_shift_nchw, x, scale, shift), want)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    close(run(topi.nn.scale_shift_nhwc, last, scale, shift), np.moveaxis(want, 1, -1))
    data, buffer = random(2, 1, 3), random(2, 5, 3)
    got = run(lambda a, b: topi.nn.fifo_buffer(a, b, 1), data, buffer)
    close(got, np.concatenate([buffer[:, 1:], data], 1))


def test_softmax_by_the_approximation(run, random):
    x = random(3, 5)
    want = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    close(run(topi.nn.fast_softmax, x), want)


def test_larger_images(run, random):
    x = random(1, 2, 3, 4)
    close(run(lambda a: topi.nn.upsampling(a, 2, 3), x), x.repeat(2, 2).repeat(3, 3))
    got = run(lambda a: topi.nn.upsampling(a, 2, 2, "NCHW", "bilinear", True), x)
    rows = np.stack([[np.interp(np.linspace(0, 3, 8), np.arange(4), row) for row in image]
                     for image in x[0]])  # fmt: skip
    want = np.stack([[np.interp(np.linspace(0, 2, 6), np.arange(3), column) for column in image.T]
                     for image in rows]).transpose(0, 2, 1)  # fmt: skip
    close(got[0], want)
    volume = random(1, 1, 2, 3, 2)
    got = run(lambda a: topi.image.resize3d(a, None, (4, 6, 4), method="nearest_neighbor",
              coordinate_transformation_mode="asymmetric"), volume)  # fmt: skip
    close(got, volume.repeat(2, 2).repeat(2, 3).repeat(2, 4))
    line = random(1, 2, 5)
    got = run(lambda a: topi.image.resize1d(a, None, (9,),
              coordinate_transformation_mode="align_corners"), line)  # fmt: skip
    close(got[0], np.stack([np.interp(np.linspace(0, 4, 9), np.arange(5), row) for row in line[0]]))


def test_the_nearest_pixel_without_a_rounding_method_is_the_one_before(run):
    x = np.arange(4, dtype="float32").reshape(1, 1, 4)
    found = {
        mode: run(lambda a, mode=mode: topi.image.resize1d(
            a, None, (6,), "NCW", "nearest_neighbor", mode), x).ravel().tolist()
        for mode in ("half_pixel", "align_corners")
    }  # fmt: skip
    assert found == {"half_pixel": [0, 0, 1, 1, 2, 3], "align_corners": [0, 1, 1, 2, 2, 3]}


def test_dilation_of_images(run, random):
    x, w = random(1, 2, 5, 5), random(2, 3, 3)
    view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    want = (view + w[None, :, None, None]).max((-1, -2))
    close(run(lambda a, b: topi.image.dilation2d_nchw(a, b, 1, 0, 1), x, w), want)
    got = run(
        lambda a, b: topi.image.dilation2d_nhwc(a, b, 1, 0, 1),
        np.ascontiguousarray(np.moveaxis(x, 1, -1)),
        np.ascontiguousarray(np.moveaxis(w, 0, -1)),
    )
    close(np.moveaxis(got, -1, 1), want)


@pytest.mark.parametrize("multiply", [True, False])
def test_correlation_of_images(run, random, multiply):
    a, b = random(1, 2, 9, 8), random(1, 2, 9, 8)
    wide = [np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2))) for x in (a, b)]
    want = np.zeros((1, 9, 4, 3), "float32")
    for q, i, j in np.ndindex(9, 4, 3):
        y, x, dy, dx = 2 * i + 2, 2 * j + 2, 2 * (q // 3 - 1), 2 * (q % 3 - 1)
        one = wide[0][0, :, y : y + 3, x : x + 3]
        two = wide[1][0, :, y + dy : y + dy + 3, x + dx : x + dx + 3]
        want[0, q, i, j] = (one * two if multiply else np.abs(one - two)).sum() / 18
    got = run(lambda c, d: topi.nn.correlation_nchw(c, d, 3, 2, 2, 2, 2, multiply), a, b)
    close(got, want)


def test_convolutions_at_offsets(run, random):
    x, w = random(1, 2, 6, 6), random(3, 2, 3, 3)
    none = np.zeros((1, 18, 4, 4), "float32")
    arguments = ((1, 1), (0, 0), (1, 1), 1, 1, "float32")
    plain = run(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, 0, 1), x, w)
    got = run(lambda a, o, b: topi.nn.deformable_conv2d_nchw(a, o, b, *arguments), x, none, w)
    close(got, plain)
    down = none.copy()
    down[:, ::2] = 1.0  # one row down: the last row of the image is followed by zeros
    moved = np.concatenate([x[:, :, 1:], np.zeros((1, 2, 1, 6), "float32")], 2)
    want = run(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, 0, 1), moved, w)
    close(
        run(lambda a, o, b: topi.nn.deformable_conv2d_nchw(a, o, b, *arguments), x, down, w), want
    )
    half = none.copy()
    half[:, 1::2] = 0.5
    between = (x + np.concatenate([x[..., 1:], np.zeros((1, 2, 6, 1), "float32")], 3)) / 2
    want = run(lambda a, b: topi.nn.conv2d_nchw(a, b, 1, 0, 1), between, w)
    last = [np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, half)]
    got = run(lambda a, o, b: topi.nn.deformable_conv2d_nhwc(a, o, b, *arguments), *last,
              np.ascontiguousarray(w.transpose(2, 3, 1, 0)))  # fmt: skip
    close(np.moveaxis(got, -1, 1), want, 1e-4)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda x: topi.tensordot(x, x, ((0,), (1,))), "do not have the same extents"),
        (lambda x: topi.sequence_mask(x, x), "one length for each"),
        (lambda x: topi.sliding_window(x, 0, [2], [1]), "1 extents and 1 strides"),
        (lambda x: topi.nn.space_to_depth(x, 2), "NCHW"),
        (lambda x: topi.matrix_set_diag(x, x), "do not fit k = 0"),
        (lambda x: topi.expand_like(x, x, [0]), "1 new dimension"),
        (lambda x: topi.image.resize1d(x, None, (4,)), "NCW"),
        (lambda x: topi.nn.batch_to_space_nd(x, [3], [0], [0]), "3 does not divide"),
        (lambda x: topi.elemwise_sum([]), "nothing to sum"),
    ],
)
def test_what_does_not_fit_is_refused(call, why):
    with pytest.raises(TVMError, match=why):
        call(te.placeholder((4, 3), "float32", "x"))


def test_sequences_longer_than_their_axis_are_reversed_whole(run, random):
    x, lengths = random(4, 3), np.array([2, 9, 0], "int32")
    want = np.stack([np.r_[x[1::-1, 0], x[2:, 0]], x[::-1, 1], x[:, 2]], axis=1)
    close(run(lambda a, n: topi.reverse_sequence(a, n, 0, 1), x, lengths), want)


def test_indices_out_of_range_take_nan(run, random):
    x, index = random(3, 4), np.array([-1, 2, 3], "int32")
    want = np.stack([np.full(4, np.nan, "float32"), x[2], np.full(4, np.nan, "float32")])
    close(run(lambda a, i: topi.take(a, i, 0, mode="nan"), x, index), want)
    flat = np.array([11, 12], "int32")
    close(run(lambda a, i: topi.take(a, i, mode="nan"), x, flat), np.array([x[2, 3], np.nan]))


def test_each_position_of_the_shared_dimensions_takes_its_own(run, random):
    x, index = random(2, 4, 3), np.array([[3, 0], [1, 1]], "int32")
    want = np.stack([x[b][index[b]] for b in range(2)])
    close(run(lambda a, i: topi.take(a, i, 1, 1), x, index), want)
    close(run(lambda a, i: topi.take(a, i, 1, -1), x, index), want)
    with pytest.raises(TVMError, match="do not share 1 leading dimension"):
        topi.take(te.placeholder((3, 4)), te.placeholder((2, 2), "int32"), 1, 1)
    with pytest.raises(TVMError, match="one of floats, not of int32"):
        topi.take(te.placeholder((3,), "int32"), te.placeholder((2,), "int32"), 0, mode="nan")


def test_scalars_are_axes_of_one_coordinate(run, random):
    x, y = random(3), random()
    got = run(lambda a, b: topi.meshgrid([a, b], "ij"), x, y)
    for one, want in zip(got, np.meshgrid(x, y, indexing="ij"), strict=True):
        np.testing.assert_array_equal(one, want)


@pytest.mark.parametrize("right", [False, True])
def test_each_sorted_vector_has_its_own_values(run, random, right):
    vectors, values = np.sort(random(2, 3, 8), -1), random(2, 3, 4)
    got = run(lambda a, v: topi.searchsorted(a, v, right, "int32"), vectors, values)
    side = "right" if right else "left"
    for place in np.ndindex(2, 3):
        want = np.searchsorted(vectors[place], values[place], side)
        np.testing.assert_array_equal(got[place], want)
    with pytest.raises(TVMError, match="no vector for each"):
        topi.searchsorted(te.placeholder((2, 8)), te.placeholder((3, 4)))


def test_the_mean_of_what_is_there_and_an_update(run):
    x, index = np.array([4, 8], "float32"), np.array([0, 0, 1], "int32")
    got = run(
        lambda a, i, u: topi.scatter_elements(a, i, u, 0, "mean"),
        x, index, np.array([8, 2, 0], "float32"),
    )  # fmt: skip
    close(got, np.array([4, 4], "float32"))  # ((4 + 8) / 2 + 2) / 2, and (8 + 0) / 2


def test_the_tag_says_whether_an_operand_is_broadcast():
    a, b = te.placeholder((3, 4)), te.placeholder((4,))
    assert topi.add(a, b).op.tag == "broadcast"
    assert topi.add(a, 1).op.tag == topi.divide(2, a).op.tag == "elemwise"
