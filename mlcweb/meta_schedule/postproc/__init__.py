"""Post-processors: what happens to a schedule when all is decided."""

from mlcweb.meta_schedule.postproc.disallow_dynamic_loop import DisallowDynamicLoop
from mlcweb.meta_schedule.postproc.postproc import Postproc, PyPostproc
from mlcweb.meta_schedule.postproc.rewrite_parallel_vectorize_unroll import (
    RewriteParallelVectorizeUnroll,
)
from mlcweb.meta_schedule.postproc.rewrite_reduction_block import RewriteReductionBlock
from mlcweb.meta_schedule.postproc.rewrite_tensorize import RewriteTensorize
from mlcweb.meta_schedule.postproc.vectorize_innermost import VectorizeInnermost
from mlcweb.meta_schedule.postproc.verify_registers import VerifyRegisters
from mlcweb.meta_schedule.postproc.verify_vectorized import VerifyVectorized

create = Postproc.create

__all__ = [
    "DisallowDynamicLoop",
    "Postproc",
    "PyPostproc",
    "RewriteParallelVectorizeUnroll",
    "RewriteReductionBlock",
    "RewriteTensorize",
    "VectorizeInnermost",
    "VerifyRegisters",
    "VerifyVectorized",
    "create",
]
