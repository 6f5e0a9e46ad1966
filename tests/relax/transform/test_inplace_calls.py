"""Operators that write over their arguments, and functions for other layouts, keep the numbers."""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_implementations import CASES as IMPLEMENTATIONS
from tests.relax.transform.passes.cases_in_place import CASES as IN_PLACE
from tests.relax.transform.running import arguments, run


def is_run(name: str) -> bool:
    return not name.endswith(("symbolic", "symbolic_mixed", "packed"))


@pytest.mark.parametrize("name", [*filter(is_run, IN_PLACE)])
def test_in_place_keeps_the_results_and_the_arguments(name: str) -> None:
    mod = from_source(IN_PLACE[name][1])
    given = arguments(mod["main"])
    before = [each.copy() for each in given]
    changed = relax.transform.DataflowUseInplaceCalls()(mod)
    for result, expected in zip(run(changed, given), run(mod, given), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    for array, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_reshape_is_in_the_memory_of_its_argument() -> None:
    mod = from_source("""
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    with R.dataflow():
        a = R.add(x, x)
        b = R.reshape(a, (6,))
        c = R.nn.relu(b)
        gv = (c, a)
        R.output(gv)
    return gv
""")
    changed = relax.transform.DataflowUseInplaceCalls()(IRModule.from_expr(mod))
    assert "call_tir_inplace" not in changed.script()


@pytest.mark.parametrize("name", [n for n in IMPLEMENTATIONS if n.endswith(("even", "padded"))])
def test_functions_of_other_layouts_give_the_same(name: str) -> None:
    transform, program = IMPLEMENTATIONS[name]
    mod = from_source(program)
    given = arguments(mod["main"])
    changed = eval(transform, {"relax": relax})(mod)
    (result,) = run(changed, given)
    np.testing.assert_allclose(result, 4 * given[0], rtol=1e-6)
