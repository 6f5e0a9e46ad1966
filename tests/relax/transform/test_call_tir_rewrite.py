"""CallTIRRewrite in the pipeline that users write, against TVM in test_passes_as_tvm.py."""

import numpy as np

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.structural import structural_equal
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import from_source
from tests.relax.transform.passes.cases_lowering import CASES
from tests.relax.transform.running import run

X = np.array([1, 2, 3, 4], "float32")


def test_keeps_the_numbers():
    module = relax.transform.CallTIRRewrite()(from_source(CASES["call_tir_several"][1]))
    assert [list(each) for each in run(module, [X])] == [list(2 * X), list(2 * X), list(X + 1)]


def test_a_pipeline_of_a_users_own():
    module = from_source(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, x)
            R.output(z)
        return z
"""
    )
    t = relax.transform
    passes = [t.LegalizeOps(), t.ToNonDataflow(), t.RemovePurityChecking(), t.CallTIRRewrite()]
    lowered = tvm.transform.Sequential(passes)(module)
    refuse_ill_formed(lowered)
    assert lowered.script().count("R.builtin.alloc_tensor") == 2
    np.testing.assert_allclose(run(lowered, [X])[0], np.exp(X) + X, rtol=1e-6)


def test_leaves_dataflow_blocks():
    module = from_source(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y
"""
    )
    legal = relax.transform.LegalizeOps()(module)
    assert structural_equal(relax.transform.CallTIRRewrite()(legal), legal)
