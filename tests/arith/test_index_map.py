"""Index maps: made from functions, applied to indices and shapes, inverted, recorded."""

import json

import numpy as np
import pytest

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMapError
from mlcweb.runtime import nd
from mlcweb.schedule.index_maps import from_record, to_record
from mlcweb.tir import IndexMap, Var, const
from mlcweb.tir.arithmetic import is_const_int


def made(function, ndim=None):
    return IndexMap.from_func(function, ndim, index_dtype="int32")


TILES = made(lambda i, j: (i // 4, j // 8, i % 4, j % 8))


def test_text():
    assert repr(TILES) == "T.index_map(lambda i, j: (i // 4, j // 8, i % 4, j % 8))"
    assert TILES.to_python_string() == "lambda i, j: (i // 4, j // 8, i % 4, j % 8,)"
    assert repr(made(lambda i: i + 1)) == "T.index_map(lambda i: (i + 1,))"
    assert repr(made(lambda i, *rest: [*rest, i], 3)) == (
        "T.index_map(lambda i, rest_0, rest_1: (rest_0, rest_1, i))"
    )
    pair = IndexMap.from_func(
        lambda i: [i // 4, i % 4], inverse_index_map=lambda a, b: a * 4 + b, index_dtype="int32"
    )
    assert repr(pair) == (
        "T.index_map(lambda i: (i // 4, i % 4), inverse_index_map=lambda a, b: (a * 4 + b,))"
    )


def test_from_func_refuses_what_is_no_expression():
    with pytest.raises(ValueError, match="ndim must be given"):
        made(lambda *indices: indices)
    with pytest.raises(ValueError, match="not keyword arguments"):
        made(lambda **indices: 0)
    with pytest.raises(TypeError, match="not 'a' \\(str\\)"):
        made(lambda i: "a")


def test_map_indices():
    assert [int(index) for index in TILES.map_indices([5, 17])] == [1, 2, 1, 1]
    x = Var("x", "int32")
    assert repr(TILES.map_indices([x * 4 + 3, 0])[2]) == "3"
    with pytest.raises(IndexMapError, match="takes 2 indices, but 1 are given"):
        TILES.map_indices([x])


@pytest.mark.parametrize(
    ("function", "shape", "mapped"),
    [
        (lambda i, j: (i // 4, j // 8, i % 4, j % 8), [16, 24], [4, 3, 4, 8]),
        (lambda i, j: (i // 4, j // 16, i % 4, j % 16), [16, 24], [4, 2, 4, 16]),
        (lambda i: (i // 4, i % 4), [3], [1, 4]),
        (lambda i, j: i * 24 + j, [16, 24], [384]),
        (lambda i, j: ((i * 14 + j) // 16, (i * 14 + j) % 16), [14, 14], [13, 16]),
        (lambda i, j: (0, j, i), [16, 24], [1, 24, 16]),
    ],
)
def test_map_shape(function, shape, mapped):
    assert [int(extent) for extent in made(function).map_shape(shape)] == mapped


def test_map_shape_wants_indices_from_zero():
    with pytest.raises(IndexMapError, match="starts at 2, not at 0"):
        made(lambda i: i + 2).map_shape([8])


@pytest.mark.parametrize(
    ("function", "shape", "inverse"),
    [
        (
            lambda i, j: (i // 4, j // 8, i % 4, j % 8),
            [16, 24],
            "lambda axis0, axis1, axis2, axis3: (axis0 * 4 + axis2, axis1 * 8 + axis3,)",
        ),
        (lambda i, j: (j, i), [16, 24], "lambda j, i: (i, j,)"),
        (lambda i, j: i * 24 + j, [16, 24], "lambda axis0: (axis0 // 24, axis0 % 24,)"),
        (lambda i, j: i, [16, 1], "lambda i: (i, 0,)"),
        (lambda i, j: (0, j, i), [16, 24], "lambda axis0, j, i: (i, j,)"),
    ],
)
def test_inverse(function, shape, inverse):
    assert made(function).inverse(shape).to_python_string() == inverse


@pytest.mark.parametrize(
    ("function", "shape", "padding"),
    [
        (lambda i: (i // 4, i % 4), [14], "axis0 == 3 and 2 <= axis1"),
        (lambda i: (i // 4, i % 4), [3], "axis1 == 3"),
        (lambda i: (i // 32, i % 32), [16], "16 <= axis1"),
        (lambda i: (i // 4, i // 2 % 2, i % 2), [13], "axis0 == 3 and 1 <= axis1 * 2 + axis2"),
        (
            lambda i, j: (i // 3, j // 5, i % 3, j % 5),
            [10, 11],
            "axis0 == 3 and 1 <= axis2 or axis1 == 2 and 1 <= axis3",
        ),
        (
            lambda i: ((i + 1) // 4, (i + 1) % 4),
            [14],
            "axis0 == 0 and axis1 < 1 or axis0 == 3 and axis1 == 3",
        ),
        (
            lambda i, j: ((i * 14 + j) // 16, (i * 14 + j) % 16),
            [14, 14],
            "196 <= axis0 * 16 + axis1",
        ),
    ],
)
def test_padding_is_where_no_element_goes(function, shape, padding):
    index_map = made(function)
    inverse, predicate = index_map.non_surjective_inverse(shape)
    assert repr(predicate) == padding
    with pytest.raises(IndexMapError, match="leaves elements unused"):
        index_map.inverse(shape)
    taken = set()
    for element in elements(shape):
        place = index_map.map_indices(element)
        assert [int(index) for index in inverse.map_indices(place)] == list(element)
        taken.add(tuple(int(index) for index in place))
    outside = IndexMap(inverse.initial_indices, (predicate,))
    for place in elements([int(extent) for extent in index_map.map_shape(shape)]):
        assert bool(outside.map_indices(place)[0]) is (place not in taken)


def elements(shape):
    if not shape:
        return [()]
    return [(first, *rest) for first in range(shape[0]) for rest in elements(shape[1:])]


@pytest.mark.parametrize(
    ("function", "shape", "reason"),
    [
        (lambda i: i % 4, [14], "is not injective: elements that differ in i get one place"),
        (lambda i: i // 4, [16], "is not injective"),
        (lambda i, j: i + j, [16, 24], "is not"),
        (lambda i, j: (i * i, j), [16, 24], "is not affine: a product of two iterators"),
        (lambda i: i * 2, [16], "leaves gaps between neighbouring elements"),
        (lambda i: i ^ 1, [16], "is not affine"),
        (lambda i: (i // 4, i % 4), [Var("n", "int32")], "padding needs a constant extent"),
    ],
)
def test_maps_without_inverse(function, shape, reason):
    with pytest.raises(IndexMapError, match=reason):
        made(function).non_surjective_inverse(shape)


def test_a_given_inverse_is_taken():
    index_map = IndexMap.from_func(
        lambda i: i ^ 1, inverse_index_map=lambda i: i ^ 1, index_dtype="int32"
    )
    assert index_map.inverse([16]) is index_map.inverse_index_map


def test_equivalence():
    assert TILES.is_equivalent_to(made(lambda a, b: [a // 4, b // 8, a - a // 4 * 4, b % 8]))
    assert not TILES.is_equivalent_to(made(lambda a, b: [b // 8, a // 4, a % 4, b % 8]))
    assert not TILES.is_equivalent_to(made(lambda a: [a]))


def test_index_types():
    wide = IndexMap.from_func(lambda i: [i // 4, i % 4])
    assert wide.initial_indices[0].dtype == "int64"
    narrow = wide.with_index_dtype("int32")
    assert {index.dtype for index in (*narrow.initial_indices, *narrow.final_indices)} == {"int32"}
    assert narrow.with_index_dtype("int32") is narrow


def test_record_round_trip():
    again = from_record(to_record(TILES))
    assert repr(again) == repr(TILES)
    assert again.is_equivalent_to(TILES)


def test_records_have_tvms_layout():
    record = json.loads(to_record(made(lambda i, j: (j, i))))
    assert record == {
        "root_index": 8,
        "nodes": [
            {"type": "None"},
            {"type": "ir.PrimType", "data": {"span": 0, "dtype": "int32"}},
            {"type": "ffi.String", "data": "i"},
            {"type": "ir.Var", "data": {"span": 0, "ty": 1, "name": 2}},
            {"type": "ffi.String", "data": "j"},
            {"type": "ir.Var", "data": {"span": 0, "ty": 1, "name": 4}},
            {"type": "ffi.Array", "data": [3, 5]},
            {"type": "ffi.Array", "data": [5, 3]},
            {
                "type": "tirx.IndexMap",
                "data": {"initial_indices": 6, "final_indices": 7, "inverse_index_map": 0},
            },
        ],
    }


def test_script_of_a_map():
    index_map = IndexMap.from_func(lambda i: i // 4)
    assert index_map.script() == str(index_map) == "T.index_map(lambda i: (i // T.int64(4),))"


def test_indices_are_of_the_widest_type():
    """As in TVM, where arithmetic on indices of two types is on the wider."""
    narrow = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    wide = IndexMap.from_func(lambda i: [i // 4, i % 4])
    forty_two = const(42, "int64")
    assert [(int(x), x.dtype) for x in narrow.map_indices([forty_two])] == [
        (10, "int64"),
        (2, "int64"),
    ]
    assert [x.dtype for x in narrow.map_shape([const(14, "int64")])] == ["int64"] * 2
    assert [x.dtype for x in narrow.map_shape([14])] == ["int32"] * 2
    assert [x.dtype for x in wide.map_indices([const(42)])] == ["int64"] * 2


def test_an_analyzer_may_know_the_tile():
    tile = Var("tile", "int32")
    tiles = IndexMap.from_func(lambda i: [i // tile, i % tile], index_dtype="int32")
    with pytest.raises(IndexMapError):
        tiles.map_shape([32])
    analyzer = Analyzer()
    analyzer.bind(tile, const(16))
    assert [int(extent) for extent in tiles.map_shape([32], analyzer)] == [2, 16]
    inverse = tiles.inverse([32], analyzer)
    assert [int(i) for i in inverse.map_indices([const(1), const(3)])] == [19]
    _, padding = tiles.non_surjective_inverse([31], analyzer)
    axes = tiles.non_surjective_inverse([31], analyzer)[0].initial_indices
    assert [axis.dtype for axis in axes] == ["int32"] * 2
    assert not is_const_int(padding, 0)
    of_four = IndexMap.from_func(lambda i: [i // 16, i % 16], index_dtype="int32")
    assert not of_four.is_equivalent_to(tiles)
    assert of_four.is_equivalent_to(tiles, analyzer)


def test_arrays_are_put_where_the_map_says():
    tiled = made(lambda i: (i // 4, i % 4))
    padded = tiled.map_tensor(nd.array(np.arange(1, 7, dtype="int8")))
    assert padded.numpy().tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    array = np.arange(24, dtype="float32").reshape(2, 3, 4)
    turned = made(lambda i, j, k: (k, i, j)).map_ndarray(nd.array(array))
    assert np.array_equal(turned.numpy(), array.transpose(2, 0, 1))
    with pytest.raises(IndexMapError):
        tiled.map_tensor(nd.array(array))
