"""The GPU that is there: WebGPU of the browser in a page, of the package `wgpu` natively; and
natively CUDA's and OpenCL's own drivers for devices of these kinds.

A device is memory, programs, and a queue of launches. What is asked of it after each other happens
after each other; only `read`, `wait` and `time` wait for it. Limits and features have the names of
WebGPU's standard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.clock import clock, in_browser
from mlcweb.runtime.host.waiting import can_wait_for_gpu

if TYPE_CHECKING:
    import numpy as np

LIMITS = (
    "maxBufferSize",
    "maxStorageBufferBindingSize",
    "maxStorageBuffersPerShaderStage",
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
    "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ",
    "maxComputeWorkgroupStorageSize",
    "maxComputeWorkgroupsPerDimension",
)
"""The limits that kernels meet; a device is asked for the highest that its adapter has."""

CANNOT_WAIT = (
    "this browser cannot suspend Python while a GPU works; it takes JavaScript Promise "
    "Integration, or a page that is cross-origin isolated (headers COOP and COEP)"
)

FEATURES = ("shader-f16", "timestamp-query")
"""What a device is asked for where its adapter has it."""


class GpuError(TVMError):
    """A GPU cannot do what is asked of it."""


class GpuLost(GpuError):
    """A GPU was given up or went away, and with it what its arrays held."""


class GpuMemoryError(GpuError, MemoryError):
    """A GPU has no room for an array."""


class NoGpu(GpuError):
    """There is no GPU to be reached here."""


class GpuTimeout(NoGpu):
    """A GPU has not answered in time; it may when asked again."""


class ShaderError(GpuError):
    """The GPU's compiler refuses a program. `line` of the program counts from 1; 0 where it is not
    known."""

    def __init__(self, message: str, line: int = 0) -> None:
        self.line = line
        super().__init__(message)


class Launch(NamedTuple):
    """A program, what it is given, the blocks along x, y and z, the threads of a block, and the
    bytes of shared memory of a block beside what the program declares."""

    pipeline: Any
    bindings: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0


class GpuDevice(Protocol):
    """A GPU. `lost` says why it is of no use any more; "" while it is of use. `language` is that of
    its programs: "webgpu", "opencl" or "cuda". `is_software` says that it is no GPU: a program that
    computes on this machine's processor as one would."""

    language: str
    is_software: bool
    description: str
    limits: Mapping[str, int]
    features: frozenset[str]

    @property
    def lost(self) -> str: ...

    def create_buffer(self, nbytes: int) -> Any:
        """Memory, its content undefined.

        Raises:
            GpuMemoryError: there is no room for it.
        """
        ...

    def destroy_buffer(self, buffer: Any) -> None:
        """Give memory back, when all launches before are done."""
        ...

    def write(self, buffer: Any, data: np.ndarray[Any, Any]) -> None:
        """Overwrite the first bytes of memory."""
        ...

    def read(self, buffer: Any, nbytes: int) -> np.ndarray[Any, Any]:
        """A copy of the first bytes, after all launches before; a `GpuLost` in vain."""
        ...

    def create_pipeline(self, source: str, entry: str) -> Any:
        """A function of a program in the language of the device, compiled.

        Raises:
            ShaderError: the compiler refuses it.
        """
        ...

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: Sequence[bytes]
    ) -> Any:
        """What a program is given: memory with its bytes, and after that the numbers, each as its
        type lies in memory."""
        ...

    def dispatch(self, launch: Launch) -> None:
        """Have threads run, some time before the next `read` or `wait` returns."""
        ...

    def wait(self) -> None:
        """Wait until all launches are done; a `GpuLost` in vain."""
        ...

    def time(self, launches: Sequence[Launch], number: int) -> float:
        """The seconds that some launches take, `number` times after each other."""
        ...


