"""`tvm.tir.tensor_intrin.rocm`: what GPUs of AMD have, products of four bytes and of matrices."""

from __future__ import annotations

from mlcweb.tensor_intrin import dot_products, matrix_cores

_NAMES = {
    name: value
    for name, value in vars(matrix_cores).items()
    if "_INTRIN" in name or "_layout_" in name or name.startswith("get_") or name.endswith("_DIM")
}
_NAMES["AMDGPU_SDOT4_INTRIN"] = dot_products.AMDGPU_SDOT4_INTRIN
_NAMES["WARP_SIZE"] = matrix_cores.WARP_SIZE
globals().update(_NAMES, __all__=[*_NAMES])
