"""The operator tests that the `onnx` package carries."""

import pytest

from mlcweb.relax.frontend.onnx.graph import CONTROL
from mlcweb.relax.frontend.onnx.node import CONVERTERS

pytest.importorskip("onnx")
from tests.relax.frontend.onnx_operators import cases, operators, outcome

LEAST = 0.7
"""What part of every share passes, at the least."""

SHARES = 24
"""So that several processes can run them, each takes some of the tests."""


def of_operator(name):
    """The tests of one operator alone that are in the package, the smallest first."""
    found = [case for case in cases().values() if operators(case) == {name}]
    return sorted(found, key=lambda case: len(case.model.SerializeToString()))


@pytest.mark.parametrize(
    "name", sorted(name for name in (*CONVERTERS, *CONTROL) if "." not in name)
)
def test_an_operator(name):
    found = of_operator(name)
    if not found:
        pytest.skip("onnx has no test of it alone")
    for case in found:
        if outcome(case) == "passed":
            return
    pytest.fail("not one of its tests is claimed")


@pytest.mark.thorough
@pytest.mark.parametrize("share", range(SHARES))
def test_all_operator_tests(share):
    every = list(cases().items())
    mine = every[share::SHARES]
    passed = 0
    for name, case in mine:
        result = outcome(case)
        passed += result == "passed"
        assert result == "passed" or result.startswith("not claimed"), name
    assert passed >= LEAST * len(mine)
