"""Convolutions of channels in blocks, against those of channels in a row."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te, topi
from mlcweb.ir import TVMError

GENERATOR = np.random.default_rng(5)


def convolved(x, w, strides, pads, dilation, groups):
    """By the definition, tap by tap; images NCHW, kernels OIHW."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    high, wide = ((w.shape[2 + i] - 1) * dilation[i] + 1 for i in (0, 1))
    shape = [(x.shape[2 + i] - span) // strides[i] + 1 for i, span in enumerate((high, wide))]
    out = np.zeros((x.shape[0], w.shape[0], *shape), "float32")
    for f, y, z in np.ndindex(w.shape[0], *shape):
        first = f // (w.shape[0] // groups) * w.shape[1]
        rows = slice(y * strides[0], y * strides[0] + high, dilation[0])
        columns = slice(z * strides[1], z * strides[1] + wide, dilation[1])
        part = x[:, first : first + w.shape[1], rows, columns]
        out[:, f, y, z] = (part * w[f]).sum((1, 2, 3))
    return out


@pytest.mark.parametrize(
    ("strides", "padding", "pads", "dilation", "groups"),
    [
        (1, 0, (0, 0, 0, 0), 1, 1), ((2, 1), (1, 2), (1, 2, 1, 2), 1, 1),
        (1, (0, 1, 2, 0), (0, 1, 2, 0), (2, 1), 2), (2, "SAME", (1, 1, 1, 1), 1, 1),
    ],
)  # fmt: skip
def test_conv2d_nchwc(strides, padding, pads, dilation, groups):
    x = GENERATOR.standard_normal((2, 8, 7, 6)).astype("float32")
    w = GENERATOR.standard_normal((12, 8 // groups, 3, 3)).astype("float32")
    blocked = x.reshape(2, 2, 4, 7, 6).transpose(0, 1, 3, 4, 2).copy()
    kernel = w.reshape(4, 3, 2 // groups, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()
    inputs = [te.placeholder(a.shape, "float32", n) for a, n in ((blocked, "x"), (kernel, "w"))]
    out = topi.nn.conv2d_NCHWc(*inputs, strides, padding, dilation, "NCHW4c", "NCHW3c")
    both = [[n] * 2 if isinstance(n, int) else n for n in (strides, dilation)]
    expected = convolved(x, w, both[0], pads, both[1], groups)
    result = tvm.nd.empty([int(n) for n in out.shape], "float32")
    built = tvm.build(te.create_prim_func([*inputs, out]), "numpy")
    built["main"](tvm.nd.array(blocked), tvm.nd.array(kernel), result)
    found = result.numpy().transpose(0, 1, 4, 2, 3).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def run(operator, blocked, kernel):
    inputs = [te.placeholder(a.shape, str(a.dtype), n) for a, n in ((blocked, "x"), (kernel, "w"))]
    out = operator(*inputs)
    result = tvm.nd.empty([int(n) for n in out.shape], out.dtype)
    built = tvm.build(te.create_prim_func([*inputs, out]), "numpy")
    built["main"](tvm.nd.array(blocked), tvm.nd.array(kernel), result)
    n, chunks, h, w, lanes = result.shape
    return result.numpy().transpose(0, 1, 4, 2, 3).reshape(n, chunks * lanes, h, w)


@pytest.mark.parametrize("groups", [1, 2])
def test_weights_in_other_blocks(groups):
    """All channels in a row; and in groups of 2, whose products an instruction would sum."""
    x = GENERATOR.integers(-9, 9, (2, 8, 5, 6)).astype("int8")
    w = GENERATOR.integers(-9, 9, (12, 8 // groups, 3, 3)).astype("int8")
    blocked = x.reshape(2, 2, 4, 5, 6).transpose(0, 1, 3, 4, 2).copy()
    wide = (x.astype("float32"), w.astype("float32"))
    in_a_row = w.reshape(4, 3, 8 // groups, 3, 3).transpose(0, 2, 3, 4, 1).copy()
    expected = convolved(*wide, (1, 1), (2, 1, 2, 1), (2, 1), groups)
    settings = (1, (2, 1, 2, 1), (2, 1), "NCHW4c", "NCHW3c", "int32")
    result = run(lambda a, b: topi.nn.conv2d_NCHWc_OIHWo(a, b, *settings), blocked, in_a_row)
    np.testing.assert_array_equal(result, expected)
    pairs = w.reshape(4, 3, 2 // groups, 2, 2, 3, 3).transpose(0, 2, 5, 6, 3, 1, 4).copy()
    result = run(lambda a, b: topi.nn.conv2d_NCHWc_int8(a, b, *settings, 2), blocked, pairs)
    np.testing.assert_array_equal(result, expected)


def test_blocks_that_do_not_fit_are_refused():
    x = te.placeholder((1, 3, 7, 6, 4), "float32")
    for kernel in [(4, 2, 3, 3, 4, 8), (4, 3, 3, 3, 8, 8), (4, 1, 3, 3, 4, 8)]:
        w = te.placeholder(kernel, "float32")
        with pytest.raises(TVMError, match="does not divide the channels"):
            topi.nn.conv2d_NCHWc(x, w, 1, 0, 1, "NCHW4c", "NCHW8c")
