"""Buffers and regions."""

from __future__ import annotations

import pytest

from mlcweb import tir
from mlcweb.ir import DiagnosticError
from mlcweb.tir import (
    Broadcast,
    BufferLoad,
    BufferRegion,
    IntImm,
    Ramp,
    Range,
    Var,
    const,
    decl_buffer,
    vscale,
)
from mlcweb.tir.buffer import constant_shape, full_region

i, n = Var("i"), Var("n")
A = decl_buffer((16, n), "float16", "A", scope="shared")


def test_a_layout_is_refused() -> None:
    assert decl_buffer((4,), layout=None).ndim == 1
    with pytest.raises(DiagnosticError, match="A buffer with a layout is not supported"):
        decl_buffer((4,), layout="swizzle")


def test_defaults() -> None:
    assert (A.ndim, A.dtype, A.scope(), A.data_alignment, A.offset_factor) == (
        2, "float16", "shared", 64, 1,
    )  # fmt: skip
    assert (A.data.name, A.data.dtype, A.strides) == ("A", "handle", ())
    assert isinstance(A.elem_offset, IntImm)
    assert decl_buffer(8).shape[0].value == 8


def test_a_symbolic_offset_where_the_factor_asks_for_one() -> None:
    buffer = decl_buffer((8,), name="B", offset_factor=4)
    assert isinstance(buffer.elem_offset, Var)
    assert buffer.offset_factor == 4


def test_elements_vectors_and_regions() -> None:
    load = A[i, 3]
    assert isinstance(load, BufferLoad)
    assert (str(load), load.dtype) == ("A[i, 3]", "float16")
    region = A[2:6, i]
    assert isinstance(region, BufferRegion)
    assert str(region) == "A[2:6, i]"
    assert str(A[:, 0]) == "A[0:16, 0]"
    vector = A.vload([i, 0], "float16x8")
    assert (str(vector), vector.dtype) == ("A[i, 0:8]", "float16x8")
    row = decl_buffer((16,), "float32", "row")
    assert (str(row.vload(i)), str(row.vload(3, "float32x4"))) == ("row[i]", "row[3:7]")
    assert str(row.vstore(0, 1.0)) == "row[0] = T.float32(1)"
    every_second = Ramp(0, 2, 4)
    assert str(row.vload([every_second])) == "row[0:8:2]"
    assert str(row.vload([every_second], "float32x4")) == "row[0:8:2]"
    assert str(row.vstore([every_second], Broadcast(const(1.0, "float32"), 4))) == (
        "row[0:8:2] = T.Broadcast(T.float32(1), 4)"
    )
    scalable = Ramp(0, 1, 4 * vscale())
    assert str(row.vload([scalable], "float32xvscalex4")) == "row[0:T.vscale() * 4]"
    with pytest.raises(DiagnosticError, match=r"row\[0:8:2\] is of float32x4, not of float32x2"):
        row.vload([every_second], "float32x2")
    vectors = decl_buffer((4,), "float32x4", "vectors")
    assert (str(vectors.vload(1)), vectors.vload(1).dtype) == ("vectors[1]", "float32x4")
    assert str(vectors.vload(0, "float32x8")) == "vectors[0:2]"
    for part in ("float32", "float32x2", "float32x6"):
        with pytest.raises(DiagnosticError, match=rf"is of float32x4, not of {part}$"):
            vectors.vload(0, part)
    with pytest.raises(DiagnosticError, match="is of float32, not of float32x4"):
        decl_buffer((), "float32", "scalar").vload((), "float32x4")
    with pytest.raises(DiagnosticError, match=r'Buffer "A" has 2 dimension\(s\); 1 index'):
        A[i]


def test_shapes_and_ranges() -> None:
    assert constant_shape(A) is None
    assert constant_shape(decl_buffer((2, 3))) == (2, 3)
    assert str(full_region(A)) == "A[0:16, 0:n]"
    domain = Range.from_min_extent(2, i)
    assert (str(domain.min), str(domain.extent)) == ("2", "i")


def test_pointers_say_how_many_elements_they_reach() -> None:
    pointer = decl_buffer((4, 8), "float32", "B").access_ptr("r", offset=8)
    assert str(pointer) == 'T.tvm_access_ptr(T.type_annotation("float32"), B, 8, 24, 1)'
    strided = decl_buffer((4, 8), "float32", "B", strides=(n, 1)).access_ptr("rw")
    assert str(strided) == 'T.tvm_access_ptr(T.type_annotation("float32"), B, 0, n * 4, 3)'


def test_flattened_buffers() -> None:
    """As TVM 0.26 gives them; separators as it did until 0.25."""
    flat = decl_buffer((4, 8), "float16", "A").get_flattened_buffer()
    assert (flat.name, flat.dtype, [e.value for e in flat.shape], flat.strides) == (
        "A", "float16", [32], (),
    )  # fmt: skip
    strided = decl_buffer((4, 8), strides=[16, 2]).get_flattened_buffer()
    assert [extent.value for extent in strided.shape] == [64]
    parts = decl_buffer((2, 3, 4), axis_separators=[1]).get_flattened_buffer()
    assert [extent.value for extent in parts.shape] == [2, 12] and parts.axis_separators == (1,)
    assert [extent.value for extent in decl_buffer(()).get_flattened_buffer().shape] == [1]
    assert repr(decl_buffer((n, 4)).get_flattened_buffer().shape[0]) == "n * 4"
    vector = decl_buffer((8,))
    assert vector.get_flattened_buffer() is vector


@pytest.mark.parametrize("separators", [[1, 3], [2, 1], [-1]])
def test_axis_separators_lie_between_the_dimensions_in_order(separators: list[int]) -> None:
    with pytest.raises(ValueError, match="axis_separators"):
        decl_buffer((4, 4), axis_separators=separators)
    assert decl_buffer((4, 4), axis_separators=[1]).axis_separators == (1,)


def test_what_a_pointer_is_for() -> None:
    assert A.access_ptr("rw").args[4].value == A.READ | A.WRITE
    assert A.access_ptr("w").args[4].value == A.WRITE


def test_offsets_are_simplified() -> None:
    m, n, s, k = (tir.Var(name, "int32") for name in "mnsk")
    rows = tir.decl_buffer((m, n), "float32", elem_offset=100)
    assert str(rows.offset_of([2, 3])) == "[n * 2 + 103]"
    strided = tir.decl_buffer((m, n), "float32", strides=[s, 1])
    assert str(strided.offset_of([k // s, k % s])) == "[k]"


def test_ranges_that_stand_alone() -> None:
    assert str(tir.Range.from_min_extent(2, 5)) == "I.Range(2, 7)"
    assert tir.Range.from_min_extent(0, tir.Var("n")).script() == "I.Range(0, n)"