def target_attributes(device: GpuDevice) -> dict[str, Any]:
    """A GPU's limits as attributes of a target."""
    limits = device.limits
    threads = limits["maxComputeInvocationsPerWorkgroup"]
    return {
        "max_num_threads": threads,
        "max_threads_per_block": threads,
        "max_shared_memory_per_block": limits["maxComputeWorkgroupStorageSize"],
        **{f"max_block_size_{axis.lower()}": limits[f"maxComputeWorkgroupSize{axis}"]
           for axis in "XYZ"},
        "max_per_stage_descriptor_storage_buffer": limits["maxStorageBuffersPerShaderStage"],
        "supports_float16": "shader-f16" in device.features,
    }  # fmt: skip


def uniform_bytes(scalars: Sequence[bytes]) -> bytes:
    """Numbers as a structure of WGSL has them: each aligned to its size, in multiples of 16 bytes.
    No bytes where there are none."""
    data = b""
    for scalar in scalars:
        data += bytes(-len(data) % len(scalar)) + scalar
    return data + bytes(-len(data) % 16)


def check_lost(lost: str) -> None:
    """A `GpuLost` where a device says why it is of no use any more."""
    if lost:
        raise GpuLost(f"{lost} Make its arrays and build its programs again")


def time_by_host(device: GpuDevice, launches: Sequence[Launch], number: int) -> float:
    """`GpuDevice.time` by the clock of this machine."""
    device.wait()
    start = clock()
    for _ in range(number):
        for launch in launches:
            device.dispatch(launch)
    device.wait()
    return clock() - start


_devices: dict[str, GpuDevice | NoGpu] = {}
"""What each driver gave when it was last asked."""


def gpu_device(kind: str = "webgpu") -> GpuDevice | None:
    """The GPU that devices of a kind are here, found when first asked for; another one after that
    was lost, and asked for again where it has not answered in time. It is that of the kind's own
    driver, or else the one that WebGPU reaches, unless that is software: on the processor compiled
    loops are many times faster. None where there is neither, and `why_no_gpu` says why."""
    for driver in _drivers(kind):
        device = _device(driver)
        if device is not None and not _is_poor_stand_in(driver, kind, device):
            return device
    return None


def _is_poor_stand_in(driver: str, kind: str, device: GpuDevice) -> bool:
    return driver != kind and device.is_software


def why_no_gpu(kind: str = "webgpu") -> str:
    """Why drivers give no GPU for a kind, in half sentences; "" where the first of them does. What
    did not answer in time is not waited for again."""
    reasons: list[str] = []
    for driver in _drivers(kind):
        device = None if isinstance(_devices.get(driver), GpuTimeout) else _device(driver)
        if device is not None and not _is_poor_stand_in(driver, kind, device):
            break
        if device is not None:
            reasons.append(f"WebGPU reaches {device.description}, which is this processor")
            continue
        device = _devices.get(driver)
        if isinstance(device, NoGpu):
            reasons.append(device.message)
        else:
            reasons.append(CANNOT_WAIT)
    return "; ".join(reasons)


def _drivers(kind: str) -> tuple[str, ...]:
    """What reaches devices of a kind, best first."""
    own = kind in ("cuda", "opencl") and not in_browser()
    return (kind, "webgpu") if own else ("webgpu",)


def _device(driver: str) -> GpuDevice | None:
    device = _devices.get(driver)
    if _is_useless(device):
        if not can_wait_for_gpu():
            return None
        try:
            device = _open_device(driver)
        except NoGpu as reason:
            device = reason
        # While a page opens one, Python goes on elsewhere, and may have opened another: one counts.
        if _is_useless(_devices.get(driver)):
            _devices[driver] = device
        device = _devices[driver]
    return None if isinstance(device, NoGpu) else device


def _is_useless(device: GpuDevice | NoGpu | None) -> bool:
    """Whether one has yet to be opened."""
    if isinstance(device, NoGpu):
        return isinstance(device, GpuTimeout)
    return device is None or bool(device.lost)


def _open_device(driver: str) -> GpuDevice:
    if driver == "cuda":
        from mlcweb.runtime.host import cuda_device

        return cuda_device.find_device()
    if driver == "opencl":
        from mlcweb.runtime.host import opencl_device

        return opencl_device.find_device()
    if in_browser():
        from mlcweb.runtime.host import page_gpu

        return page_gpu.find_device()
    from mlcweb.runtime.host import wgpu_device

    return wgpu_device.find_device()
