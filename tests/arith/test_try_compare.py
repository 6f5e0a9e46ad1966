"""`Analyzer.try_compare`: TVM 0.27's answers, and where ours say more."""

from contextlib import ExitStack

import pytest

from mlcweb.arith import Analyzer
from mlcweb.tir import Range, Var
from mlcweb.tir.arithmetic import equal, not_equal

x, y, z = Var("x"), Var("y"), Var("z")

PAIRS = [(x, 8), (x, 7), (x, 0), (x, y), (y, x), (x, 9), (y, 3)]


@pytest.mark.parametrize(
    ("constraints", "answers"),
    [
        ([], "LT LE GE UNKNOWN UNKNOWN LT UNKNOWN"),
        ([y < x], "LT LE GE GT LT LT UNKNOWN"),
        ([y <= x], "LT LE GE GE LE LT UNKNOWN"),
        ([equal(y, x)], "LT LE GE EQ EQ LT UNKNOWN"),
        ([y > 3], "LT LE GE UNKNOWN UNKNOWN LT GT"),
        ([not_equal(y, 3)], "LT LE GE UNKNOWN UNKNOWN LT NE"),
    ],
)
def test_as_tvm(constraints, answers):
    analyzer = Analyzer({x: Range.from_min_extent(0, 8)})
    with ExitStack() as stack:
        for constraint in constraints:
            stack.enter_context(analyzer.constraint_scope(constraint))
        found = [analyzer.try_compare(*pair).name for pair in PAIRS]
    assert " ".join(found) == answers


def test_sums_are_compared_without_ranges():
    """TVM 0.27 says UNKNOWN of both."""
    assert Analyzer().try_compare(x + 1, x).name == "GT"
    assert Analyzer().try_compare(y + z, z + y).name == "EQ"
