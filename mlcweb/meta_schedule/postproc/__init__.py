"""Post-processors: what happens to a schedule when all is decided."""

from mlcweb.meta_schedule.space.postprocs import (
    DisallowDynamicLoop, Postproc, PyPostproc, RewriteLayout, RewriteParallelVectorizeUnroll,
    RewriteReductionBlock, RewriteTensorize,
)  # fmt: skip
from mlcweb.meta_schedule.space.thread_postprocs import (
    RewriteCooperativeFetch, RewriteUnboundBlock, VerifyGPUCode,
)  # fmt: skip
from mlcweb.meta_schedule.space.vector_postprocs import (
    VectorizeInnermost, VerifyRegisters, VerifyVectorized,
)  # fmt: skip

create = Postproc.create
