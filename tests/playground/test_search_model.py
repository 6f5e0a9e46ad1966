"""A function of a model: found, put back, and timed end to end."""

from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import cell, search
from mlcweb.playground.protocol.search import ModelInput
from mlcweb.user_code.namespace import SearchModule
from tests.playground.searching import fast_runner, followed, settings

Run = Callable[[str], Any]

MODEL = """
import mlcweb as tvm
import numpy as np
from mlcweb.script import relax as R
from mlcweb.script import tir as T

@tvm.script.ir_module
class Model:
    @T.prim_func
    def scale(X: T.Buffer((1, 16), "float32"), Z: T.Buffer((1, 16), "float32")):
        T.func_attr({"global_symbol": "scale", "tir.noalias": True})
        for i, j in T.grid(1, 16):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = X[vi, vj] * T.float32(2)

    @T.prim_func
    def shift(X: T.Buffer((1, 16), "float32"), Z: T.Buffer((1, 16), "float32")):
        T.func_attr({"global_symbol": "shift", "tir.noalias": True})
        for i, j in T.grid(1, 16):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = X[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.Tensor((1, 16), "float32"), w: R.Tensor((1, 16), "float32")):
        with R.dataflow():
            a = R.call_tir(Model.scale, (x,), out_sinfo=R.Tensor((1, 16), dtype="float32"))
            b = R.call_tir(Model.shift, (a,), out_sinfo=R.Tensor((1, 16), dtype="float32"))
            out = R.add(b, w)
            R.output(out)
        return out

data = tvm.nd.array(np.ones((1, 16), "float32"))
w = tvm.nd.array(np.zeros((1, 16), "float32"))

def halved(sch):
    i, j = sch.get_loops(sch.get_block("Z"))
    sch.split(j, sch.sample_perfect_tile(j, 2))
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlcweb.playground.search.calls.open_runner", fast_runner)
    monkeypatch.setattr("mlcweb.playground.search.end_to_end.MIN_MS", 0.1)


def test_modules_are_offered_with_their_functions() -> None:
    offered = cell.execute(MODEL).search_modules
    assert offered == [SearchModule("Model", ["scale", "shift"], model=True)]


def test_a_function_of_a_model_is_replaced_and_timed_end_to_end() -> None:
    cell.execute(MODEL)
    asked = settings(module="Model", function="shift", schedule_function="halved", trials=2)
    identifier, told = followed(asked)
    assert {trial.state for trial in told} <= {"measured", "repeated"}
    times = search.compare(identifier, 0)
    assert times.before > 0
    assert times.after > 0
    assert times.entry == "main"
    # `w` has the parameter's name; `x` fits two arrays, so neither is taken.
    assert times.inputs == [ModelInput("x", "random"), ModelInput("w", "w")]
    details = search.details(identifier, 0)
    assert 'Model["shift"].with_attr("global_symbol", "main")' in details.code
    again = cell.execute(MODEL + details.replacing)
    assert again.ok, again.error
    shown = again.modules[-1].source
    assert "def shift" in shown
    assert "j_0, j_1" in shown


def test_what_is_no_model_cannot_be_timed_end_to_end(run: Run) -> None:
    run("")
    identifier, _ = followed(settings(trials=1))
    with pytest.raises(TVMError, match='MyModule has no graph function "main"'):
        search.compare(identifier, 0)
