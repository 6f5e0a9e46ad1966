"""What TVM's backends share, under its names: patterns for external compilers by name
(pattern_registry.py, patterns.py), the lowering of sorts and scans (dispatch.py), the passes of a
pipeline for a target (pipelines.py), and what such passes are made of (utils.py).

The libraries themselves (cuBLAS, CUTLASS, …) cannot be called from here. A compiler of one's own
can: patterns are partitioned by `relax.transform.FuseOpsByPattern`, and given to it by
`RunCodegen`.
"""

from mlcweb.relax.backend import dispatch, pattern_registry, patterns, pipelines, utils
from mlcweb.relax.backend.dispatch import DispatchSampling, DispatchSortScan
from mlcweb.relax.backend.pattern_registry import get_pattern, get_patterns_with_prefix

__all__ = [
    "DispatchSampling",
    "DispatchSortScan",
    "dispatch",
    "get_pattern",
    "get_patterns_with_prefix",
    "pattern_registry",
    "patterns",
    "pipelines",
    "utils",
]
