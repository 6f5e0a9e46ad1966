"""`tvm.tir.tensor_intrin.cuda`: what tensor cores do, as `wmma` and as PTX have it."""

from __future__ import annotations

from mlcweb.tensor_intrin import tensor_cores, warp_matrices
from mlcweb.tensor_intrin.mma_fragments import (
    get_index_A,
    get_index_B,
    get_index_C,
    get_mma_init_intrin,
    get_mma_load_intrin,
    get_mma_store_dummy_intrin,
    get_mma_sync_intrin,
)
from mlcweb.tensor_intrin.tensor_cores import (
    get_wmma_fill_intrin,
    get_wmma_fragment_index,
    get_wmma_intrin_group,
    get_wmma_load_intrin,
    get_wmma_store_intrin,
    get_wmma_sync_intrin,
)
from mlcweb.tensor_intrin.warp_matrices import (
    M_DIM,
    N_DIM,
    WARP_SIZE,
    get_ldmatrix_intrin,
    get_mma_fill_intrin,
    get_mma_intrin,
    get_mma_intrin_group,
    get_mma_store_intrin,
    index_map_m16n8k8_matrixC,
    index_map_shared_16x16_to_ldmatrix_32x8_layout,
    ldmatrix_32x8_to_shared_16x16_layout,
    shared_16x16_to_ldmatrix_32x8_layout,
    shared_16x32_to_ldmatrix_32x16_layout,
    shared_32x16_to_ldmatrix_32x16_layout,
)

__all__ = [
    "M_DIM",
    "N_DIM",
    "WARP_SIZE",
    "get_index_A",
    "get_index_B",
    "get_index_C",
    "get_ldmatrix_intrin",
    "get_mma_fill_intrin",
    "get_mma_init_intrin",
    "get_mma_intrin",
    "get_mma_intrin_group",
    "get_mma_load_intrin",
    "get_mma_store_dummy_intrin",
    "get_mma_store_intrin",
    "get_mma_sync_intrin",
    "get_wmma_fill_intrin",
    "get_wmma_fragment_index",
    "get_wmma_intrin_group",
    "get_wmma_load_intrin",
    "get_wmma_store_intrin",
    "get_wmma_sync_intrin",
    "index_map_m16n8k8_matrixC",
    "index_map_shared_16x16_to_ldmatrix_32x8_layout",
    "ldmatrix_32x8_to_shared_16x16_layout",
    "shared_16x16_to_ldmatrix_32x8_layout",
    "shared_16x32_to_ldmatrix_32x16_layout",
    "shared_32x16_to_ldmatrix_32x16_layout",
]

_INTRINSICS = {
    name: value
    for module in (tensor_cores, warp_matrices)
    for name, value in vars(module).items()
    if "_INTRIN" in name
}
globals().update(_INTRINSICS, __all__=[*__all__, *_INTRINSICS])
