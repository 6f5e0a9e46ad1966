"""`tvm_ffi.access_path`."""

from mlcweb.ir.access_path import AccessKind, AccessPath, AccessStep

__all__ = ["AccessKind", "AccessPath", "AccessStep"]
