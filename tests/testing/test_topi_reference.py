"""The references of `tvm.topi.testing` and TOPI compute the same."""

import json

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te, topi
from mlcweb.ir import structural_equal
from mlcweb.testing import topi_reference as reference
from tests.testing.record_references import ANSWERS, calls, summary

X = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype("float32")
W = np.random.default_rng(1).standard_normal((2, 4, 3, 3)).astype("float32")
M = np.random.default_rng(2).standard_normal((3, 4)).astype("float32")
V = np.random.default_rng(3).standard_normal(4).astype("float32")
NHWC, HWIO = X.transpose(0, 2, 3, 1), W.transpose(2, 3, 1, 0)
HWCN = X.transpose(2, 3, 1, 0)


def computed(build, *arrays):
    inputs = [te.placeholder(a.shape, str(a.dtype), f"A{n}") for n, a in enumerate(arrays)]
    out = build(*inputs)
    func = te.create_prim_func([*inputs, out])
    result = tvm.nd.empty(tuple(map(int, out.shape)), out.dtype)
    tvm.build(func, target="numpy")["main"](*map(tvm.nd.array, arrays), result)
    return result.numpy()


CASES = [
    (lambda x, w: topi.nn.conv2d_nchw(x, w, 2, 1, 1), (X, W),
     lambda x, w: reference.conv2d_nchw_python(x, w, 2, 1)),
    (lambda x, w: topi.nn.conv2d_nhwc(x, w, 1, 0, 1), (NHWC, HWIO),
     lambda x, w: reference.conv2d_nhwc_python(x, w, 1, 0)),
    (lambda x, w: topi.nn.group_conv2d_nchw(x, w, 1, 1, 1, 2), (X, W[:, :2]),
     lambda x, w: reference.conv2d_nchw_python(x, w, 1, 1, 2)),
    (lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0)),
     (X, W.transpose(1, 0, 2, 3)),
     lambda x, w: reference.conv2d_transpose_nchw_python(x, w, 2, 1)),
    (lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1), (X, W.reshape(4, 2, 3, 3)),
     lambda x, w: reference.depthwise_conv2d_python_nchw(x, w, 1, 1)),
    (lambda x: topi.nn.softmax(x, 1), (M,), reference.softmax_python),
    (lambda x: topi.nn.log_softmax(x), (M,), reference.log_softmax_python),
    (lambda x: topi.nn.dense(x, x), (M,), lambda x: reference.dense(x, x, None)),
    (lambda x: topi.nn.batch_matmul(x, x), (X[0],), lambda x: reference.batch_matmul(x, x)),
    (lambda x, g: topi.nn.layer_norm(x, g, g, [1]), (M, V),
     lambda x, g: reference.layer_norm_python(x, g, g, 1)),
    (lambda x, g: topi.nn.rms_norm(x, g, [1]), (M, V),
     lambda x, g: reference.rms_norm_python(x, g, 1)),
    *[(lambda x, kind=kind: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), kind,
                                           count_include_pad=False), (X,),
       lambda x, kind=kind: reference.poolnd_python(x, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), kind,
                                                    count_include_pad=False))
      for kind in ("max", "avg")],
    (lambda x: topi.strided_slice(x, [0, 1], [3, 4], [2, 1]), (M,),
     lambda x: reference.strided_slice_python(x, [0, 1], [3, 4], [2, 1])),
    (lambda x: topi.nn.dilate(x, [2, 1]), (M,), lambda x: reference.dilate_python(x, [2, 1])),
]  # fmt: skip


@pytest.mark.parametrize(("build", "arrays", "expected"), CASES)
def test_agrees_with_topi(build, arrays, expected):
    np.testing.assert_allclose(computed(build, *arrays), expected(*arrays), rtol=1e-4, atol=1e-4)


def test_same_padding_and_other_layouts():
    same = reference.conv2d_nchw_python(X, W, 1, "SAME")
    np.testing.assert_allclose(same, reference.conv2d_nchw_python(X, W, 1, 1), rtol=1e-5)
    hwcn = reference.conv2d_hwcn_python(HWCN, HWIO, 1, "VALID")
    expected = reference.conv2d_nchw_python(X, W, 1, 0).transpose(2, 3, 1, 0)
    np.testing.assert_allclose(hwcn, expected, rtol=1e-5)


def test_blocks_of_pixels_are_channels():
    deep = reference.space_to_depth_python(X, 2)
    assert deep.shape == (1, 16, 3, 3) and deep[0, 4, 0, 0] == X[0, 0, 0, 1]
    np.testing.assert_array_equal(reference.depth_to_space_python(deep, 2), X)
    assert reference.depth_to_space_python(deep, 2, "CRD")[0, 0, 0, 1] == deep[0, 1, 0, 0]


def test_what_is_not_there_says_what_is():
    with pytest.raises(AttributeError, match=r"no reorg_python here: compute .*with NumPy"):
        reference.reorg_python


def test_lower_is_called():
    x = te.placeholder((8,), name="x")
    func = te.create_prim_func([x, te.compute((8,), lambda i: x[i] + 1, name="y")])
    mod = tvm.lower(func, name="add_one")
    assert mod["add_one"].attrs["global_symbol"] == "add_one"
    assert "T.block" not in mod.script() and "for i in range(8)" in mod.script()
    assert "T.block" not in tvm.lower(tvm.IRModule({"main": func})).script()
    # As in TVM, lists of tensors and the like are for schedules of tensor expressions alone.
    assert structural_equal(tvm.lower(func, [], name="add_one", simple_mode=True), mod)
    assert structural_equal(
        tvm.lower(tvm.IRModule({"add_one": func}), [x])["add_one"].body, mod["add_one"].body
    )
    with pytest.raises(TypeError, match=r"not list: .*te\.create_prim_func"):
        tvm.lower([x])


RECORDED = list(zip(calls(), json.loads(ANSWERS.read_text()), strict=True))


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_gives_what_tvms_reference_gives(number):
    (name, arguments), (known, expected) = RECORDED[number]
    assert name == known
    found = summary(getattr(reference, name)(*arguments))
    for place, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        if place % 3 == 0:  # a shape
            assert mine == theirs
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-3)
