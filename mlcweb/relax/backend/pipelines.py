"""The passes of TVM's pipelines for a target, in four groups, and all of them as one pass.

They are the same for every target here: what TVM does to the functions of GPUs,
`dlight.ApplyDefaultSchedule`, `relax.build` does at its end.
"""

from __future__ import annotations

from mlcweb.ir.transform import Pass, Sequential
from mlcweb.relax import transform
from mlcweb.relax.backend.dispatch import DispatchSampling, DispatchSortScan


def library_dispatch_passes(target: object) -> list[Pass]:
    """Operators with a lowering of their own."""
    return [DispatchSampling(), DispatchSortScan()]


def legalize_passes(target: object) -> list[Pass]:
    """Operators become functions of TensorIR, which are fused."""
    return [
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
    ]


def dataflow_lower_passes(target: object) -> list[Pass]:
    """Dataflow blocks become bindings in order, and results are allocated by the caller."""
    return [
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
    ]


def finalize_passes(target: object) -> list[Pass]:
    """Memory is planned, and calls are those of the virtual machine."""
    return [
        transform.StaticPlanBlockMemory(),
        transform.LowerAllocTensor(),
        transform.KillAfterLastUse(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]


def get_default_pipeline(target: object) -> Pass:
    """All of these passes, for a target: `relax.build(mod, target, relax_pipeline=…)` takes it."""
    return Sequential([
        *library_dispatch_passes(target),
        *legalize_passes(target),
        *dataflow_lower_passes(target),
        *finalize_passes(target),
    ])  # fmt: skip
