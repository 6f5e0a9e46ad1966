"""Approximated functions, and pipelines that are written for TVM's virtual machine."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, tir
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

X = np.random.default_rng(4).normal(0, 2, (3, 8)).astype("float32")


@I.ir_module
class Functions:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        n = T.int64()
        a = R.exp(x)
        b = R.tanh(a)
        c = R.erf(b)
        d = R.nn.softmax(R.add(c, c), axis=1)
        return d


def run(mod: tvm.IRModule, pipeline: object = "default") -> np.ndarray:
    machine = relax.VirtualMachine(relax.build(mod, relax_pipeline=pipeline), tvm.cpu())
    return machine["main"](tvm.nd.array(X)).numpy()


def test_approximations() -> None:
    fast = relax.transform.FastMathTransform()(Functions)
    functions = {v.name_hint for v, f in fast.functions.items() if isinstance(f, tir.PrimFunc)}
    assert functions == {"fast_exp", "fast_tanh", "fast_erf", "fast_softmax"}
    np.testing.assert_allclose(run(fast), run(Functions), rtol=1e-4, atol=1e-6)
    assert not np.array_equal(run(fast), run(Functions))


def test_a_pipeline_for_tvms_machine_builds() -> None:
    t = relax.transform
    passes = tvm.transform.Sequential([
        t.LegalizeOps(), t.AnnotateTIROpPattern(), t.FoldConstant(), t.FuseOps(), t.FuseTIR(),
        t.RewriteDataflowReshape(), t.ToNonDataflow(), t.RemovePurityChecking(),
        t.CallTIRRewrite(), t.StaticPlanBlockMemory(), t.RewriteCUDAGraph(),
        t.LowerAllocTensor(), t.KillAfterLastUse(), t.LowerRuntimeBuiltin(), t.ComputePrimValue(),
        t.VMShapeLower(), t.VMBuiltinLower(), t.AttachGlobalSymbol(),
    ])  # fmt: skip
    np.testing.assert_allclose(run(Functions, passes), run(Functions), rtol=1e-5)


def test_memory_for_libraries_is_refused() -> None:
    func = Functions["main"].with_attr("WorkspaceSize", 1024)
    with pytest.raises(tvm.TVMError, match='AllocateWorkspace: the function "main" is for a lib'):
        relax.transform.AllocateWorkspace()(tvm.IRModule({"main": func}))
