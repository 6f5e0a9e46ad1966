"""mlcweb: a tensor-program compiler in pure Python with TVM's API.

`import mlcweb as tvm` and the cells of TVM's courses run as they stand.
"""

from mlcweb import providers
from mlcweb import ir, runtime, script, tir
from mlcweb.ir import IRModule, TVMError, instrument, transform
from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.ir.op import Op
from mlcweb.runtime import nd
from mlcweb.runtime.build import build
from mlcweb.runtime.device import (
    Device,
    cpu,
    cuda,
    device,
    ext_dev,
    hexagon,
    metal,
    opencl,
    rocm,
    vulkan,
    webgpu,
)
from mlcweb.runtime.registry import get_global_func, register_func
from mlcweb.runtime import target

__version__ = "0.1.0"

__getattr__ = lazy_attributes(
    __name__, dict.fromkeys(("meta_schedule", "relax", "te", "testing", "topi"), ())
)
