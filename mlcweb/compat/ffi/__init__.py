"""`tvm_ffi` and `tvm.ffi`: the registry of functions, arrays and containers, under its names."""

from typing import Any

from mlcweb.compat.containers import Array, Map, String, convert
from mlcweb.compat.ffi import access_path, container
from mlcweb.compat.walks import VisitInterrupt, WalkOrder, WalkResult, structural_walk
from mlcweb.ir.node import Node as Object
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.runtime.device import Device, device
from mlcweb.runtime.module import Module
from mlcweb.runtime.module import PackedFunc as Function
from mlcweb.runtime.ndarray import NDArray as Tensor
from mlcweb.runtime.ndarray import from_dlpack
from mlcweb.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)
from mlcweb.runtime.registry import (
    register_func as register_global_func,
)
from mlcweb.runtime.target import Target
from mlcweb.tir.dtype import DataType as dtype

Shape = tuple


def device_from_target(target: Any, index: int = 0) -> Device:
    """A device of a target's kind."""
    return device(Target(target).kind.name, index)


def register_object(type_key: Any = None, init: bool = True) -> Any:
    """Decorates a class under the name of TVM's class in C++, which it is to show. There is none
    here, so the class stays as it is."""
    return type_key if isinstance(type_key, type) else lambda cls: cls


__all__ = [
    "Array",
    "Device",
    "Function",
    "Map",
    "Module",
    "Object",
    "Shape",
    "String",
    "Tensor",
    "VisitInterrupt",
    "WalkOrder",
    "WalkResult",
    "access_path",
    "container",
    "convert",
    "device",
    "device_from_target",
    "dtype",
    "from_dlpack",
    "get_global_func",
    "list_global_func_names",
    "register_func",
    "register_global_func",
    "register_object",
    "remove_global_func",
    "structural_equal",
    "structural_hash",
    "structural_walk",
]
