"""ConvertLayout keeps what a program computes, and says which layouts it does not know.

What it makes is compared with TVM's in test_passes_as_tvm.py, on the programs used here.
"""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_layout import CASES
from tests.relax.transform.running import arguments, run

NUMBERS = [
    "layout_bias_converted", "layout_sums", "layout_sum_of_sum", "layout_permute_all",
    "layout_expand", "layout_squeeze", "layout_split", "layout_slice", "layout_avg_pool",
    "layout_layer_norm_apart", "layout_group_norm", "layout_tile", "layout_gather", "layout_fma",
    "layout_tuple", "layout_two_blocks", "layout_conv1d", "layout_transposed_after",
]  # fmt: skip


def through(program, body):
    """A program of `cases_layout` with another body behind its convolution."""
    start, rest = program.split("            b =", 1)
    return start + body + rest[rest.index("            R.output") :]


@pytest.mark.parametrize("name", NUMBERS)
def test_keeps_the_numbers(name):
    transform, program = CASES[name]
    before = from_source(program)
    after = eval(transform, {"relax": relax})(before)
    refuse_ill_formed(after)
    given = arguments(before["main"])
    for ours, expected in zip(run(after, given), run(before, given), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "line",
    [
        "gv = R.repeat(a, 2)",
        "gv = R.nn.dropout(a)",
        "gv = R.sum(a)",
        "gv = R.scatter_nd(a, R.const([[1]]), R.zeros((1, 4, 26, 26), 'float32'))",
        "gv = R.stack((a, a), axis=1)",
    ],
)
def test_keeps_the_numbers_where_tvm_fails_or_does_not(line):
    _, program = CASES["layout_pad"]
    before = from_source(through(program, f"            {line}\n"))
    after = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(before)
    refuse_ill_formed(after)
    given = arguments(before["main"])
    for ours, expected in zip(run(after, given), run(before, given), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"relax.nn.conv2d": ["NHWC"]}, "relax.nn.conv2d needs 2 to 3 layouts"),
        ({"relax.nn.conv2d": ["NHWQ", "OHWI"]}, 'lies as "NCHW"; an order of these letters'),
        ({"relax.nn.conv2d": ["NCHW4c", "OIHW4o"]}, "with blocks of channels are not there"),
        ({"relax.nn.max_pool2d": ["NHWC"]}, "no layout to want for relax.nn.max_pool2d"),
    ],
)
def test_says_which_layouts_there_are(wanted, message):
    with pytest.raises(DiagnosticError, match=message):
        relax.transform.ConvertLayout(wanted)(from_source(CASES["layout_alone"][1]))
