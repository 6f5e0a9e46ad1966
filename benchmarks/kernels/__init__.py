"""The programs that are measured, by name."""

from __future__ import annotations

from benchmarks.kernels import (
    batch_matmul,
    chain,
    convolution,
    elementwise,
    layer_norm,
    matmul,
    mlp,
    softmax,
)
from benchmarks.kernels.workload import Workload

_FAMILIES = (matmul, mlp, convolution, batch_matmul, softmax, layer_norm, elementwise, chain)

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for family in _FAMILIES for workload in family.WORKLOADS
}
