"""Running programs: arrays, devices, targets, modules, measuring."""

from mlcweb.runtime import host, ndarray
from mlcweb.runtime import nd
from mlcweb.runtime.benchmark import BenchmarkResult
from mlcweb.runtime.build import build
from mlcweb.runtime.device import Device, cpu, cuda, device, metal, vulkan, webgpu
from mlcweb.runtime.module import Module, PackedFunc
from mlcweb.runtime.ndarray import NDArray, array, empty, from_dlpack
from mlcweb.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)
from mlcweb.runtime.target import Target

tensor = array
Tensor = NDArray
