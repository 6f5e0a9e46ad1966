"""Layouts with inner axes, such as NCHW4c, compute what those without do. Types are TVM 0.27's."""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.relax.op import image, nn
from mlcweb.runtime.device import cpu
from mlcweb.runtime.nd import array
from mlcweb.script import relax as R
from mlcweb.tir import Var


def blocked(images: np.ndarray) -> np.ndarray:
    """The channels (axis 1) in blocks of four, which are the last axis."""
    first, channels, *rest = images.shape
    return np.moveaxis(images.reshape(first, channels // 4, 4, *rest), 2, -1).copy()


def run(operator, *values: np.ndarray) -> np.ndarray:
    params = [relax.Var(f"x{i}", R.Tensor(v.shape, str(v.dtype))) for i, v in enumerate(values)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(operator(*params))
        builder.emit_func_output(result)
    vm = relax.VirtualMachine(relax.build(builder.get(), "numpy"), cpu())
    return vm["main"](*map(array, values)).numpy()


RNG = np.random.default_rng(0)
IMAGE = RNG.random((2, 8, 6, 6), "float32")
OPERATORS = {
    "max_pool2d": lambda layout: lambda x: nn.max_pool2d(x, (2, 2), layout=layout),
    "avg_pool2d": lambda layout: lambda x: nn.avg_pool2d(x, (3, 3), padding=1, layout=layout),
    "adaptive_avg_pool2d": lambda layout: lambda x: nn.adaptive_avg_pool2d(x, 3, layout=layout),
    "resize2d": lambda layout: lambda x: image.resize2d(x, (9, 5), layout=layout),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_pools_and_sizes_by_blocks_of_channels(name):
    make = OPERATORS[name]
    expected = blocked(run(make("NCHW"), IMAGE))
    np.testing.assert_allclose(run(make("NCHW4c"), blocked(IMAGE)), expected, rtol=1e-6)


def test_convolutions_by_blocks_of_channels():
    weight = RNG.random((4, 8, 3, 3), "float32")
    layouts = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i", "out_layout": "NCHW4c"}
    given = run(lambda x, w: nn.conv2d(x, w, **layouts), blocked(IMAGE), blocked(weight))
    np.testing.assert_allclose(given, blocked(run(nn.conv2d, IMAGE, weight)), rtol=1e-6)


def type_of(call: relax.Call) -> str:
    return str(relax.BlockBuilder().normalize(call).struct_info)


def tensor(*shape) -> relax.Var:
    return relax.Var("x", R.Tensor(shape, "float32"))


def test_types_of_blocks():
    n, c, k = (Var(name, "int64") for name in "nck")
    layouts = {"data_layout": "NCHW16c", "kernel_layout": "OIHW16i"}
    data, weight = tensor(n, c, 28, 28, 16), tensor(k, c, 3, 3, 16)
    convolved = type_of(nn.conv2d(data, weight, out_layout="NCHW16c", **layouts))
    assert convolved == 'R.Tensor((n, (k + 15) // 16, 26, 26, 16), dtype="float32")'
    unknown = relax.Var("x", R.Tensor("float32", ndim=5))
    pooled = type_of(nn.max_pool2d(unknown, layout="NCHW16c"))
    assert pooled == 'R.Tensor(dtype="float32", ndim=5)'
    with pytest.raises(ValueError, match="must have 5 dimension"):
        type_of(nn.max_pool2d(tensor(1, 2, 3, 4), layout="NCHW16c"))
    with pytest.raises(ValueError, match='layout: "NCHWc" is no layout'):
        type_of(nn.max_pool2d(tensor(1, 2, 3, 4), layout="NCHWc"))


def test_numbers_and_shapes_by_name_have_types_of_their_own():
    x, y = (relax.Var(name, R.Prim("float32")) for name in "xy")
    assert type_of(relax.op.add(x, y)) == 'R.Prim("float32")'
    assert type_of(relax.op.less(x, y)) == 'R.Prim("bool")'
    assert type_of(relax.op.less(tensor(2, 3), relax.Var("i", R.Tensor((1, 3), "int32")))) == (
        'R.Tensor((2, 3), dtype="bool")'
    )
    with pytest.raises(TypeError, match="one element type"):
        type_of(relax.op.add(x, relax.Var("i", R.Prim("int64"))))
    shape = relax.Var("s", R.Shape(ndim=2))
    for call in (
        relax.op.full(shape, relax.const(1.0)),
        relax.op.zeros(shape, "float32"),
        relax.op.reshape(tensor(2, 3), shape),
        relax.op.broadcast_to(tensor(2, 3), shape),
    ):
        assert type_of(call) == 'R.Tensor(s, dtype="float32")'
    assert type_of(relax.op.squeeze(relax.Var("x", R.Tensor("float32", ndim=3)), 1)) == (
        'R.Tensor(dtype="float32", ndim=2)'
    )
