"""The operator tests that the `onnx` package carries."""

import pytest

from mlcweb.relax.frontend.onnx.graph import CONTROL
from mlcweb.relax.frontend.onnx.node import CONVERTERS

pytest.importorskip("onnx")
from tests.relax.frontend.onnx_operators import cases, operators, outcome

LEAST = {"passed": 1500}
"""How many pass with onnx 1.23; later versions have more."""


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


@pytest.mark.slow
def test_all_operator_tests():
    passed = 0
    for name, case in cases().items():
        result = outcome(case)
        passed += result == "passed"
        assert result == "passed" or result.startswith("not claimed"), name
    assert passed >= LEAST["passed"]
