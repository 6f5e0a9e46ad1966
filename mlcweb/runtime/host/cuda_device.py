"""A GPU of NVIDIA, by the driver's own functions: the package `cuda-python`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mlcweb.runtime.cuda_callbacks import compiled, postprocessed
from mlcweb.runtime.host.gpu import GpuMemoryError, Launch, NoGpu, check_lost
from mlcweb.runtime.host.nvrtc import checked, compile_cuda
from mlcweb.runtime.target import Target

if TYPE_CHECKING:
    import numpy as np

UNLIMITED = 2**31 - 1
"""What kernels may have any number of, within their 4 KB of parameters: arrays."""


def find_device() -> CudaDevice:
    """The first GPU that the driver has.

    Raises:
        NoGpu: the package is not installed, or there is no driver or no GPU.
    """
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        raise NoGpu('the package cuda-python is not installed (pip install "mlcweb[cuda]")')
    try:
        import cuda.bindings.driver as driver  # pyright: ignore[reportMissingImports]

        return CudaDevice(driver)
    except Exception as error:  # the package says in several ways that there is no driver
        raise NoGpu(f"no driver of CUDA with a GPU is here ({error})") from None


@dataclass(slots=True)
class _Pipeline:
    """A function of a loaded module, and the bytes of shared memory that its launches may ask
    for."""

    function: Any
    module: Any
    shared: int = 0


class CudaDevice:
    """The first GPU, in the context that the process shares with other libraries.

    Args:
        driver: the module `cuda.bindings.driver`, or one with the same functions.
    """

    language = "cuda"
    is_software = False

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        checked(driver.cuInit(0))
        device = checked(driver.cuDeviceGet(0))
        self.context = checked(driver.cuDevicePrimaryCtxRetain(device))
        checked(driver.cuCtxSetCurrent(self.context))
        name = checked(driver.cuDeviceGetName(256, device))
        self.description = name.split(b"\0")[0].decode()
        self.lost = ""
        names = driver.CUdevice_attribute

        def attribute(name: str) -> int:
            which = getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(checked(driver.cuDeviceGetAttribute(which, device)))

        major, minor = (attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        self.architecture = f"sm_{major}{minor}"
        memory = int(checked(driver.cuDeviceTotalMem(device)))
        self.limits: Mapping[str, int] = {
            "maxBufferSize": memory,
            "maxStorageBufferBindingSize": memory,
            "maxStorageBuffersPerShaderStage": UNLIMITED,
            "maxComputeInvocationsPerWorkgroup": attribute("MAX_THREADS_PER_BLOCK"),
            **{f"maxComputeWorkgroupSize{axis}": attribute(f"MAX_BLOCK_DIM_{axis}")
               for axis in "XYZ"},
            "maxComputeWorkgroupStorageSize": attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
            "maxDynamicSharedMemory": attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            **{f"maxComputeWorkgroups{axis}": attribute(f"MAX_GRID_DIM_{axis}") for axis in "XYZ"},
            "maxComputeWorkgroupsPerDimension": attribute("MAX_GRID_DIM_Y"),
        }  # fmt: skip
        self.features = frozenset({"shader-f16"})

    def create_buffer(self, nbytes: int) -> Any:
        self._enter()
        status, *address = self.driver.cuMemAlloc(max(1, nbytes))
        if int(status):
            raise GpuMemoryError(f"The GPU has no {nbytes} bytes left ({status.name})")
        return address[0]

    def destroy_buffer(self, buffer: Any) -> None:
        if not self.lost:
            # The driver waits for the launches before.
            self._call(self.driver.cuMemFree, buffer)

    def write(self, buffer: Any, data: np.ndarray[Any, Any]) -> None:
        import numpy as np

        if data.nbytes:
            values = np.ascontiguousarray(data)
            self._call(self.driver.cuMemcpyHtoD, buffer, values.ctypes.data, values.nbytes)

    def read(self, buffer: Any, nbytes: int) -> np.ndarray[Any, Any]:
        import numpy as np

        result = np.empty(nbytes, np.uint8)
        if nbytes:
            self._call(self.driver.cuMemcpyDtoH, result.ctypes.data, buffer, nbytes)
        return result

    def create_pipeline(self, source: str, entry: str) -> Any:
        """A function of a module that has to stay."""
        self._enter()
        target = Target({"kind": "cuda", "arch": self.architecture})
        source = postprocessed(source, target)
        code = compiled(source, target) or compile_cuda(source, self.architecture)
        module = self._call(self.driver.cuModuleLoadData, code)
        function = self._call(self.driver.cuModuleGetFunction, module, entry.encode())
        return _Pipeline(function, module)

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: Sequence[bytes]
    ) -> Any:
        """The values of the parameters, and an array of their addresses."""
        import numpy as np

        pointers = [np.array([int(buffer)], np.uint64) for buffer, _ in buffers]
        values = [*pointers, *(np.frombuffer(scalar, np.uint8) for scalar in scalars)]
        return np.array([value.ctypes.data for value in values], np.uint64), values

    def dispatch(self, launch: Launch) -> None:
        pipeline: _Pipeline = launch.pipeline
        function = pipeline.function
        addresses, _ = launch.bindings
        if launch.shared > pipeline.shared:
            names = self.driver.CUfunction_attribute
            which = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call(self.driver.cuFuncSetAttribute, function, which, launch.shared)
            pipeline.shared = launch.shared
        self._call(
            self.driver.cuLaunchKernel,
            function, *launch.grid, *launch.block, launch.shared, 0, addresses.ctypes.data, 0,
        )  # fmt: skip

    def wait(self) -> None:
        self._call(self.driver.cuCtxSynchronize)

    def time(self, launches: Sequence[Launch], number: int) -> float:
        """By the GPU's clock."""
        self.wait()
        start, end = (self._call(self.driver.cuEventCreate, 0) for _ in range(2))
        self._call(self.driver.cuEventRecord, start, 0)
        for _ in range(number):
            for launch in launches:
                self.dispatch(launch)
        self._call(self.driver.cuEventRecord, end, 0)
        self._call(self.driver.cuEventSynchronize, end)
        milliseconds = self._call(self.driver.cuEventElapsedTime, start, end)
        for event in (start, end):
            self._call(self.driver.cuEventDestroy, event)
        return milliseconds * 1e-3

    def _enter(self) -> None:
        """A thread works in the context that it has entered last."""
        check_lost(self.lost)
        checked(self.driver.cuCtxSetCurrent(self.context))

    def _call(self, function: Any, *arguments: Any) -> Any:
        """What a function of the driver gives. After a failure the context is of no use."""
        self._enter()
        try:
            return checked(function(*arguments))
        except RuntimeError as error:
            self.lost = f"The GPU failed ({error})."
            check_lost(self.lost)
