"""Layouts by letters. What is written down is what TVM 0.27 answers."""

import pytest

from mlcweb import tir
from mlcweb.ir.errors import InternalError


def numbers(values) -> list[int]:
    return [value.value for value in values]


def test_axes_are_found_by_their_names():
    layout = tir.layout("NCHW16c")
    assert isinstance(layout, tir.Layout)
    assert [layout[i] for i in range(len(layout))] == ["N", "C", "H", "W", "16c"]
    assert [layout.index_of(axis) for axis in ("N", "W", "16c", "c", "O")] == [0, 3, 4, -1, -1]
    assert [layout.factor_of(axis) for axis in ("c", "C", "N")] == [16, 16, -1]
    assert [axis in layout for axis in ("c", "C", "O")] == [True, True, False]
    packed = tir.layout("OIHW[4o4i]")
    assert (len(packed), packed[4], packed.index_of("4o4i"), "i" in packed) == (5, "4o4i", 4, True)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_axes_are_iterators_of_a_type(dtype):
    for axis in tir.layout("NCHW16c", dtype).axes:
        assert {axis.var.dtype, axis.dom.min.dtype, axis.dom.extent.dtype} == {dtype}
    with pytest.raises(TypeError, match="counted by integers"):
        tir.layout("NCHW", "float32")


@pytest.mark.parametrize(
    "name", ["NCHW16c4c", "nCHW", "NC16H", "NCHWc", "N-C", "C4o", "[N4o]C", "OI[4o4i][]", "C0c"]
)
def test_other_names_are_no_layouts(name):
    with pytest.raises(InternalError, match="is no layout"):
        tir.layout(name)


def test_only_layouts_of_the_same_axes_are_converted():
    pairs = [("NCHW", "ABCD"), ("", "NCHW"), ("NCHW", "__undef__"), ("OIHW[2o4i]", "OIHW")]
    given = [tir.bijective_layout(*pair) is not None for pair in pairs]
    assert given == [False, False, False, True]
    with pytest.raises(InternalError, match="has 5 axes, not 4"):
        tir.bijective_layout("NCHW", "NCHW16c").backward_shape((1, 2, 7, 7))


def test_shapes_and_indices_go_both_ways():
    blocks = tir.bijective_layout("NCHW", "NCHW16c")
    assert numbers(blocks.forward_shape((1, 32, 7, 7))) == [1, 2, 7, 7, 16]
    assert numbers(blocks.forward_shape((1, 20, 7, 7))) == [1, 2, 7, 7, 16]
    assert numbers(blocks.backward_shape((1, 2, 7, 7, 16))) == [1, 32, 7, 7]
    assert numbers(blocks.forward_index((0, 18, 6, 6))) == [0, 1, 6, 6, 2]
    assert numbers(blocks.backward_index((0, 1, 6, 6, 2))) == [0, 18, 6, 6]
    packed = tir.bijective_layout("OIHW", "OIHW[4o4i]")
    assert numbers(packed.forward_shape((64, 28, 7, 7))) == [16, 7, 7, 7, 16]
    assert numbers(packed.backward_shape((2, 11, 4, 4, 16))) == [8, 44, 4, 4]
    assert numbers(packed.forward_index((63, 29, 7, 7))) == [15, 7, 7, 7, 13]
    assert numbers(packed.backward_index((4, 7, 4, 4, 13))) == [19, 29, 4, 4]
