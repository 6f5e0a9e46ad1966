"""The operator tests that the `onnx` package carries."""

import pytest

from mlcweb.relax.frontend.onnx.graph import CONTROL
from mlcweb.relax.frontend.onnx.node import CONVERTERS
from mlcweb.runtime.host import wasm_target

pytest.importorskip("onnx")
from tests.relax.frontend.compiling import equal_kernels_compiled_once
from tests.relax.frontend.onnx_operators import cases, operators, outcome

PASSING = 0.7
"""What part of every share passes, at the least."""

SHARES = 24
"""So that several processes can run them, each takes some of the tests."""


OPERATORS = {name for name in (*CONVERTERS, *CONTROL) if "." not in name}
UNTESTED = {"AllClassNMS", "GlobalLpPool", "MaxRoiPool"}
"""Operators of which the package has no test."""
ELSEWHERE = {
    "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
    "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SplitToSequence",
}  # fmt: skip
"""Operators of sequences, which are no inputs here: see test_onnx_sequences.py."""


@pytest.fixture(scope="module", autouse=True)
def equal_kernels_are_compiled_once():
    with equal_kernels_compiled_once(wasm_target):
        yield


def of_operator(name):
    """The tests of one operator alone that are in the package, the smallest first."""
    found = [case for case in cases().values() if operators(case) == {name}]
    return sorted(found, key=lambda case: len(case.model.SerializeToString()))


def test_nearly_all_operators_have_tests():
    alone = set.union(*(found for case in cases().values() if len(found := operators(case)) == 1))
    assert OPERATORS - alone - ELSEWHERE == UNTESTED


@pytest.mark.parametrize("name", sorted(OPERATORS - UNTESTED - ELSEWHERE))
def test_an_operator(name):
    assert any(outcome(case) == "passed" for case in of_operator(name))


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
    assert passed >= PASSING * len(mine)
