"""ToMixedPrecision keeps what a program computes, nearly, and leaves alone what is no float.

What it makes is compared with TVM's in test_passes_as_tvm.py, on the programs used here.
"""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import assert_structural_equal
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_precision import CASES
from tests.relax.transform.running import arguments, run


@pytest.mark.parametrize(
    "name",
    [
        "tuple", "split_one_used", "conv", "batch_norm", "not_followed", "blocks", "shapes",
        "where", "wrapped", "wrapped_out16",
    ],
)  # fmt: skip
def test_keeps_the_numbers_nearly(name):
    transform, program = CASES[f"precision_{name}"]
    before = from_source(program)
    after = eval(transform, {"relax": relax})(before)
    refuse_ill_formed(after)
    inputs = arguments(before["main"])
    for ours, expected in zip(run(after, inputs), run(before, inputs), strict=True):
        assert ours.dtype == expected.dtype
        np.testing.assert_allclose(ours, expected, rtol=2e-2)


def test_keeps_the_types_of_wrapped_values():
    """Of those that are no parameters TVM makes programs that read undefined variables."""
    program = CASES["precision_wrapped"][1].replace(
        "gv = (d, g)",
        "e = R.wrap_param(d, dtype='float16')\n"
        "            h = R.wrap_param(R.astype(d, 'int8'), dtype='float32')\n"
        "            gv = (R.nn.relu(e), R.add(h, g))",
    )
    before = from_source(program)
    after = relax.transform.ToMixedPrecision(out_dtype="float16")(before)
    refuse_ill_formed(after)
    inputs = arguments(before["main"])
    for ours, expected in zip(run(after, inputs), run(before, inputs), strict=True):
        assert ours.dtype == expected.dtype
        np.testing.assert_allclose(ours, expected, rtol=2e-2)


@pytest.mark.parametrize(
    ("dtype", "out_dtype"), [("int8", "int32"), ("float64", "float64"), ("float32", "float64")]
)
def test_leaves_products_of_other_types(dtype, out_dtype):
    program = CASES["precision_alone"][1].replace("float32", dtype)
    module = from_source(program.replace("(x, w)", f"(x, w, out_dtype='{out_dtype}')"))
    assert_structural_equal(relax.transform.ToMixedPrecision()(module), module)


def test_says_which_types_there_are():
    with pytest.raises(DiagnosticError, match='out_dtype is "float16" or "float32"'):
        relax.transform.ToMixedPrecision("bfloat16")


def test_outer_product():
    program = CASES["precision_alone"][1].replace("(4, 4)", "(4,)").replace("matmul", "outer")
    before = from_source(program)
    after = relax.transform.ToMixedPrecision()(before)
    assert 'R.astype(x, dtype="float16")' in after.script()
    inputs = arguments(before["main"])
    np.testing.assert_allclose(*(run(mod, inputs)[0] for mod in (after, before)), rtol=2e-2)
