"""What a program does: which regions it touches, and how its parts depend on each other.

The questions that TVM's users ask are in queries.py.
"""

from mlcweb.analysis.access_regions import AccessRegions, block_access_regions
from mlcweb.analysis.gpu_limits import verify_gpu_code
from mlcweb.analysis.queries import (
    OOBChecker, assert_pure_function, calculate_allocated_bytes, calculate_constant_bytes,
    calculate_workspace_bytes, detect_buffer_access_lca, estimate_tir_flops, expr_deep_equal,
    find_anchor_block, find_anchor_sblock, get_block_access_region, get_block_read_write_region,
    get_sblock_access_region, get_sblock_read_write_region, is_pure_function, undefined_vars,
    verify_memory, verify_ssa, verify_well_formed,
)  # fmt: skip
