"""Numbers out of extents."""

import pytest

from mlcweb import te
from mlcweb.ir import DiagnosticError
from mlcweb.tir import IntImm
from mlcweb.topi import utils


def test_numbers():
    n = te.var("n")
    assert utils.get_const_tuple((IntImm("int32", 4), 5, n)) == (4, 5, n)
    assert utils.get_const_int(IntImm("int32", 3) + 4) == 7
    assert utils.equal_const_int(IntImm("int32", 3), 3) and not utils.equal_const_int(n, 3)
    with pytest.raises(DiagnosticError, match="n is symbolic"):
        utils.get_const_int(n)


def test_paddings():
    assert utils.get_pad_tuple(1, (3, 3)) == (1, 1, 1, 1)
    assert utils.get_pad_tuple("SAME", (3, 4)) == (1, 1, 1, 2)
    assert utils.get_pad_tuple1d((1, 2), 3) == (1, 2)
