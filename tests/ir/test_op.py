"""Looking up operators."""

import pytest

from mlcweb import tir
from mlcweb.ir import InternalError, Op
from mlcweb.ir.op import UnknownOpError


def test_both_spellings_name_an_operator():
    assert Op.get("tirx.exp") is Op.get("tir.exp") is tir.exp(tir.const(1.0)).op


@pytest.mark.parametrize("error", [UnknownOpError, InternalError, AttributeError, KeyError])
def test_unknown_operators(error):
    with pytest.raises(error, match=r"There is no operator tir\.nosuch"):
        Op.get("tir.nosuch")


def test_an_operator_is_the_same_as_itself():
    assert Op.get("tir.exp").same_as(Op.get("tirx.exp")) and not Op.get("tir.exp").same_as(
        "tir.exp"
    )
