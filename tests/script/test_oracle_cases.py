"""Texts that a real TVM printed: they parse, and print again byte for byte.

`oracle_cases/NAME.json` is a program, `NAME.expected.json` what TVM made of it; `script_old` and
`input_script_old` are TVM's texts in the spelling that this package prints.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlcweb.ir import assert_structural_equal, structural_equal
from mlcweb.script import parse, script

CASES = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "oracle_cases").glob("*.json")
    if not path.name.endswith(".expected.json")
)

SYMBOLIC = {"split_symbolic"}
"""TVM prints symbolic shapes as `T.Buffer(("n", 16))`, we print `T.match_buffer`."""


def _load(name: str) -> dict[str, str]:
    return json.loads((Path(__file__).parents[1] / "oracle_cases" / name).read_text())


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_program_is_read_as_tvm_reads_it(name: str) -> None:
    module = parse(_load(f"{name}.json")["module"])
    expected = _load(f"{name}.expected.json")["input_script_old"].rstrip()
    if name not in SYMBOLIC:
        assert script(module) == expected
    assert_structural_equal(parse(expected), module)


def test_scheduled_program_prints_as_tvm_prints_it(name: str) -> None:
    text = _load(f"{name}.expected.json")["script_old"].rstrip()
    module = parse(text)
    if name not in SYMBOLIC:
        assert script(module) == text
    assert structural_equal(parse(script(module)), module)


def test_there_are_cases() -> None:
    assert len(CASES) >= 60
