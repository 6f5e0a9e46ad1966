"""Arguments where TVM's operators take them: by position, by name, and left out."""

import numpy as np
import pytest

from mlcweb import te, topi
from mlcweb.ir.errors import DiagnosticError
from mlcweb.topi import nn


def test_matmul_transposes_by_its_third_and_fourth_argument(run, random):
    a, b = random(4, 3), random(5, 4)
    np.testing.assert_allclose(
        run(lambda x, y: topi.matmul(x, y, True, True), a, b), a.T @ b.T, rtol=1e-5
    )
    with pytest.raises(DiagnosticError, match="only matrices are transposed"):
        topi.matmul(te.placeholder((2, 3, 4)), te.placeholder((2, 4, 3)), transp_a=True)


def test_convolutions_without_strides_and_with_groups(run, random):
    x, w = random(1, 4, 8), random(6, 4, 3)
    want = [(x[0, :, i : i + 3] * w).sum((1, 2)) for i in range(6)]
    got = run(lambda a, b: nn.conv1d_ncw(data=a, kernel=b), x, w)
    np.testing.assert_allclose(got[0], np.transpose(want), rtol=1e-4)
    x, w = random(1, 4, 3, 3, 3), random(4, 2, 1, 1, 1)
    got = run(lambda a, b: nn.conv3d_ncdhw(a, b, 1, 0, 1, 2), x, w)
    want = np.einsum("ngcdhw,gfc->ngfdhw", x.reshape(1, 2, 2, 3, 3, 3), w.reshape(2, 2, 2))
    np.testing.assert_allclose(got, want.reshape(1, 4, 3, 3, 3), rtol=1e-4)


def test_a_depthwise_kernel_in_another_layout(run, random):
    x, w = random(1, 4, 4, 3), random(3, 1, 2, 2)
    one = run(lambda a, b: nn.depthwise_conv2d_nhwc(a, b, 1, 0, 1, "OIHW", "float32"), x, w)
    last = w.transpose(2, 3, 0, 1).copy()
    np.testing.assert_allclose(
        one, run(lambda a, b: nn.depthwise_conv2d_nhwc(a, b, 1, 0, 1), x, last), rtol=1e-5
    )


def test_pooling_knows_the_layout_by_the_dimensions(run, random):
    x = random(1, 2, 8)
    got = run(lambda a: nn.pool1d(a, [2], [2], [1], [0, 0], "max"), x)
    np.testing.assert_array_equal(got, x.reshape(1, 2, 4, 2).max(-1))


def test_slices_by_their_sizes(run, random):
    x = random(6, 5)
    got = run(lambda a: topi.strided_slice(a, [1, 2], [3, -1], slice_mode="size"), x)
    np.testing.assert_array_equal(got, x[1:4, 2:])
    with pytest.raises(DiagnosticError, match='slice_mode is "end" or "size"'):
        topi.strided_slice(te.placeholder((4,)), [0], [2], slice_mode="length")


def test_paddings_are_the_same_at_both_ends_where_one_is_given(run, random):
    x = random(4)
    for operator, mode in ((nn.mirror_pad, "symmetric"), (nn.reflect_pad, "reflect")):
        np.testing.assert_array_equal(run(lambda a, f=operator: f(a, [2]), x), np.pad(x, 2, mode))


def test_functions_are_called_by_the_names_that_they_have():
    """Functions made of them, by `emit_te`, have these names."""
    named = {name: getattr(topi, name) for name in ("matmul", "shape", "take", "concatenate")}
    named |= {name: getattr(nn, name) for name in ("matmul", "pool1d", "pool2d", "pool3d")}
    assert [function.__name__ for function in named.values()] == list(named)
