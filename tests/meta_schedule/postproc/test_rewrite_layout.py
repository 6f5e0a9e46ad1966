"""Weights in other layouts: what TVM makes of the same programs, and programs without copies."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.lower.transform import RemoveWeightLayoutRewriteBlock
from mlcweb.meta_schedule.measure.artifact import (
    ParamLayout,
    build_artifact,
    random_inputs,
    with_param_layouts,
)
from mlcweb.meta_schedule.measure.runner import Timing, run_here
from mlcweb.meta_schedule.postproc import RewriteLayout
from mlcweb.schedule import Schedule
from mlcweb.script import from_source
from tests.meta_schedule.postproc.layout_cases import ANSWERS, CASES

EXPECTED = json.loads(ANSWERS.read_text())
TARGETS = ["llvm", "wasm"]


def rewritten(name):
    sch = Schedule(IRModule({"main": from_source(CASES[name])}))
    sch.enter_postproc()
    assert RewriteLayout().apply(sch)
    return sch.mod


@pytest.mark.parametrize("name", CASES)
def test_layouts_are_those_of_tvm(name):
    assert_structural_equal(rewritten(name)["main"], from_source(EXPECTED[name]))


@pytest.mark.oracle
@pytest.mark.thorough
def test_tvm_answers_what_is_stored(oracle_python):
    script = "import layout_cases, json; print(json.dumps(layout_cases._answers()))"
    done = subprocess.run(
        [oracle_python, "-c", script], capture_output=True, text=True, cwd=ANSWERS.parent
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == EXPECTED


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_without_the_copy_a_function_takes_the_weights_in_that_layout(name, target):
    """What is measured in a search, with arrays arranged in NumPy, computes the same."""
    plain = IRModule({"main": from_source(CASES[name])})
    module = rewritten(name)
    bare = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    assert "layout_rewrite_preproc" not in bare.script()
    assert "alloc_buffer" not in bare.script()
    measured, (layout,) = with_param_layouts(module, "main")
    assert_structural_equal(measured, bare)
    assert layout.shape == tuple(int(n) for n in bare["main"].parameter_buffers[1].shape)
    workload = random_inputs(plain)
    timing = Timing(1, 0.01)
    _, expected = run_here(build_artifact(plain, "main", target), workload, timing)
    artifact = build_artifact(module, "main", target)
    assert artifact.layouts == (layout,)
    _, results = run_here(artifact, replace(workload, expected=expected), timing)
    for result, array in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-4)
    arrays = [tvm.nd.array(each) for each in workload.arranged(artifact.layouts).inputs]
    tvm.build(bare, target)(*arrays)
    np.testing.assert_allclose(arrays[-1].numpy(), expected[-1], rtol=1e-4)


def test_arrays_are_arranged_element_by_element():
    layout = ParamLayout(0, (3, 2, 2), "lambda i0, i1: (i1, i0 // 2, i0 % 2,)")
    array = np.arange(12).reshape(4, 3)
    np.testing.assert_array_equal(layout.arranged(array), array.reshape(2, 2, 3).transpose(2, 0, 1))


def test_copies_of_parameters_that_are_read_beside_them_stay():
    """Without its own elements, the function could not compute the second sum."""
    text = """
@T.prim_func
def main(W: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    W_packed = T.alloc_buffer((4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
            W_packed[vj, vi] = W[vi, vj]
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = W_packed[vi, vj] + W[vi, vj]
"""
    module = IRModule({"main": from_source(text)})
    assert with_param_layouts(module, "main") == (module, ())
    assert RemoveWeightLayoutRewriteBlock()(module)["main"] is module["main"]
