"""The GPU that is there: WebGPU of the browser in a page, of the package `wgpu` natively.

A device is memory, programs, and a queue of launches. What is asked of it after each other happens
after each other; only `read`, `wait` and `time` wait for it. Limits and features have the names of
WebGPU's standard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.host.clock import in_browser
from mlcweb.runtime.host.waiting import can_suspend

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


class ShaderError(GpuError):
    """The GPU's compiler refuses a program. `line` of the program counts from 1; 0 where it is not
    known."""

    def __init__(self, message: str, line: int = 0) -> None:
        self.line = line
        super().__init__(message)


class Launch(NamedTuple):
    """A program, what it is given, and the blocks of threads along x, y and z."""

    pipeline: Any
    bindings: Any
    grid: tuple[int, int, int]


class GpuDevice(Protocol):
    """A GPU. `lost` says why it is of no use any more; "" while it is."""

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
        """A function of a program in WGSL, compiled.

        Raises:
            ShaderError: the compiler refuses it.
        """
        ...

    def create_bindings(
        self, pipeline: Any, buffers: Sequence[tuple[Any, int]], scalars: bytes
    ) -> Any:
        """What a program is given: memory with its bytes, and numbers in a structure after it."""
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


_known: GpuDevice | NoGpu | None = None


def gpu_device() -> GpuDevice | None:
    """The GPU, found when first asked for; another one after that was lost. None where none is
    reached, and `why_no_gpu` says why."""
    global _known
    if _known is None or (not isinstance(_known, NoGpu) and _known.lost):
        if not can_suspend():
            return None
        try:
            _known = _find()
        except NoGpu as reason:
            _known = reason
    return None if isinstance(_known, NoGpu) else _known


def why_no_gpu() -> str:
    """Why `gpu_device` gives none, as half a sentence."""
    if _known is None and not can_suspend():
        return "this browser cannot suspend Python while a GPU works"
    return _known.message if isinstance(_known, NoGpu) else ""


def _find() -> GpuDevice:
    if in_browser():
        from mlcweb.runtime.host import page_gpu

        return page_gpu.find_device()
    from mlcweb.runtime.host import wgpu_device

    return wgpu_device.find_device()
