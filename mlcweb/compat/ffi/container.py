"""`tvm_ffi.container`: arrays and mappings."""

from mlcweb.compat.containers import Array, Map

__all__ = ["Array", "Map"]
