"""FoldBatchnormToConv2D and FuseTransposeMatmul keep what a program computes.

What they make is compared with TVM's in test_passes_as_tvm.py, on the programs used here.
"""

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.ir.structural import structural_equal
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_folding import CASES
from tests.relax.transform.running import arguments, run

FOLD = relax.transform.FoldBatchnormToConv2D()
FUSE = relax.transform.FuseTransposeMatmul()


CHANNELS_LAST = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4, 4, 2), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(
                x, R.const([[[[1.0, 4.0, 2.0], [2.0, 5.0, 1.0]]]], "float32"),
                data_layout="NHWC", kernel_layout="HWIO",
            )
            b = R.nn.batch_norm(
                a, R.const([2.0, 1.0, 3.0], "float32"), R.const([3.0, 0.5, 0.0], "float32"),
                R.const([4.0, 0.25, 1.0], "float32"), R.const([1.0, 2.0, 3.0], "float32"),
                axis=-1, training=False,
            )
            gv = b[0]
            R.output(gv)
        return gv
"""


def check(transform, program, changes=True):
    before = from_source(program)
    after = transform(before)
    refuse_ill_formed(after)
    assert structural_equal(before, after) != changes
    given = arguments(before["main"])
    for ours, expected in zip(run(after, given), run(before, given), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("epsilon=0.001", "epsilon=0.001, scale=False"),
        ("epsilon=0.001", "epsilon=0.001, center=False"),
    ],
)
def test_folds_normalisations(change):
    check(FOLD, CASES["fold_norm"][1].replace(*change))


def test_folds_normalisations_of_other_layouts():
    check(FOLD, CHANNELS_LAST)


def test_folds_nothing_in_training():
    check(FOLD, CASES["fold_norm"][1].replace("training=False", "training=True"), changes=False)


@pytest.mark.parametrize(
    "name", ["transposed", "transposed_vector", "transposed_batch", "transposed_broadcast"]
)
def test_fuses_transposed_products(name):
    check(FUSE, CASES[name][1])


def test_fuses_no_transpose_that_others_ask_for():
    program = CASES["transposed"][1].replace(
        "gv = R.matmul(x, a)", "b = R.matmul(x, a)\n            gv = (a, b)"
    )
    check(FUSE, program, changes=False)


def test_fuses_the_opposite_order_of_axes_only_of_matrices():
    program = CASES["transposed_otherwise"][1].replace("(w, [1, 2, 0])", "(w)")
    check(FUSE, program.replace("x: R.Tensor((4, 8)", "x: R.Tensor((4, 6)"), changes=False)
