"""Numbers out of extents, layouts, positions and constant tensors; the answers are TVM's."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import te
from mlcweb.tir import FloatImm, IntImm, const
from mlcweb.topi import tags, utils

i = te.var("i")


def test_numbers():
    assert utils.get_const_tuple((IntImm("int32", 4), 5, i)) == (4, 5, i)
    assert utils.get_const_int(IntImm("int32", 3) + 4) == 7
    assert utils.equal_const_int(IntImm("int32", 3), 3) and not utils.equal_const_int(i, 3)
    assert utils.get_float_tuple((FloatImm("float32", 2.5), 1.0)) == (2.5, 1.0)
    for get in (utils.get_const_int, utils.get_const_float):
        with pytest.raises(ValueError, match="Expect value to be constant"):
            get(i)
    with pytest.raises(TypeError, match=r"tensor\.shape"):
        utils.get_const_tuple(te.placeholder((4,)))


def test_paddings():
    assert utils.get_pad_tuple(1, (3, 3)) == (1, 1, 1, 1)
    assert utils.get_pad_tuple("SAME", (3, 4)) == (1, 1, 1, 2)
    assert utils.get_pad_tuple1d((1, 2), 3) == (1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (utils.prod((2, 3, 4)), "24"),
        (utils.prod((i, 4)), "i * 4"),
        (utils.ravel_index((1, 2, 3), (4, 5, 6)), "45"),
        (utils.ravel_index((i, 2), (4, 5)), "i * 5 + 2"),
        (utils.unravel_index(37, (4, 5, 6)), "[1, 1, 1]"),
        (utils.unravel_index(i, (4, 5)), "[i // 5, i % 5]"),
        (utils.ceil_div(i, 4), "(i + 3) // 4"),
        (utils.get_max_power2_factor(96), "32"),
        (utils.get_max_power2_factor(96, 8), "8"),
        (utils.swap([1, 2, 3, 4], 1), "[1, 4, 3, 2]"),
        (utils.simplify(i - i), "0"),
        (utils.get_shape((1, 3, 224, 112), "NCHW", "NHWC"), "(1, 224, 112, 3)"),
        (utils.get_shape((1, 2, 3, 4, 8), "NCHW8c", "NHWC8c"), "(1, 3, 4, 2, 8)"),
        (
            utils.within_index(1, 8, 2, i),
            "T.Select(T.Select(T.bool(False), i <= 8, i < 1) or T.Select(T.bool(False), i > 1, "
            "i >= 8), T.bool(False), (i - 1) % 2 == 0)",
        ),
        (
            utils.make_idx(1, 8, 2, 10, i),
            "T.if_then_else(T.Select(T.bool(False), i <= 8, i < 1) or T.Select(T.bool(False), "
            "i > 1, i >= 8), 88, (i - T.Select(T.bool(False), 9, 1)) // 2)",
        ),
    ],
)
def test_positions_and_extents(value, text):
    assert str(value) == text


def test_shapes_and_layouts():
    assert utils.is_empty_shape((1, 0)) and not utils.is_empty_shape((const(2),))
    assert utils.is_dynamic_shape((1, i)) and not utils.is_dynamic_shape((1, 2))
    assert utils.nchw_xc_layout("NCHW4c") and not utils.nchw_xc_layout("NCHWc")
    assert utils.nchw_pack_layout("NCHW4c4n") and not utils.nchw_pack_layout("NCHW4c")
    assert utils.ncw_xc_layout("NCW4c") and not utils.ncw_xc_layout("NCHW4c")
    with pytest.raises(ValueError, match="The axes of NCHW and NCHW4c are not the same"):
        utils.get_shape((1, 2, 3, 4), "NCHW", "NCHW4c")


@pytest.mark.parametrize(
    "array", [np.array([1, 5, 7], "int32"), np.arange(6, dtype="float32").reshape(2, 3)]
)
def test_constant_tensors(array):
    tensor = utils.const_vector(array) if array.ndim == 1 else utils.const_matrix(array)
    out = tvm.nd.empty(array.shape, str(array.dtype))
    tvm.build(te.create_prim_func([tensor]), target="numpy")["main"](out)
    assert (out.numpy() == array).all()


def test_tags():
    assert tags.is_injective("elemwise") and tags.is_injective("injective,pad")
    assert tags.is_broadcast("broadcast,x") and not tags.is_broadcast("injective")
