"""Schedule cases with the answers that a real TVM 0.27 gave, stored in `tests/oracle_cases`.

A case is a module and a schedule; its answer says whether TVM accepted it, the module and trace it
made, and checksums of what the scheduled module computes.
"""

import json
import linecache
from pathlib import Path

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import TVMError, assert_structural_equal
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import Schedule, tensor_intrin

CASES = Path(__file__).parents[1] / "oracle_cases"
NAMES = sorted(path.stem for path in CASES.glob("*.json") if ".expected" not in path.name)


@pytest.fixture(autouse=True)
def forget_intrinsics(monkeypatch):
    """Cases register intrinsics under names of their own choice."""
    monkeypatch.setattr(tensor_intrin, "_intrinsics", {})


def load(name):
    case = json.loads((CASES / f"{name}.json").read_text())
    answer = json.loads((CASES / f"{name}.expected.json").read_text())
    return case, answer


def scheduled(case):
    module = from_source(case["module"])
    sch = Schedule(module, seed=case.get("seed"))
    names = {"tvm": mlcweb, "np": np, "T": T}
    text, filename = case["schedule"], f"<{case['title']}>"
    # Intrinsics are defined by decorated functions, whose source is looked up here.
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)
    names["apply"](sch)
    return sch


def in_our_words(trace):
    """A stored trace with the module name of the course's TVM."""
    text = trace.replace("s_tir.Schedule", "tir.Schedule").replace("import s_tir", "import tir")
    return [line.rstrip() for line in text.strip().splitlines()]


def checksums(array):
    """The checksums of the stored answers: of the elements in C order, as float64."""
    flat = np.asarray(array, dtype="float64").ravel()
    return {
        "sum": flat.sum(),
        "abs_sum": np.abs(flat).sum(),
        "cos_dot": (flat * np.cos(np.arange(flat.size))).sum(),
    }


def random_arguments(func, run):
    """The inputs of the stored answers, drawn in the order of the parameters."""
    rng = np.random.default_rng(run["seed"])
    arrays = []
    for buffer in func.parameter_buffers:
        shape = [getattr(d, "value", None) or run["dims"][d.name] for d in buffer.shape]
        drawn = rng.standard_normal(shape)
        if np.dtype(buffer.dtype).kind in "iu":
            drawn = np.rint(4 * drawn)
        arrays.append(drawn.astype(buffer.dtype))
    return [mlcweb.nd.array(array) for array in arrays]


@pytest.mark.parametrize("name", NAMES)
def test_verdict_module_and_trace(name):
    case, answer = load(name)
    if not answer["ok"]:
        error = (TVMError, ValueError, IndexError)
        with pytest.raises(error):
            scheduled(case)
        return
    sch = scheduled(case)
    assert_structural_equal(sch.mod, from_source(answer["script_old"]))
    assert str(sch.trace).splitlines() == in_our_words(answer["trace_old"])


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith("_error")])
def test_numbers(name, target):
    case, answer = load(name)
    if not case.get("run") or not answer.get("run"):
        pytest.skip("the case is not run")
    module = scheduled(case).mod
    function = case["run"]["func"]
    arguments = random_arguments(module[function], case["run"])
    mlcweb.build(module, target=target)[function](*arguments)
    for array, wanted in zip(arguments, answer["run"]["params"], strict=True):
        for key, value in checksums(array.numpy()).items():
            assert value == pytest.approx(wanted[key], rel=1e-4, abs=1e-3), (wanted["name"], key)
