"""Passes give what those of a real TVM 0.27 give: see passes/record.py, which asked it."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.ir.errors import TVMError
from mlcweb.ir.global_info import VDevice
from mlcweb.ir.structural import structural_equal
from mlcweb.runtime.device import cuda, metal
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.script import from_source
from mlcweb.tir import transform as tir_transform

PASSES = Path(__file__).parent / "passes"
ANSWERS = json.loads((PASSES / "answers.json").read_text())
CASES = {
    name: case
    for file in sorted(PASSES.glob("cases_*.py"))
    for name, case in import_module(f"tests.relax.transform.passes.{file.stem}").CASES.items()
}
MOVED = ("realize_", "update_")
"""What the names of cases about virtual devices begin with."""
DEVICES = SimpleNamespace(cuda=cuda, metal=metal)
OTHERWISE = {
    "in_place_tuple_live": "TVM writes over a tensor that a tuple holds which is read later",
    **{
        f"in_place_{name}": "TVM declares of a tensor that is passed twice that it is passed once"
        for name in ("twice", "other_operators", "cast")
    },
    "in_place_constants": "TVM counts a constant as an argument that its function has not",
    "lift_impure": "TVM calls a function with side effects as a pure closure",
}
"""Cases in which we do something else on purpose, and why."""


@pytest.fixture(autouse=True)
def compilers():
    """External compilers, of which those of the answers gave no modules either."""
    for name in "AB":
        register_func(f"relax.ext.{name}", lambda functions, options, constants: [])
    yield
    for name in "AB":
        remove_global_func(f"relax.ext.{name}")


def given_by(name: str) -> IRModule:
    """What our pass gives for a case."""
    transform, program = CASES[name]
    module = from_source(program, {"tvm": DEVICES})
    names = {"relax": relax, "tir": tir_transform, "module": module, "VDevice": VDevice}
    return eval(transform, names)(module)


def is_otherwise(name: str) -> bool:
    return name in OTHERWISE or name.startswith(("device_", *MOVED))


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("device_")])
def test_values_are_on_the_devices_that_tvm_says(name: str) -> None:
    """Functions for a device have no other names here, and its target has not all attributes."""
    modules = given_by(name), from_source(ANSWERS[name]["module"])
    given, expected = (
        [str(b.var.struct_info) for b in mod["main"].body.blocks[0].bindings] for mod in modules
    )
    assert given == expected


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(MOVED)])
def test_moves_tensors_to_the_devices_that_tvm_says(name: str) -> None:
    """The attributes of targets are fewer here."""
    if "error" in ANSWERS[name]:
        with pytest.raises(IndexError, match="the module has no virtual device 3; it has 3"):
            given_by(name)
        return
    # TVM leaves the old device in calls and tuples, where it has no number any more.
    new = "cuda:0" if name == "update_same" else "vulkan:0"
    text = re.sub(r"(cuda|metal|llvm):-1", new, ANSWERS[name]["module"])
    given, expected = (
        [line for line in mod.script().splitlines() if "module_global_infos" not in line]
        for mod in (given_by(name), from_source(text))
    )
    assert given == expected


def test_of_tensors_on_two_devices_no_device_is_known() -> None:
    """TVM refuses sums of such; here programs run on one device, whatever is written."""
    program = CASES["device_matmul"][1].replace("R.matmul(x, z)", "R.add(x, z)")
    second = from_source(program)["main"].body.blocks[0].bindings[1]
    assert second.var.struct_info.vdevice is None


def with_index_types(text: str) -> str:
    """TVM's text with the type of the indices that ConvertLayout writes, which it leaves out."""
    return re.sub(r"(T\.index_map\(.*?)\), pad_value", r'\1, index_dtype="int32"), pad_value', text)


AS_TVM = [name for name in CASES if not is_otherwise(name)]


@pytest.mark.parametrize("name", [name for name in AS_TVM if "error" in ANSWERS[name]])
def test_refuses_what_tvm_refuses(name: str) -> None:
    with pytest.raises(TVMError):
        given_by(name)


@pytest.mark.parametrize("name", [name for name in AS_TVM if "module" in ANSWERS[name]])
def test_gives_what_tvm_gives(name: str) -> None:
    given = given_by(name)
    # Without the checks: some of TVM's passes leave what TVM itself would refuse.
    text = ANSWERS[name]["module"]
    text = with_index_types(text) if name.startswith("layout_blocks_") else text
    expected = from_source(text, check_well_formed=False)
    transform = CASES[name][0]
    same = structural_equal(given, expected)
    assert same, f"{transform} gives\n{given.script()}\nand TVM's\n{expected.script()}"


@pytest.mark.parametrize("order", ["breadth first", ""])
def test_sorts_in_known_orders_only(order: str) -> None:
    with pytest.raises(ValueError, match="order is 'depth-first' or 'breadth-first'"):
        relax.transform.TopologicalSort(order)
