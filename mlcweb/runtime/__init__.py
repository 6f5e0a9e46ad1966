"""Running programs: arrays, devices, targets, modules, measuring."""

from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.runtime import host, ndarray
from mlcweb.runtime import nd
from mlcweb.runtime.benchmark import BenchmarkResult
from mlcweb.codegen.registry import Builder, register_target
from mlcweb.runtime.build import build
from mlcweb.runtime.device import Device, cpu, cuda, device, metal, vulkan, webgpu
from mlcweb.runtime.module import Module, PackedFunc
from mlcweb.runtime.ndarray import NDArray, array, empty, from_dlpack
from mlcweb.runtime.gpu.storage import allocator
from mlcweb.runtime.host.engine import allocate, available, has_llvm
from mlcweb.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)
from mlcweb.runtime.storage import register_allocator
from mlcweb.runtime.target import Target
from mlcweb.runtime.thread_pool import config_threadpool, num_threads


def _wasm() -> Builder:
    from mlcweb.runtime.host.wasm_target import build as builder

    return builder


def _llvm() -> Builder:
    from mlcweb.runtime.host.llvm_target import build as builder

    return builder


# Machine code where there is LLVM, else WebAssembly where there is an engine to run it; else NumPy
# stays the default.
register_target("wasm", _wasm, rank=20 if available() else 5)
if has_llvm():
    register_target("llvm", _llvm, rank=30)
register_allocator("cpu", allocate)
for _device_type in ("cuda", "opencl", "vulkan", "metal", "webgpu"):
    register_allocator(_device_type, allocator(_device_type))

tensor = array
Tensor = NDArray

__getattr__ = lazy_attributes(__name__)
