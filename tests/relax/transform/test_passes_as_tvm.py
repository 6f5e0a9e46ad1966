"""Passes give what those of a real TVM 0.27 give: see passes/record.py, which asked it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from mlcweb import relax
from mlcweb.ir.structural import structural_equal
from mlcweb.script import from_source
from mlcweb.tir import transform as tir_transform

PASSES = Path(__file__).parent / "passes"
ANSWERS = json.loads((PASSES / "answers.json").read_text())
CASES = {
    name: case
    for file in sorted(PASSES.glob("cases_*.py"))
    for name, case in import_module(f"tests.relax.transform.passes.{file.stem}").CASES.items()
}
OTHERWISE = {
    "lift_impure": "TVM calls a function with side effects as a pure closure",
}
"""Cases in which we do something else on purpose, and why."""


@pytest.mark.parametrize("name", [name for name in CASES if name not in OTHERWISE])
def test_gives_what_tvm_gives(name: str) -> None:
    transform, program = CASES[name]
    module = from_source(program)
    names = {"relax": relax, "tir": tir_transform, "module": module}
    given = eval(transform, names)(module)
    # What fused functions are marked by is True since TVM 0.27, and 1 in all before, as here.
    text = ANSWERS[name]["module"].replace('"Primitive": True', '"Primitive": 1')
    # Without the checks: some of TVM's passes leave what TVM itself would refuse.
    expected = from_source(text, check_well_formed=False)
    same = structural_equal(given, expected)
    assert same, f"{transform} gives\n{given.script()}\nand TVM's\n{expected.script()}"


@pytest.mark.parametrize("order", ["breadth first", ""])
def test_sorts_in_known_orders_only(order: str) -> None:
    with pytest.raises(ValueError, match="order is 'depth-first' or 'breadth-first'"):
        relax.transform.TopologicalSort(order)
