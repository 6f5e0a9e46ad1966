"""The programs of `tvm.meta_schedule.testing.te_workload` compute what they are called."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.testing import te_workload as workload
from mlcweb.testing import topi_reference as reference


def nchw(array):
    return array.transpose(0, 3, 1, 2)


CASES = [
    ("matmul", (4, 5, 6), lambda a, b: a @ b),
    ("matmul_relu", (4, 5, 6), lambda a, b: np.maximum(a @ b, 0)),
    ("batch_matmul_nkkm", (2, 3, 4, 5), lambda a, b: a @ b),
    ("transpose_batch_matmul", (1, 4, 3, 5), lambda q, v: np.einsum("blhd,bmhd->bhlm", q, v)),
    ("conv1d_nlc", (1, 8, 4, 6, 3, 1, 1),
     lambda x, w: reference.conv2d_nhwc_python(x[:, None], w[None], 1, [0, 1])[:, 0]),
    ("conv2d_nhwc", (1, 8, 8, 4, 6, 3, 2, 1, 1, 2),
     lambda x, w: reference.conv2d_nhwc_python(x, w, 2, 1, 2)),
    ("conv2d_nchw", (1, 8, 8, 4, 6, 3, 3, 2, 1),
     lambda x, w: reference.conv2d_nchw_python(x, w, 2, 1)),
    ("depthwise_conv2d_nhwc", (1, 8, 8, 4, 3, 2, 1),
     lambda x, w: reference.depthwise_conv2d_python_nchw(
         nchw(x), w.transpose(3, 0, 1, 2), 2, 1).transpose(0, 2, 3, 1)),
    ("conv2d_transpose_nhwc", (1, 4, 4, 3, 5, 4, 2, 1),
     lambda x, w: reference.conv2d_transpose_nchw_python(
         nchw(x), w.transpose(2, 3, 0, 1), 2, 1).transpose(0, 2, 3, 1)),
    ("conv2d_nhwc_bn_relu", (1, 8, 8, 4, 6, 3, 2, 1),
     lambda x, w, b, o, s: np.maximum((reference.conv2d_nhwc_python(x, w, 2, 1) + b) * s + o, 0)),
    ("max_pool2d_nchw", (1, 8, 8, 4, 1),
     lambda x: reference.poolnd_python(x, (2, 2), (1, 1), (1, 1), (1, 1), (1, 1), "max")),
    ("norm_bmn", (2, 4, 5), lambda a: np.sqrt((a * a).sum((1, 2)))),
    ("softmax_mn", (4, 5), reference.softmax_python),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "expected"), CASES)
def test_computes(name, sizes, expected):
    *inputs, out = getattr(workload, name)(*sizes)
    random = np.random.default_rng(0)
    shapes = [tuple(map(int, tensor.shape)) for tensor in inputs]
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    result = tvm.nd.empty(tuple(map(int, out.shape)))
    func = te.create_prim_func([*inputs, out])
    tvm.build(func, target="numpy")["main"](*map(tvm.nd.array, arrays), result)
    np.testing.assert_allclose(result.numpy(), expected(*arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", workload.CONFIGS)
def test_each_configuration_makes_a_program(name):
    func = workload.create_te_workload(name, 0)
    sch = tvm.tir.Schedule(func)
    last = sch.get(sch.get_child_blocks(sch.get_block("root"))[-1])
    assert [region.buffer for region in last.writes] == [func.parameter_buffers[-1]]


def test_a_name_that_is_not_there():
    with pytest.raises(KeyError, match="no workload LSTM here; there are C1D, C2D"):
        workload.create_te_workload("LSTM", 0)


def test_iterators_of_convolutions_have_the_names_of_tvm():
    func = te.create_prim_func(list(workload.conv3d_ndhwc(1, 4, 4, 4, 2, 2, 3)))
    sch = tvm.tir.Schedule(func)
    names = [each.var.name for each in sch.get(sch.get_block("conv3d_ndhwc")).iter_vars]
    assert names == ["v_n", "v_d", "v_h", "v_w", "v_co", "v_rd", "v_rh", "v_rw", "v_rc"]
