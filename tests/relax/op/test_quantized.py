"""Quantising and back, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mlcweb import relax
from mlcweb.relax import TensorStructInfo, op
from mlcweb.relax.errors import DTypeError, ShapeError
from mlcweb.relax.op.qdq import QUANTIZED
from tests.relax.op.conftest import check_operator

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
VALUES = st.floats(-400, 400, width=32)


def along(vector, x, axis):
    """A number or vector that is broadcast along an axis."""
    return vector.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


@given(hnp.arrays("float32", SHAPES, elements=VALUES), st.sampled_from(QUANTIZED[:4]), st.data())
def test_quantize(x, dtype, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    extent = data.draw(st.sampled_from([(), (x.shape[axis],)]))
    scale = np.full(extent, 0.5, "float32") + np.arange(np.prod(extent), dtype="float32").reshape(
        extent
    )
    zero = np.full(extent, 3, dtype)
    info = np.iinfo(dtype)
    s, z = (along(v, x, axis) if extent else v for v in (scale, zero))
    expected = np.clip(np.rint(x / s) + z, info.min, info.max).astype(dtype)
    check_operator(lambda v, s, z: op.quantize(v, s, z, axis, dtype), [x, scale, zero], expected)


@given(st.data(), st.sampled_from(["int8", "uint8", "int32"]))
def test_dequantize(data, dtype):
    elements = st.integers(0, 100)
    x = data.draw(hnp.arrays(dtype, SHAPES, elements=elements))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    extent = data.draw(st.sampled_from([(), (x.shape[axis],)]))
    scale, zero = np.full(extent, 0.25, "float32"), np.full(extent, 101, dtype)
    s, z = (along(v, x, axis) if extent else v for v in (scale, zero))
    expected = ((x.astype("int32") - z) * s).astype("float32")
    check_operator(lambda v, s, z: op.dequantize(v, s, z, axis), [x, scale, zero], expected)


def test_there_and_back_is_off_by_half_a_step_at_most():
    x = np.linspace(-1, 1, 41, dtype="float32")
    step = relax.const(2 / 254, "float32")

    def there_and_back(v):
        zero = relax.const(0, "int8")
        return op.dequantize(op.quantize(v, step, zero), step, zero)

    q = np.clip(np.rint(x / np.float32(2 / 254)), -128, 127) * np.float32(2 / 254)
    check_operator(there_and_back, [x], q.astype("float32"))
    assert np.abs(q - x).max() <= 1 / 254 + 1e-6


def deduced(call):
    return relax.BlockBuilder().normalize(call)


def test_errors_name_what_is_wrong():
    x = relax.Var("x", TensorStructInfo((2, 4), "float32"))
    s, z = (relax.Var(n, TensorStructInfo((3,), t)) for n, t in (("s", "float32"), ("z", "int8")))
    with pytest.raises(ShapeError, match=r"scale of shape \(3,\) must have 4 element"):
        deduced(op.quantize(x, s, z))
    with pytest.raises(DTypeError, match="out_dtype must be one of int8"):
        deduced(op.quantize(x, s, z, out_dtype="float64"))
    with pytest.raises(DTypeError, match="data must be float, not int8"):
        deduced(op.quantize(z, s, z))
