"""Post-processors: what happens to a schedule when all is decided."""

from mlcweb.meta_schedule.space.postprocs import (
    DisallowDynamicLoop,
    Postproc,
    PyPostproc,
    RewriteLayout,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
    RewriteTensorize,
)
from mlcweb.meta_schedule.space.thread_postprocs import (
    RewriteCooperativeFetch,
    RewriteUnboundBlock,
    VerifyGPUCode,
)
from mlcweb.meta_schedule.space.vector_postprocs import (
    VectorizeInnermost,
    VerifyRegisters,
    VerifyVectorized,
)

create = Postproc.create

__all__ = [
    "DisallowDynamicLoop",
    "Postproc",
    "PyPostproc",
    "RewriteCooperativeFetch",
    "RewriteLayout",
    "RewriteParallelVectorizeUnroll",
    "RewriteReductionBlock",
    "RewriteTensorize",
    "RewriteUnboundBlock",
    "VectorizeInnermost",
    "VerifyGPUCode",
    "VerifyRegisters",
    "VerifyVectorized",
    "create",
]
