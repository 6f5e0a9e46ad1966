"""Constants: from numbers and arrays, with and without NumPy."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir import DiagnosticError, structural_equal, structural_hash
from mlcweb.relax.constant_data import HostArray


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, None, np.int32(1)),
        (1.5, None, np.float32(1.5)),
        (True, None, np.bool_(True)),
        ([1, 2.5], None, np.float32([1, 2.5])),
        ([[1, 2], [3, 4]], "int64", np.int64([[1, 2], [3, 4]])),
        (1e6, "float16", np.float16(np.inf)),
        (-1, "uint8", np.uint8(255)),
        (float("nan"), None, np.float32(np.nan)),
        ("-inf", "float32", np.float32(-np.inf)),
        ("nan", "float16", np.float16(np.nan)),
        (np.arange(3.0), None, np.float32([0, 1, 2])),
        (np.arange(3), None, np.int32([0, 1, 2])),
        (np.arange(3), "int64", np.int64([0, 1, 2])),
        (np.zeros((0, 4), "int8"), None, np.zeros((0, 4), "int8")),
        (np.arange(6.0).reshape(2, 3).T, "float64", np.arange(6.0).reshape(2, 3).T),
    ],
)
def test_contents(value, dtype, expected):
    constant = relax.const(value, dtype)
    np.testing.assert_array_equal(constant.data.numpy(), expected)
    assert constant.data.numpy().dtype == expected.dtype
    assert constant.struct_info == relax.TensorStructInfo(expected.shape, str(expected.dtype))


def test_bfloat16_rounds_to_nearest_even():
    values = [1.0, 1.00390625, 1.01171875, -3.1415927]
    found = relax.const(values, "bfloat16").data
    assert list(found.elements()) == [1.0, 1.0, 1.015625, -3.140625]
    assert found.numpy().tolist() == list(found.elements())


def test_an_ndarray_is_kept_and_equal_to_a_copy():
    array = tvm.nd.array(np.arange(4, dtype="float32"))
    kept, copied = relax.const(array), relax.const([0.0, 1.0, 2.0, 3.0])
    assert kept.data is array
    assert structural_equal(kept, copied)
    assert structural_hash(kept) == structural_hash(copied)
    assert not structural_equal(kept, relax.const([0.0, 1.0, 2.0, 4.0]))
    assert not structural_equal(kept, relax.const([0, 1, 2, 3]))


def test_the_struct_info_may_be_given():
    info = relax.TensorStructInfo((2, 2), "float32")
    assert relax.const(np.ones((2, 2), "float32"), info).struct_info is info
    with pytest.raises(DiagnosticError, match=r"shape \(3,\) is not"):
        relax.const([1, 2, 3], info)
    with pytest.raises(DiagnosticError, match=r"A constant is a tensor, not a R\.Prim"):
        relax.const(1.0, relax.PrimStructInfo("float32"))


def test_rows_have_one_length():
    with pytest.raises(DiagnosticError, match="differ in length"):
        relax.const([[1, 2], [3]])
    with pytest.raises(DiagnosticError, match="no float32 array of shape"):
        HostArray((2,), "float32", b"123")
