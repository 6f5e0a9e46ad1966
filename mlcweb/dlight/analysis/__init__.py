"""What rules ask of the blocks of a function.

blocks.py lists the blocks, accesses.py says which iterators they read and write by, and gemv.py
knows products of a matrix and a vector.
"""

from mlcweb.dlight.analysis.accesses import (
    collect_block_iter_vars_used_in_access_region,
    collect_vars_used_in_prim_expr,
    detect_dominant_read,
    dominant_access,
    get_reduction_expr,
    is_broadcast_epilogue,
)
from mlcweb.dlight.analysis.blocks import (
    BlockInfo,
    IterInfo,
    SBlockInfo,
    get_block_info,
    get_root_block,
    get_sblock_info,
    normalize_prim_func,
)
from mlcweb.dlight.analysis.gemv import is_gemv, normalize
from mlcweb.dlight.analysis.limits import get_max_shared_memory_per_block

__all__ = [
    "BlockInfo",
    "IterInfo",
    "SBlockInfo",
    "collect_block_iter_vars_used_in_access_region",
    "collect_vars_used_in_prim_expr",
    "detect_dominant_read",
    "dominant_access",
    "get_block_info",
    "get_max_shared_memory_per_block",
    "get_reduction_expr",
    "get_root_block",
    "get_sblock_info",
    "is_broadcast_epilogue",
    "is_gemv",
    "normalize",
    "normalize_prim_func",
]
