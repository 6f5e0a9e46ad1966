"""Index maps in the script of the graph level, and scalars in TVM's newer spelling."""

import pytest

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.script import parse

HEAD = """
@R.function
def main(x: R.Tensor((8, 8), "float32")):
    with R.dataflow():
"""
PACK = "T.index_map(lambda i, j: (i // 4, j, i % 4))"
SWAP = "T.index_map(lambda i, j: (j, i), inverse_index_map=lambda i, j: (j, i))"


def function(value):
    return parse(f"{HEAD}        y = {value}\n        R.output(y)\n    return y\n")


def index_map(func) -> IndexMap:
    return func.body.blocks[0].bindings[0].value.attrs["index_map"]


@pytest.mark.parametrize("written", [PACK, SWAP])
@pytest.mark.parametrize("dialect", ["tir", "s_tir"])
def test_index_maps_print_as_they_read(written, dialect):
    func = function(f"R.layout_transform(x, index_map={written}, pad_value=None)")
    text = func.script(dialect=dialect)
    assert f"R.layout_transform(x, index_map={written}, pad_value=None)" in text
    assert "as T" in text.splitlines()[0]
    again = parse(text)
    assert again.script(dialect=dialect) == text
    assert structural_equal(again, func)
    assert structural_hash(again) == structural_hash(func)
    assert index_map(again).is_equivalent_to(index_map(func))


def test_a_bare_lambda_is_an_index_map():
    func = function("R.layout_transform(x, index_map=lambda *i: i[::-1])")
    assert [int(n) for n in index_map(func).map_indices([3, 5])] == [5, 3]
    assert "lambda i_0, i_1: (i_1, i_0)" in func.script()


def test_a_lambda_takes_indices_only():
    with pytest.raises(DiagnosticError, match="A lambda in a script takes indices only"):
        function("R.layout_transform(x, index_map=lambda i, j=1: (j, i))")


def test_scalars_are_plain_in_the_newer_spelling():
    func = function('R.arange(0, 8, 2, dtype="int64")')
    assert "R.arange(R.prim_value(0), R.prim_value(8), R.prim_value(2), dtype=" in func.script()
    assert 'R.arange(0, 8, 2, dtype="int64")' in func.script(dialect="s_tir")
    assert parse(func.script(dialect="s_tir")).script() == func.script()


def test_index_maps_are_compared_by_what_they_say():
    maps = [
        IndexMap.from_func(function)
        for function in (lambda i, j: (j, i), lambda a, b: (b, a), lambda i, j: (i, j))
    ]
    assert structural_equal(maps[0], maps[1])
    assert structural_hash(maps[0]) == structural_hash(maps[1])
    assert not structural_equal(maps[0], maps[2])
