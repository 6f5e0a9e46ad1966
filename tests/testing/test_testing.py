"""The assertions of `mlcweb.testing`, and where TVM's users find them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlcweb
from mlcweb.ir.structural import StructuralMismatch
from mlcweb.script import from_source
from mlcweb.testing import (
    assert_allclose,
    assert_prim_expr_equal,
    assert_structural_equal_ignore_global_symbol,
    verify_trace_roundtrip,
)
from mlcweb.tir import Schedule, Var
from tests.programs import MATMUL, matmul, matmul_relu

ROOT = Path(__file__).parents[2]


def test_close_arrays():
    assert_allclose([1.0, 2.0], np.array([1.0, 2.0 + 1e-7]))
    assert_allclose(mlcweb.nd.array(np.ones(3, "float32")), np.ones(3))
    assert_allclose(100.0, 101.0, rtol=0.01)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        assert_allclose([1.0, 2.0], [1.0, 2.00001])


def test_arrays_of_other_shapes_are_never_close():
    with pytest.raises(AssertionError, match=r"\(2, 1\) and, desired, \(2,\)"):
        assert_allclose(np.ones((2, 1)), np.ones(2))


def test_functions_of_other_names_can_be_equal():
    function = matmul()["main"]
    renamed = function.with_attr("global_symbol", "product")
    assert_structural_equal_ignore_global_symbol(function, renamed)
    assert_structural_equal_ignore_global_symbol(function.without_attr("global_symbol"), renamed)
    with pytest.raises(StructuralMismatch):
        assert_structural_equal_ignore_global_symbol(function, matmul_relu()["main"])


@pytest.mark.parametrize("dialect", ["tir", "s_tir"])
@pytest.mark.parametrize("text_format", ["python", "json", ("python", "json")])
def test_round_trip_of_a_trace(dialect, text_format):
    mod = matmul_relu()
    sch = Schedule(mod, seed=1)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(j0, i, k, j1)
    sch.reverse_compute_at("C", j0)
    sch.annotate(j0, "note", ["a", 1])
    sch.transform_layout(block, ("write", 0), lambda i, j: (j, i))
    again = verify_trace_roundtrip(sch, mod, text_format=text_format, dialect=dialect)
    assert len(again.trace.insts) == len(sch.trace.insts)


def test_round_trip_from_another_program_fails():
    sch = Schedule(matmul())
    sch.split(sch.get_loops("C")[0], [None, 4])
    other = from_source(MATMUL.replace("128", "64"))
    with pytest.raises(StructuralMismatch):
        verify_trace_roundtrip(sch, other, text_format="json")


def test_a_format_that_there_is_not():
    with pytest.raises(ValueError, match='is "python" or "json", not "yaml"'):
        verify_trace_roundtrip(Schedule(matmul()), matmul(), text_format="yaml")


def test_tvm_names_lead_here():
    program = """
import mlcweb.compat
mlcweb.compat.install()
import tvm.testing, tvm.s_tir.schedule.testing, tvm.tir.schedule.testing
from tvm.s_tir.schedule.testing import verify_trace_roundtrip
from tvm.tir.schedule import testing
assert tvm.testing.verify_trace_roundtrip is verify_trace_roundtrip
assert testing is tvm.testing and callable(tvm.testing.assert_allclose)
"""
    subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )


def test_expressions_of_one_value():
    x = Var("x", "int32")
    assert_prim_expr_equal(x + x, x * 2)
    with pytest.raises(ValueError, match=r"x and x \+ 1 are not equal"):
        assert_prim_expr_equal(x, x + 1)
