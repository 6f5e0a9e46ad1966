"""What the virtual machine of TVM does for a graph, `R.vm.…`."""

from __future__ import annotations

from typing import Any

from mlcweb.relax.expr import Call
from mlcweb.relax.op.memory import nothing, object_info, tensor_in_storage
from mlcweb.relax.op.registry import as_shape, call, register

_STORAGE = register(
    "relax.vm.alloc_storage",
    ("shape", "runtime_device_index", "dtype", "storage_scope"),
    object_info,
    pure=False,
)
_KILL = register("relax.vm.kill_object", ("obj",), nothing, pure=False)


def alloc_storage(
    shape: Any, runtime_device_index: Any, dtype: Any, storage_scope: Any = "global"
) -> Call:
    """Memory for a tensor."""
    return call(_STORAGE, as_shape(shape), runtime_device_index, dtype, storage_scope)


alloc_tensor = tensor_in_storage("relax.vm.alloc_tensor")


def kill_object(obj: Any) -> Call:
    """The end of a storage or tensor."""
    return call(_KILL, obj)
