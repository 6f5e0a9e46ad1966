"""Branches of graph functions that are built by calls: `R.If`, `R.Then`, `R.Else`."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.script import relax as script
from mlcweb.script.ir_builder import IRBuilder
from mlcweb.script.ir_builder import relax as R


def built(names: tuple[str, str] = ("y", "y"), branches: tuple[str, ...] = ("Then", "Else")):
    """`y = x + x if c else x * x + x`."""
    with IRBuilder() as ib, R.function():
        R.func_name("main")
        c = R.arg("c", R.Tensor((), "bool"))
        x = R.arg("x", R.Tensor((3,), "float32"))
        with R.If(c) as frame:
            if "Then" in branches:
                with R.Then():
                    IRBuilder.name(names[0], R.emit(R.add(x, x)))
            if "Else" in branches:
                with R.Else():
                    product = R.emit(R.multiply(x, x))
                    IRBuilder.name(names[1], R.emit(R.add(product, x)))
        R.func_ret_value(frame.var)
    return ib.get()


def test_branches_are_those_of_a_script() -> None:
    @script.function
    def main(c: script.Tensor((), "bool"), x: script.Tensor((3,), "float32")):
        if c:
            y = script.add(x, x)
        else:
            product = script.multiply(x, x)
            y = script.add(product, x)
        return y

    tvm.ir.assert_structural_equal(built(), main)


@pytest.mark.parametrize(("condition", "expected"), [(True, [0, 2, 4]), (False, [0, 2, 6])])
def test_branches_run(condition: bool, expected: list[float]) -> None:
    vm = relax.VirtualMachine(relax.build(tvm.IRModule({"main": built()})), tvm.cpu())
    x = tvm.nd.array(np.arange(3, dtype="float32"))
    np.testing.assert_array_equal(
        vm["main"](tvm.nd.array(np.array(condition)), x).numpy(), expected
    )


def test_both_branches_give_one_name() -> None:
    with pytest.raises(tvm.TVMError, match='one name, not "y" and "z"'):
        built(("y", "z"))


def test_both_branches_are_needed() -> None:
    with pytest.raises(tvm.TVMError, match=r"R\.If has no R\.Else"):
        built(branches=("Then",))
