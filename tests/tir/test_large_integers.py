"""Integers that no type holds are refused, as in TVM, and do not wrap."""

import pytest

from mlcweb import te, tir
from mlcweb.ir import TVMError
from mlcweb.script import from_source
from mlcweb.tir.folding import const

EXTENT = """
@T.prim_func
def main(A: T.Buffer(({},), "int8")):
    for i in range(4):
        A[i] = T.int8(1)
"""


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**1000])
def test_an_integer_beyond_64_bits_is_refused(value):
    bits = value.bit_length()
    for make in (
        lambda: const(value),
        lambda: te.placeholder((value,), name="A"),
        lambda: tir.decl_buffer((value,)),
        lambda: tir.Var("i", "int64") + value,
    ):
        with pytest.raises(TVMError, match=f"An integer of {bits} bits does not fit in int64"):
            make()


def test_an_extent_in_a_script_is_refused():
    with pytest.raises(TVMError, match="does not fit in int64"):
        from_source(EXTENT.format("10**1000"))
    assert "9223372036854775807" in from_source(EXTENT.format("2**63 - 1")).script()


def test_a_type_that_is_named_holds_what_it_can():
    assert const(2**63, "uint64").value == 2**63
    assert const(2**63 - 1).value == 2**63 - 1
