"""ConvertLayout keeps what a program computes, and says which layouts it does not know.

What it makes is compared with TVM's in test_passes_as_tvm.py, on the programs used here.
"""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal
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


BLOCKS = [name for name in CASES if name.startswith("layout_blocks_")]


@pytest.mark.parametrize("name", NUMBERS + BLOCKS)
def test_keeps_the_numbers(name):
    transform, program = CASES[name]
    before = from_source(program)
    after = eval(transform, {"relax": relax})(before)
    refuse_ill_formed(after)
    inputs = arguments(before["main"])
    for ours, expected in zip(run(after, inputs), run(before, inputs), strict=True):
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
    inputs = arguments(before["main"])
    for ours, expected in zip(run(after, inputs), run(before, inputs), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"relax.nn.conv2d": ["NHWC"]}, "relax.nn.conv2d needs 2 to 3 layouts"),
        ({"relax.nn.conv2d": ["NHWQ", "OHWI"]}, 'lies as "NCHW"; an order of these letters'),
        ({"relax.nn.conv2d": ["NCHW4q", "OIHW4o"]}, 'not "NCHW4q"'),
        ({"relax.nn.conv2d": ["NCHW0c", "OIHW4o"]}, 'not "NCHW0c"'),
        ({"relax.nn.conv2d": ["NHW[4c]", "OIHW4o"]}, r'not "NHW\[4c\]"'),
        ({"relax.nn.conv2d": ["NHW4c", "OIHW4o"]}, 'not "NHW4c"'),
        ({"relax.nn.max_pool2d": ["NHWC"]}, "no layout to want for relax.nn.max_pool2d"),
    ],
)
def test_says_which_layouts_there_are(wanted, message):
    with pytest.raises(DiagnosticError, match=message):
        relax.transform.ConvertLayout(wanted)(from_source(CASES["layout_alone"][1]))


def test_leaves_what_is_no_whole_number_of_blocks():
    """The channels of CASES are 3 and 4, of which blocks of 4 or 2 would need padding."""
    before = from_source(CASES["layout_alone"][1])
    for desired in (["NCHW4c", "OIHW4o"], ["NHWC2c", "OHWI2o"], ["NCHW", "OIHW", "NCHW8c"]):
        after = relax.transform.ConvertLayout({"relax.nn.conv2d": desired})(before)
        assert structural_equal(after, before)


def test_what_is_no_whole_number_of_blocks_lies_as_it_was():
    """Also where TVM makes a program that it cannot lower (sums of channels), or fails (parts of
    two channels)."""
    body = """
            b = R.sum(a, axis=[1], keepdims=True)
            c = R.add(R.nn.relu(b), y)
            d = R.concat((b, a), axis=1)
            e = R.add(a, z)
            f = (R.split(a, 4, axis=1), R.split(a, [4], axis=1))
            gv = (c, d, e, f)
"""
    transform, program = CASES["layout_blocks_bias"]
    z = ", z: R.Tensor((2, 1, 7, 1), 'float32')):"
    before = from_source(
        through(program.replace("(1, 8, 1, 1)", "(2, 6, 7, 7)").replace("):", z, 1), body)
    )
    after = eval(transform, {"relax": relax})(before)
    refuse_ill_formed(after)
    inputs = arguments(before["main"])
    for ours, expected in zip(run(after, inputs), run(before, inputs), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_other_convolutions_lie_in_blocks():
    """TVM does this for conv2d only."""
    program = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 8, 9), "float32"), v: R.Tensor((4, 8, 3), "float32")):
        with R.dataflow():
            a = R.nn.conv1d(x, v)
            gv = R.nn.relu(a)
            R.output(gv)
        return gv
"""
    before = from_source(program)
    after = relax.transform.ConvertLayout({"relax.nn.conv1d": ["NCW4c", "OIW2i4o"]})(before)
    refuse_ill_formed(after)
    assert 'data_layout="NCW4c"' in after.script()
    inputs = arguments(before["main"])
    for ours, expected in zip(run(after, inputs), run(before, inputs), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
